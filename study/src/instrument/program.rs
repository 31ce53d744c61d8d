//! The seven programs of the study and their inputs, which are generated: the same bytes on every
//! machine.
//!
//! They were chosen to differ: two compressors (loops, tables), an interpreter (indirect jumps), a
//! database (calls), a compiler (much code, run seldom), a search (cache misses), a matrix product
//! (arithmetic). Sizes are linear in a scale; at scale 1 each is chosen so that the slowest peer
//! still answers in seconds, and no program runs for less than twice its start-up.

use crate::race::Line;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of the study.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// Its name in tables.
    pub(super) name: &'static str,
    /// The Debian package that provides it.
    pub(super) package: &'static str,
    /// What the input of the quick study is multiplied with in the full one, to run for 0.1 to 0.4
    /// seconds.
    pub(super) full: u32,
    /// What it is multiplied with to run for at least five seconds.
    pub(super) steady: u32,
    /// Writes its input and says how to run it.
    prepare: fn(&Kitchen, u32) -> Result<Vec<OsString>>,
}

/// All seven.
pub(super) const PROGRAMS: &[Program] = &[
    Program { name: "bzip2", package: "bzip2", full: 1, steady: 40, prepare: bzip2 },
    Program { name: "xz", package: "xz-utils", full: 2, steady: 32, prepare: xz },
    Program { name: "python3", package: "python3", full: 3, steady: 260, prepare: python },
    Program { name: "sqlite3", package: "sqlite3", full: 3, steady: 92, prepare: sqlite },
    Program { name: "cc1", package: "gcc", full: 5, steady: 125, prepare: cc1 },
    Program { name: "binary search", package: "gcc", full: 1, steady: 72, prepare: search },
    Program { name: "scalar matmul", package: "gcc", full: 1, steady: 46, prepare: matmul },
];

impl Program {
    /// The native command line, or why there is none.
    pub(super) fn line(&self, folder: &Path, scale: u32) -> Result<Line, String> {
        let kitchen = Kitchen { folder: folder.to_owned() };
        let words =
            (self.prepare)(&kitchen, scale).map_err(|e| format!("{e:#} (apt install {})", self.package))?;
        let env = if self.name == "python3" { vec![("PYTHONHASHSEED", "0")] } else { Vec::new() };
        Ok(Line { words, env, folder: folder.to_owned() })
    }
}

/// Where inputs are made.
struct Kitchen {
    folder: PathBuf,
}

impl Kitchen {
    fn file(&self, name: &str, text: &str) -> Result<OsString> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(name.into())
    }

    /// Compiles a C program of ours.
    fn compile(&self, name: &str, text: &str, flags: &[&str]) -> Result<OsString> {
        let source = self.file(&format!("{name}.c"), text)?;
        let mut cc = Command::new("cc");
        cc.current_dir(&self.folder).args(flags).arg("-o").arg(name).arg(source);
        let status = cc.status().context("cannot run cc")?;
        anyhow::ensure!(status.success(), "cc ended with {status}");
        Ok(format!("./{name}").into())
    }
}

/// An installed program.
fn installed(path: &str) -> Result<OsString> {
    anyhow::ensure!(Path::new(path).exists(), "there is no {path}");
    Ok(path.into())
}

fn words(program: OsString, rest: &[&str]) -> Vec<OsString> {
    std::iter::once(program).chain(rest.iter().map(OsString::from)).collect()
}

/// Pseudo-random numbers that are the same everywhere (Marsaglia 2003).
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// Text that compresses about as well as prose: words of a small vocabulary, the frequent ones
/// first.
fn prose(bytes: usize) -> String {
    let mut random = Xorshift(0x2545_f491_4f6c_dd1d);
    let vocabulary: Vec<String> = (0..4096)
        .map(|_| (0..2 + random.below(9)).map(|_| char::from(b'a' + random.below(26) as u8)).collect())
        .collect();
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        let limit = 1 + random.below(vocabulary.len() as u64);
        text += &vocabulary[random.below(limit) as usize];
        text.push(if random.below(12) == 0 { '\n' } else { ' ' });
    }
    text
}

fn bzip2(kitchen: &Kitchen, scale: u32) -> Result<Vec<OsString>> {
    let program = installed("/usr/bin/bzip2").or_else(|_| installed("/bin/bzip2"))?;
    kitchen.file("prose-bzip2", &prose(BZIP2_BYTES * scale as usize))?;
    Ok(words(program, &["-k", "-c", "prose-bzip2"]))
}

fn xz(kitchen: &Kitchen, scale: u32) -> Result<Vec<OsString>> {
    let program = installed("/usr/bin/xz")?;
    kitchen.file("prose-xz", &prose(XZ_BYTES * scale as usize))?;
    Ok(words(program, &["-k", "-c", "-T1", "-6", "prose-xz"]))
}

fn python(kitchen: &Kitchen, scale: u32) -> Result<Vec<OsString>> {
    let program = installed("/usr/bin/python3")?;
    kitchen.file("words.py", PYTHON)?;
    Ok(words(program, &["-S", "-B", "words.py", &(PYTHON_ROUNDS * scale).to_string()]))
}

fn sqlite(kitchen: &Kitchen, scale: u32) -> Result<Vec<OsString>> {
    let program = installed("/usr/bin/sqlite3")?;
    kitchen.file("orders.sql", &SQL.replace("ROWS", &(SQLITE_ROWS * scale).to_string()))?;
    Ok(words(program, &["-batch", ":memory:", ".read orders.sql"]))
}

fn cc1(kitchen: &Kitchen, scale: u32) -> Result<Vec<OsString>> {
    let out = Command::new("gcc").arg("-print-prog-name=cc1").output().context("cannot run gcc")?;
    let path = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    anyhow::ensure!(path.starts_with('/'), "gcc has no cc1");
    kitchen.file("many.i", &functions(CC1_FUNCTIONS * scale))?;
    Ok(words(path.into(), &["-quiet", "-O1", "many.i", "-o", "/dev/null"]))
}

fn search(kitchen: &Kitchen, scale: u32) -> Result<Vec<OsString>> {
    let program = kitchen.compile("search", SEARCH, &["-O2"])?;
    Ok(words(program, &[&(SEARCH_THOUSANDS * scale).to_string()]))
}

fn matmul(kitchen: &Kitchen, scale: u32) -> Result<Vec<OsString>> {
    let program = kitchen.compile("matmul", MATMUL, &["-O2", "-fno-tree-vectorize"])?;
    Ok(words(program, &[&(MATMUL_PRODUCTS * scale).to_string()]))
}

const BZIP2_BYTES: usize = 3_000_000;
const XZ_BYTES: usize = 400_000;
const PYTHON_ROUNDS: u32 = 10;
const SQLITE_ROWS: u32 = 45_000;
const CC1_FUNCTIONS: u32 = 8;
const SEARCH_THOUSANDS: u32 = 400;
const MATMUL_PRODUCTS: u32 = 6;

const PYTHON: &str = "\
import sys
class Word:
    def __init__(self, text): self.text, self.count = text, 0
    def seen(self): self.count += 1; return self
def round(seed):
    table, state = {}, seed
    for _ in range(9000):
        state = (state * 1103515245 + 12345) & 0x7fffffff
        text = 'w%d' % (state % 701)
        if text not in table: table[text] = Word(text)
        table[text].seen()
    return sorted((w.count, w.text) for w in table.values())[-1]
print([round(n) for n in range(int(sys.argv[1]))][-1])
";

const SQL: &str = "\
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, amount REAL, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ROWS)
  INSERT INTO orders SELECT i, (i * 7919) % 997, (i * 31) % 1009 / 7.0, 'order ' || i FROM n;
CREATE INDEX by_customer ON orders(customer);
SELECT customer, count(*), sum(amount) FROM orders GROUP BY customer ORDER BY 3 DESC LIMIT 5;
SELECT count(*) FROM orders a JOIN orders b ON b.id = (a.id * 13) % ROWS WHERE a.note < b.note;
";

const SEARCH: &str = "\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
enum { KEYS = 1 << 20 };
static uint32_t keys[KEYS];
int main(int c, char **v) {
  long lookups = (c > 1 ? atol(v[1]) : 1) * 1000; uint64_t x = 88172645463325252u, sum = 0;
  for (uint32_t i = 0; i < KEYS; i++) keys[i] = i * 4u;
  for (long n = 0; n < lookups; n++) {
    x ^= x << 13; x ^= x >> 7; x ^= x << 17;
    uint32_t key = x >> 42, low = 0, high = KEYS;
    while (low < high) { uint32_t middle = (low + high) / 2; if (keys[middle] < key) low = middle + 1; else high = middle; }
    sum += low;
  }
  printf(\"%llu\\n\", (unsigned long long)sum); return 0;
}
";

const MATMUL: &str = "\
#include <stdio.h>
#include <stdlib.h>
enum { N = 288 };
static double a[N][N], b[N][N], c[N][N];
int main(int argc, char **v) {
  int products = argc > 1 ? atoi(v[1]) : 1;
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) a[i][j] = i + j, b[i][j] = i - j;
  for (int p = 0; p < products; p++)
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) {
      double sum = c[i][j];
      for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j];
      c[i][j] = sum;
    }
  printf(\"%g\\n\", c[N / 2][N / 3]); return 0;
}
";

/// A preprocessed C file of `count` functions, each a little different.
fn functions(count: u32) -> String {
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    let mut text = String::from("struct node { struct node *next; int key; long sum[4]; };\n");
    for f in 0..count {
        let (a, b, shift) = (random.below(97) + 2, random.below(1000), random.below(7) + 1);
        let _ = write!(
            text,
            "static int step{f}(int x, int y) {{ switch (x & 7) {{ case 0: return y + {a}; case 1: return y ^ {b}; \
             case 2: return x * y; case 3: return y >> {shift}; case 5: return x / {a}; default: return x - y; }} }}\n\
             long walk{f}(struct node *n, int limit) {{ long total = {b}; \
             for (int i = 0; n && i < limit; i++, n = n->next) {{ if (n->key % {a} == 0) total += step{f}(n->key, i); \
             else if (n->key > {b}) total ^= n->sum[i & 3] << {shift}; else n->sum[(i + 1) & 3] += total; \
             for (int j = 0; j < (n->key & 15); j++) total += step{f}(j, (int)total); }} return total; }}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_every_time() {
        assert_eq!(prose(10_000), prose(10_000));
        assert!(prose(10_000).starts_with(&prose(1000)[..900]));
        assert_eq!(functions(3).matches("walk").count(), 3);
    }

    #[test]
    fn every_program_that_is_installed_runs() {
        let folder = tempfile::tempdir().unwrap();
        for program in PROGRAMS {
            match program.line(folder.path(), 1) {
                Ok(line) => assert!(line.time().is_ok(), "{}", line.shown()),
                Err(reason) => eprintln!("skipped: {reason}"),
            }
        }
    }
}
