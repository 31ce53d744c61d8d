//! Sets of patterns: 8, 64 and 500 of three kinds, beside the processor.
//!
//! The kinds are those of published rule sets, which are not to be had everywhere: strings, strings
//! with classes in them, and pairs of strings with anything between. The words are drawn from a
//! fixed sequence, a part of them from the text, so that some match. Asked for are the lines in
//! which any pattern matches.

use crate::rates::Text;
use crate::{median, processor, Arguments};
use lightfoot_pattern::compile::CompileOptions;
use lightfoot_pattern::kernel::cuda::{Cuda, CudaError, GpuSet};
use lightfoot_pattern::Regex;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const SETS: [usize; 3] = [8, 64, 500];
const ROUNDS: usize = 5;
/// How a rule is written from a word.
type Kind = (&'static str, fn(&[u8], &mut Random) -> String);

const KINDS: &[Kind] = &[("strings", string), ("classes", classes), ("pairs", pair)];

/// Numbers of a fixed sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

fn string(word: &[u8], _: &mut Random) -> String {
    regex_syntax::escape(&String::from_utf8_lossy(word))
}

/// Two letters may be others of their kind.
fn classes(word: &[u8], random: &mut Random) -> String {
    let open = [random.below(word.len()), random.below(word.len())];
    let letter = |(at, &byte): (usize, &u8)| match byte {
        _ if !open.contains(&at) => regex_syntax::escape(&char::from(byte).to_string()),
        b'0'..=b'9' => String::from("[0-9]"),
        b'a'..=b'm' => String::from("[a-m]"),
        _ => String::from("[n-zA-Z_]"),
    };
    word.iter().enumerate().map(letter).collect()
}

fn pair(word: &[u8], random: &mut Random) -> String {
    let at = 1 + random.below(word.len() - 1);
    let part = |part: &[u8]| regex_syntax::escape(&String::from_utf8_lossy(part));
    format!("{}[^\\n]*{}", part(&word[..at]), part(&word[at..]))
}

/// Words of 6 to 12 bytes; every eighth is in the text.
fn words(text: &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut random = Random(2025);
    let is_word = |word: &[u8]| word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    (0..count)
        .map(|number| {
            let length = 6 + random.below(7);
            if number % 8 > 0 {
                return (0..length)
                    .map(|_| b"etaoinshrdlucmfwypvbgkjqxz_0123456789"[random.below(37)])
                    .collect();
            }
            loop {
                let at = random.below(text.len() - length);
                if is_word(&text[at..at + length]) {
                    return text[at..at + length].to_vec();
                }
            }
        })
        .collect()
}

/// Prints the table.
pub(crate) fn table(cuda: &Arc<Cuda>, arguments: &Arguments) -> Result<(), CudaError> {
    println!("\n## Many patterns at once\n");
    println!(
        "Lines that any pattern of a set matches, of {} resident bytes of code, in GB/s; the processor runs the engine of the library's choice.\n",
        arguments.bytes
    );
    println!("| rules | patterns | compiled, ms | lines | resident | engine | one thread | {} threads | card over those | how |", processor::threads());
    println!("|---|---:|---:|---:|---:|---|---:|---:|---:|---|");
    let text = match &arguments.rules {
        Some(folder) => Text::of(cuda, "given", &read(&folder.join("text")), arguments.bytes)?,
        None => Text::new(cuda, "code", arguments.bytes)?,
    };
    for kind in KINDS {
        for count in SETS {
            let rules = match &arguments.rules {
                Some(folder) => given(&folder.join(format!("{}_{count}.regex", kind.0))),
                None => drawn(text.pinned.bytes(), kind, count),
            };
            if let Err(reason) = row(cuda, &text, kind.0, &rules) {
                println!("| {} | {count} | {reason} | | | | | | | |", kind.0);
            }
        }
    }
    Ok(())
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rules of a file, each between slashes.
fn given(path: &Path) -> Vec<String> {
    let text = String::from_utf8(read(path)).expect("rules are UTF-8");
    let rule = |line: &str| line.strip_prefix('/').and_then(|line| line.strip_suffix('/')).map(str::to_owned);
    text.lines().map(|line| rule(line).expect("a rule between slashes")).collect()
}

fn drawn(text: &[u8], (_, write): &Kind, count: usize) -> Vec<String> {
    let mut random = Random(7);
    words(text, count).iter().map(|word| write(word, &mut random)).collect()
}

fn row(cuda: &Arc<Cuda>, text: &Text, kind: &str, rules: &[String]) -> Result<(), String> {
    let to_text = |error: CudaError| error.to_string();
    let (bytes, count) = (text.pinned.bytes(), rules.len());
    let hirs: Vec<_> = rules
        .iter()
        .map(|rule| regex_syntax::ParserBuilder::new().utf8(false).build().parse(rule).expect("rules parse"))
        .collect();
    let started = Instant::now();
    let set = GpuSet::new(cuda, &hirs, &CompileOptions::default()).map_err(to_text)?;
    let compiled = started.elapsed().as_secs_f64() * 1e3;
    // The first search compiles what no set is special to and takes memory.
    set.count_lines(&text.resident).map_err(to_text)?;
    let times = (0..ROUNDS).map(|_| set.count_lines_timed(&text.resident)).collect::<Result<Vec<_>, _>>();
    let times = times.map_err(to_text)?;
    let lines = times[0].0;
    let regex = Regex::new(&rules.join("|")).map_err(|error| error.to_string())?;
    let some = &bytes[..bytes.len().min(64 << 20)];
    let one = some.len() as f64 / processor::seconds(&regex, some) / 1e9;
    let (expected, all) = processor::count(&regex, bytes);
    assert_eq!(lines, expected, "{count} {kind}: the card's count and the processor's");
    let rate = |seconds: f64| bytes.len() as f64 / seconds / 1e9;
    let resident = rate(median(times.into_iter().map(|(_, seconds)| seconds).collect()));
    println!(
        "| {kind} | {count} | {compiled:.0} | {lines} | {resident:.0} | {} | {one:.2} | {:.1} | {:.1} | {} |",
        regex.engine(),
        rate(all),
        resident / rate(all),
        set.explain()
    );
    Ok(())
}
