//! Races whole processes: this search and other programs on the frozen list of patterns and four
//! kinds of text.
//!
//! `cargo bench -p lightfoot-grep --bench race -- [--pattern PART] [--text KIND] [--megabytes N]
//! [--write-bytes N] [--rounds N] [--own WORDS] [--peer NAME=PROGRAM]... [--most-seconds N]
//! [--small] [--tree FOLDER] [--threads]`. Texts are written in pieces of 64 KiB, as programs write. Without `--peer` the
//! programs `rg`, `ugrep` and `grep` of the search path take part. Every cell is `-c` of one
//! pattern on one text: all programs in turn, `--rounds` times, medians of wall time. `--small`
//! races starts on a file of 1 KB, `--tree` counts in all files of a folder, and `--threads`
//! compares one thread with two. `--own` are further words for this search alone, such as `-j1`,
//! which is the default of the table.
//!
//! A program that counts other lines than this search takes no part in that cell; the dialects of
//! GNU grep are tried in turn. A program that takes longer than `--most-seconds` is ended: its
//! cell and its means then hold what that time is, at least, and the cell has a `>`. **Leaves
//! out** output of lines, which `lightfoot study regex` and the command's tests cover.

#[path = "../../../pattern/benches/composed/mod.rs"]
mod composed;
mod contender;

use composed::{compose, frozen, Entry};
use contender::{Contender, Dialect, Speed};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Starts of each program in a race on a small file.
const STARTS: usize = 300;

/// The kinds of text.
const TEXTS: [&str; 4] = ["code", "english", "many", "long"];

struct Arguments {
    part: String,
    text: Option<String>,
    megabytes: usize,
    write_bytes: usize,
    rounds: usize,
    own: Vec<String>,
    peers: Vec<(String, PathBuf)>,
    most: Duration,
    race: Race,
}

/// What is raced.
enum Race {
    Table,
    Small,
    Tree(PathBuf),
    Threads,
}

fn arguments() -> Arguments {
    let mut found = Arguments {
        part: String::new(),
        text: None,
        megabytes: 128,
        write_bytes: 64 << 10,
        rounds: 3,
        own: vec!["-j1".to_owned()],
        peers: Vec::new(),
        most: Duration::from_secs(10),
        race: Race::Table,
    };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--pattern" => found.part = value(),
            "--text" => found.text = Some(value()),
            "--megabytes" => found.megabytes = value().parse().expect("--megabytes needs a number"),
            "--write-bytes" => found.write_bytes = value().parse().expect("--write-bytes needs a number"),
            "--rounds" => found.rounds = value().parse().expect("--rounds needs a number"),
            "--own" => found.own = value().split_whitespace().map(str::to_owned).collect(),
            "--peer" => {
                let peer = value();
                let (name, path) = peer.split_once('=').expect("--peer needs NAME=PROGRAM");
                found.peers.push((name.to_owned(), PathBuf::from(path)));
            }
            "--most-seconds" => {
                let seconds = value().parse().expect("--most-seconds needs a number");
                found.most = Duration::from_secs_f64(seconds);
            }
            "--small" => found.race = Race::Small,
            "--tree" => found.race = Race::Tree(PathBuf::from(value())),
            "--threads" => found.race = Race::Threads,
            _ => panic!("unknown word {word}"),
        }
    }
    if found.peers.is_empty() {
        found.peers = ["rg", "ugrep", "grep"].map(|name| (name.to_owned(), PathBuf::from(name))).into();
    }
    found
}

fn main() {
    let arguments = arguments();
    let own = Contender::own(&arguments.own);
    let peers: Vec<Contender> =
        arguments.peers.iter().filter_map(|(name, path)| Contender::peer(name, path)).collect();
    peers.iter().for_each(|peer| println!("{}: {}", peer.name, peer.version));
    let folder = tempfile::tempdir().expect("a folder for the texts");
    match &arguments.race {
        Race::Table => table(&arguments, &own, &peers, folder.path()),
        Race::Small => small(&arguments, &own, &peers, folder.path()),
        Race::Tree(tree) => on_tree(&arguments, &own, &peers, tree),
        Race::Threads => threads(&arguments, folder.path()),
    }
}

/// The chosen patterns of the list.
fn chosen(arguments: &Arguments) -> Vec<Entry> {
    frozen().into_iter().filter(|entry| entry.name.contains(&arguments.part)).collect()
}

/// Writes a text of a kind, and answers its path.
///
/// The size of the writes decides how the system keeps a file in memory: after one write of a
/// hundred megabytes it lies on huge pages, which are copied, and mapped, at twice the rate.
fn written(arguments: &Arguments, kind: &str, folder: &Path) -> PathBuf {
    let path = folder.join(kind);
    let mut file = std::fs::File::create(&path).expect("a file for the text");
    for piece in compose(kind, arguments.megabytes << 20).chunks(arguments.write_bytes) {
        file.write_all(piece).expect("the text is written");
    }
    path
}

/// Milliseconds.
fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp()
}

/// The table of patterns and texts: milliseconds of this search, and how many times as long each
/// peer took.
fn table(arguments: &Arguments, own: &Contender, peers: &[Contender], folder: &Path) {
    print!("{:<34} {:>7} {:>9} {:>8}", "pattern", "text", "lines", "ms");
    peers.iter().for_each(|peer| print!(" {:>8}", peer.name));
    println!(" {:>8}", "fastest");
    let mut cells: Vec<(bool, Vec<Option<f64>>)> = Vec::new();
    for kind in TEXTS.iter().filter(|kind| arguments.text.as_deref().is_none_or(|text| text == **kind)) {
        let text = written(arguments, kind, folder);
        for entry in chosen(arguments) {
            let (lines, times) = race(arguments, arguments.rounds, own, peers, &entry.pattern, &text);
            let ours = times[0].expect("this search counts").milliseconds();
            let ratios: Vec<Option<f64>> =
                times[1..].iter().map(|time| time.map(|time| time.milliseconds() / ours)).collect();
            // The kind of text that the pattern was chosen for has a star.
            let meant = if entry.text == *kind { '*' } else { ' ' };
            print!("{:<34} {kind:>7}{meant}{lines:>9} {ours:>8.1}", entry.name);
            for (ratio, time) in ratios.iter().zip(&times[1..]) {
                let is_slow = time.is_some_and(|time| time.speed == Speed::Slow);
                let mark = if is_slow { ">" } else { "" };
                print!(" {:>8}", ratio.map_or("-".to_owned(), |ratio| format!("{mark}{ratio:.2}")));
            }
            let fastest = ratios.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            println!(" {fastest:>8.2}{}", if fastest < 1.0 { " <" } else { "" });
            cells.push((entry.classes, ratios));
        }
        std::fs::remove_file(text).expect("the text is removed");
    }
    for (at, peer) in peers.iter().enumerate() {
        let of = |classes: Option<bool>| {
            let cells = cells.iter().filter(|cell| classes.is_none_or(|classes| cell.0 == classes));
            let ratios: Vec<f64> = cells.filter_map(|cell| cell.1[at]).collect();
            format!("{:.2} ({} cells)", geometric_mean(&ratios), ratios.len())
        };
        println!(
            "geometric mean against {}: all {}, classes {}, others {}",
            peer.name,
            of(None),
            of(Some(true)),
            of(Some(false))
        );
    }
}

/// The number of lines, and medians of all programs on one file, this search first.
fn race(
    arguments: &Arguments,
    rounds: usize,
    own: &Contender,
    peers: &[Contender],
    pattern: &str,
    text: &Path,
) -> (String, Vec<Option<Time>>) {
    let most = arguments.most;
    let lines = own.count(Dialect::Usual, pattern, text, Duration::MAX).lines.expect("this search counts");
    let dialects: Vec<Option<(Dialect, Speed)>> =
        peers.iter().map(|peer| peer.dialect_for(pattern, text, &lines, most)).collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); peers.len() + 1];
    for _ in 0..rounds {
        times[0].push(own.count(Dialect::Usual, pattern, text, Duration::MAX).time);
        for ((peer, dialect), times) in peers.iter().zip(&dialects).zip(&mut times[1..]) {
            match dialect {
                Some((dialect, Speed::Fast)) => times.push(peer.count(*dialect, pattern, text, most).time),
                Some((_, Speed::Slow)) => times.push(most),
                None => {}
            }
        }
    }
    let speeds =
        [Speed::Fast].into_iter().chain(dialects.iter().map(|one| one.map_or(Speed::Fast, |one| one.1)));
    let times = times.into_iter().zip(speeds);
    let medians = times.map(|(times, speed)| median(times).map(|median| Time { median, speed }));
    (lines, medians.collect())
}

/// The median of a program's times; of a slow one, the time after which it was ended.
#[derive(Clone, Copy)]
struct Time {
    median: Duration,
    speed: Speed,
}

impl Time {
    fn milliseconds(self) -> f64 {
        milliseconds(self.median)
    }
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// Starts on a file of 1 KB.
fn small(arguments: &Arguments, own: &Contender, peers: &[Contender], folder: &Path) {
    let text = folder.join("small");
    std::fs::write(&text, compose("english", 1 << 10)).expect("the text is written");
    for (name, pattern) in [("literal", "mountain"), ("class", "[a-z]+ing"), ("Unicode", r"\w+ing\b")] {
        let (_, times) = race(arguments, STARTS.max(arguments.rounds), own, peers, pattern, &text);
        print!("{name:<10} {:>7.2} ms", times[0].expect("this search counts").milliseconds());
        for (peer, time) in peers.iter().zip(&times[1..]) {
            match time {
                Some(time) => print!("  {} {:.2} ms", peer.name, time.milliseconds()),
                None => print!("  {} -", peer.name),
            }
        }
        println!();
    }
}

/// Counts in all files of a folder, with as many threads as each program takes.
fn on_tree(arguments: &Arguments, own: &Contender, peers: &[Contender], tree: &Path) {
    for (name, pattern) in [
        ("rare literal", "mutex_unlock_never"),
        ("literal", "return"),
        ("class", r"[a-z]+ing\b"),
        ("hexadecimal", r"\b[0-9a-f]{4,8}\b"),
        ("capitalised pair", r"\p{Lu}\w+ \p{Lu}\w+"),
    ] {
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); peers.len() + 1];
        for _ in 0..arguments.rounds {
            for (contender, times) in std::iter::once(own).chain(peers).zip(&mut times) {
                times.push(contender.tree(pattern, tree));
            }
        }
        let times: Vec<Option<Duration>> = times.into_iter().map(median).collect();
        let ours = milliseconds(times[0].expect("this search counts"));
        print!("{name:<18} {ours:>8.1} ms");
        for (peer, time) in peers.iter().zip(&times[1..]) {
            print!("  {} {:.2}", peer.name, time.map_or(f64::NAN, milliseconds) / ours);
        }
        println!();
    }
}

/// One thread and two on one file.
fn threads(arguments: &Arguments, folder: &Path) {
    let (one, two) = (Contender::own(&["-j1".to_owned()]), Contender::own(&["-j2".to_owned()]));
    for kind in TEXTS.iter().filter(|kind| arguments.text.as_deref().is_none_or(|text| text == **kind)) {
        let text = written(arguments, kind, folder);
        let mut ratios = Vec::new();
        for entry in chosen(arguments) {
            let rounds = arguments.rounds;
            let two = std::slice::from_ref(&two);
            let (_, times) = race(arguments, rounds, &one, two, &entry.pattern, &text);
            let [one, two] =
                [times[0], times[1]].map(|time| time.expect("this search counts").milliseconds());
            println!("{:<34} {kind:>7} {one:>8.1} {two:>8.1} {:>6.2}", entry.name, one / two);
            ratios.push(one / two);
        }
        println!("{kind}: geometric mean {:.2}", geometric_mean(&ratios));
        std::fs::remove_file(text).expect("the text is removed");
    }
}
