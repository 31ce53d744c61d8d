//! The whole chain on programs long enough for their code to be tuned: the engine's filtered stream
//! through the fast simulator against its full stream through the naive one. Fragments are
//! translated again while they run, references recorded always and checked again; not one miss may
//! differ.

mod bench;

use bench::{compile, Bench};
use event::{Record, Stream};
use instrument::{run, Command, Observer, Options};
use machine::Machine;
use simulate::reference::{Naive, NaiveRefined};
use simulate::{
    plan_levels, Counts, Geometry, Levels, Modelled, PageRange, Simulator, WriteBacks, CACHES_MAX, TLBS_MAX,
};
use std::path::Path;

/// Walks down columns and along rows by turns, in phases, so that what was learned in one is wrong
/// in the next; lines and pages are crossed, flags live over references, `fs` is used, stores miss,
/// a repeat and a handler's frame come in between.
const PHASES: &str = r#"
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
enum { N = 96 };
static double a[N][N], b[N][N];
static char bytes[1 << 16];
static __thread long own;
static volatile long handled;
static void handle(int signal) { handled += signal + bytes[handled & 0xfff]; }
__attribute__((noinline)) static long chase(uint32_t *next, long steps) {
  long at = 0, sum = 0;
  while (steps--) { at = next[at]; sum += at > 500 ? at : -at; own++; }
  return sum;
}
__attribute__((noinline)) static double columns(int times) {
  double sum = 0;
  while (times--) for (int j = 0; j < N; j++) for (int i = 0; i < N; i++) sum += a[i][j] * b[j][i];
  return sum;
}
__attribute__((noinline)) static double rows(double (*m)[N], int times) {
  double sum = 0;
  while (times--) for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { m[i][j] += 1; sum += m[i][j]; }
  return sum;
}
__attribute__((noinline)) static long unaligned(int stride, int times) {
  long sum = 0, value;
  while (times--) for (int at = 0; at + 8 < (int)sizeof bytes; at += stride) {
    memcpy(&value, bytes + at, 8); sum += value; value++; memcpy(bytes + at + 1, &value, 7);
  }
  return sum;
}
static uint32_t next[1 << 14];
int main(void) {
  long check = 0; double sum = 0;
  for (uint32_t i = 0; i < 1 << 14; i++) next[i] = (i * 5 + 12345) & ((1 << 14) - 1);
  signal(SIGUSR1, handle);
  for (int phase = 0; phase < 4; phase++) {
    sum += columns(6); sum += rows(phase & 1 ? a : b, 6);
    check += chase(next, 60000) + unaligned(phase & 1 ? 3 : 61, 2);
    raise(SIGUSR1);
    memmove(bytes + 64 * phase, bytes + 5, 3000);
  }
  printf("%ld %g %ld %ld\n", check, sum, own, handled); return 0;
}
"#;

/// Feeds a simulator.
struct Fed<F>(F, u64);

impl<F: FnMut(u32, &[Record]) + Send> Observer for Fed<F> {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.1 += records.len() as u64;
        (self.0)(thread, records);
    }
}

/// Misses of every level, all sites together: sites are numbered anew where code is translated
/// again.
fn totals(counts: &Counts) -> Vec<[u64; 3]> {
    let caches = (0..CACHES_MAX).map(|level| counts.cache(level));
    let buffers = (0..TLBS_MAX).map(|level| counts.tlb(level));
    caches.chain(buffers).map(|m| [m.loads, m.stores, m.instructions]).collect()
}

/// Records, fragments tuned, misses of the filtered stream.
fn filtered(program: &Path, levels: &Levels) -> (u64, u64, Counts) {
    let stream = plan_levels(levels, WriteBacks::Ignored).stream;
    let mut hierarchy = Simulator::of_stream(levels, &stream, WriteBacks::Ignored).expect("levels that fit");
    assert!(matches!(stream, Stream::Filtered(_)));
    let mut observer = Fed(|thread, records: &[Record]| hierarchy.records(thread, records), 0);
    let tuned = observe(program, stream, &mut observer);
    (observer.1, tuned, hierarchy.counts())
}

fn full(program: &Path, levels: &Levels) -> (u64, Counts) {
    let mut naive = Naive::new(levels);
    let mut observer = Fed(|thread, records: &[Record]| naive.records(thread, records), 0);
    observe(program, Stream::Full, &mut observer);
    (observer.1, naive.counts())
}

fn observe(program: &Path, stream: Stream, observer: &mut dyn Observer) -> u64 {
    observe_command(&Command { program: program.into(), arguments: Vec::new() }, stream, observer)
}

fn observe_command(command: &Command, stream: Stream, observer: &mut dyn Observer) -> u64 {
    let outcome = run(command, &Options { stream, ..Options::default() }, observer).expect("it runs");
    assert_eq!(outcome.exit, instrument::Exit::Code(0));
    outcome.stats.tuned
}

#[test]
fn tuned_code_misses_what_the_naive_simulator_misses() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = compile(&bench, "phases", &["-O2"], PHASES) else { return };
    for name in ["cachegrind", "ladner2002", "sapphire-rapids"] {
        let machine = Machine::preset(name).expect("a preset");
        let levels = Modelled::of(&machine).expect("it fits").expect("a cache").levels;
        let (few, tuned, fast) = filtered(&program, &levels);
        let (many, slow) = full(&program, &levels);
        assert!(tuned > 0, "{name}: nothing was tuned in {few} records");
        assert!(few * 3 < many * 2, "{name}: {few} of {many} records");
        assert_eq!(totals(&fast), totals(&slow), "{name}");
    }
}

/// Loops of one fragment, in registers that they fill to different degrees, whose ways back a
/// timer's handler interrupts hundreds of times.
const INTERRUPTED: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
enum { N = 1 << 16 };
static unsigned next[N], other[N];
static volatile long handled, spilt[64];
static void handle(int signal) { for (int i = 0; i < 64; i++) spilt[i] += signal; handled++; }
__attribute__((noinline)) static unsigned long thin(unsigned at, long steps) {
  while (steps--) at = next[at];
  return at;
}
__attribute__((noinline)) static unsigned long wide(unsigned at, long steps) {
  unsigned long a = 1, b = 2, c = 3, d = 5, e = 7, f = 11, g = 13;
  for (; steps; steps--) {
    at = next[at];
    a += b ^ at; b += c; c ^= d + at; d += e; e -= f ^ a; f += g; g += other[(at * 17) & (N - 1)];
  }
  return a ^ b ^ c ^ d ^ e ^ f ^ g ^ at;
}
int main(void) {
  struct itimerval every = { { 0, 700 }, { 0, 700 } };
  unsigned long sum = 0;
  for (unsigned i = 0; i < N; i++) next[i] = (i * 5 + 12345) & (N - 1), other[i] = i * 40503u;
  signal(SIGALRM, handle); setitimer(ITIMER_REAL, &every, 0);
  for (int round = 0; round < 6; round++) sum = sum * 31 + thin(round, 900000) + wide(round, 700000);
  every.it_value.tv_usec = 0; setitimer(ITIMER_REAL, &every, 0);
  printf("%lu\n", sum); return handled < 20;
}
"#;

/// What scratch registers hold from turn to turn is the program's again whenever somebody looks,
/// and where another translation takes over.
#[test]
fn loops_that_are_interrupted_compute_what_they_do_natively() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "interrupted", &["-O2"], INTERRUPTED) else { return };
    let native = std::process::Command::new(&program).output().expect("it runs");
    for machine in ["cachegrind", "sapphire-rapids"] {
        let report = bench.join("report.json");
        let measured = bench::lightfoot()
            .args(["cache", "--machine", machine, "--format", "json", "-o"])
            .arg(&report)
            .arg("--")
            .arg(&program)
            .run();
        // Status 1: the timer hardly ticked.
        measured.ends_with(0);
        assert_eq!(measured.stdout, native.stdout, "{machine}");
    }
}

/// A function that overwrites registers becomes one that reads them, between two calls by code that
/// has been translated already and lies elsewhere.
const PATCHED: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
extern char callee[], reading[];
long first(long value, long *to), second(long value, long *to);
__asm__(".text\n.balign 4096\ncallee: xor %eax, %eax\nxor %ecx, %ecx\nxor %edx, %edx\nret\n.balign 4096\n"
  "reading: lea (%rax, %rcx), %rax\nadd %rdx, %rax\nret\n.skip 16\n"
  "first: mov $5, %eax\nmov $7, %ecx\nmov $9, %edx\nmov %rdi, (%rsi)\ncall callee\nret\n"
  "second: mov $5, %eax\nmov $7, %ecx\nmov $9, %edx\nmov %rdi, (%rsi)\ncall callee\nret\n");
int main(void) {
  long place = 0;
  long before = first(1, &place) + second(2, &place);
  if (mprotect(callee, 4096, PROT_READ | PROT_WRITE)) return 1;
  memcpy(callee, reading, 8);
  if (mprotect(callee, 4096, PROT_READ | PROT_EXEC)) return 1;
  printf("%ld %ld %ld\n", before, first(3, &place), second(4, &place)); return 0;
}
"#;

/// What code need not bring to other code holds only while that stays what it is.
#[test]
fn code_that_is_patched_is_brought_all_registers() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "patched", &["-O2"], PATCHED) else { return };
    for command in ["count", "cache"] {
        let measured = bench::lightfoot().args([command, "-o"]).arg(bench.join("report.txt")).arg("--");
        let measured = measured.arg(&program).run();
        measured.ends_with(0);
        assert_eq!(String::from_utf8_lossy(&measured.stdout), "0 21 21\n", "{command}");
    }
}

/// Accesses that cross into another page, which all pages of a fully associative TLB are the
/// neighbours of, and after some the page before again.
const CROSSING: &str = r#"
static volatile char bytes[8 * 4096] __attribute__((aligned(4096)));
#define AT(type, offset) (*(volatile type *)(bytes + (offset)))
int main(void) {
  long sum = 0;
  for (int i = 0; i < 3000; i++) {
    sum += AT(long, 0x1100) + AT(long, 0x1ffc) + AT(long, 0x1100);
    AT(int, 0x4240) = i; AT(short, 0x6340)++;
    sum += AT(long, 0x1100);
    if (i > 1000) { AT(long, 0x2ffd) = i; AT(long, 0x2180) = i; AT(char, 0x4240) = 1; sum += AT(char, 0x2180); }
  }
  return sum == 42;
}
"#;

/// The second page of a crossing access is used last: were the first one remembered, a later use of
/// it would be left out.
#[test]
fn the_second_page_of_a_crossing_access_is_its_sets_last() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "crossing", &["-O2"], CROSSING) else { return };
    let machine = Machine::preset("cachegrind").expect("a preset");
    let levels = Modelled::of(&machine).expect("it fits").expect("a cache").levels;
    for entries in 2..=5 {
        let data_tlb = Some(Geometry::tlb(entries, entries, 4096));
        let levels = Levels { data_tlb, ..levels.clone() };
        let (few, _, fast) = filtered(&program, &levels);
        let (many, slow) = full(&program, &levels);
        assert!(few < many, "{few} of {many} records");
        assert_eq!(totals(&fast), totals(&slow), "{entries} entries");
    }
}

/// Misses of what is planned for a machine, as `lightfoot cache` runs it.
fn planned(command: &Command, levels: &Levels) -> Counts {
    let stream = plan_levels(levels, WriteBacks::Ignored).stream;
    let mut simulator = Simulator::of_stream(levels, &stream, WriteBacks::Ignored).expect("levels that fit");
    let mut observer = Fed(|thread, records: &[Record]| simulator.records(thread, records), 0);
    observe_command(command, stream, &mut observer);
    simulator.counts()
}

fn walked(command: &Command, levels: &Levels) -> Counts {
    let mut naive = NaiveRefined::new(levels);
    let mut observer = Fed(|thread, records: &[Record]| naive.records(thread, records), 0);
    observe_command(command, Stream::Full, &mut observer);
    naive.counts()
}

/// Small caches, so that all of it happens in a short program.
#[test]
fn machines_that_are_not_plain_miss_what_their_twin_misses() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = compile(&bench, "phases", &["-O2"], PHASES) else { return };
    let phases = Command { program: program.into(), arguments: Vec::new() };
    let script = "create table t(a); insert into t values(7),(5),(6); select * from t order by a;";
    let sqlite = Command { program: "sqlite3".into(), arguments: vec![":memory:".into(), script.into()] };
    let mut commands = vec![phases];
    if std::process::Command::new("sqlite3").arg("--version").output().is_ok() {
        commands.push(sqlite);
    } else {
        println!("skipped: no sqlite3 here");
    }
    let machines: &[(&str, &[(&str, &str)])] = &[
        ("sandy-bridge", &[("l2", "32K,8,64,next-line"), ("l3", "64K,8,64,inclusive")]),
        ("zen4-victim", &[("l1d", "8K,4,64,plru"), ("l2", "32K,8,64"), ("l3", "64K,16,64")]),
        ("cortex-a53", &[("l1d", "8K,4,64"), ("l2", "64K,16,64,fifo,next-line")]),
        ("cachegrind", &[("l2", "64K,16,64,stride")]),
        (
            "cachegrind",
            &[("l1d", "12K,12,64,lru_plru4"), ("l2", "64K,16,64,QLRU_H00_M1_R0_U1,streamer,late:8")],
        ),
        (
            "zen4",
            &[
                ("l2", "32K,8,64,adjacent-line"),
                ("l3", "64K,16,64,duel:QLRU_H11_M1_R1_U2:QLRU_H11_MR161_R1_U2:16,slices:0x1b5f575440"),
            ],
        ),
        ("zen4", &[("l1d", "4K,4,64,QLRU_H11_M1_R0_U0")]),
    ];
    for (name, overrides) in machines {
        let mut machine = Machine::preset(name).expect("a preset");
        for (level, text) in *overrides {
            machine = machine.with_override(level, text).expect("it fits");
        }
        let modelled = Modelled::of(&machine).expect("it fits").expect("a cache");
        let low = PageRange { start: 0, last: 0x7fff_0000_0000, page_bytes: 2 << 20 };
        let ranges = if machine.tlbs.is_empty() { Vec::new() } else { vec![low] };
        let modelled =
            modelled.with_large_pages(&machine, ranges).expect("it has TLBs where pages are large");
        for command in &commands {
            let (fast, slow) = (planned(command, &modelled.levels), walked(command, &modelled.levels));
            assert_eq!(totals(&fast), totals(&slow), "{name}: {}", command.program.display());
            assert!(fast.cache(1).total() > 0, "{name}");
        }
    }
}
