//! Makes the inputs of the programs. They are the same in every run of the study.

use anyhow::{bail, Result};
use measure::random::Random;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Folders with source text that every Debian has, the essential one first.
const SOURCES: &[&str] = &["/usr/lib/x86_64-linux-gnu/perl-base", "/usr/share/perl", "/usr/include"];

/// Writes `bytes` of source text, in the order of the files' paths.
pub(super) fn text(folder: &Path, bytes: usize) -> Result<()> {
    let mut text = Vec::with_capacity(bytes);
    for source in SOURCES {
        let walk =
            ignore::WalkBuilder::new(source).standard_filters(false).sort_by_file_path(Ord::cmp).build();
        let files = walk.filter_map(Result::ok).map(ignore::DirEntry::into_path);
        let named =
            |path: &PathBuf| path.extension().is_some_and(|end| end == "pm" || end == "pl" || end == "h");
        for path in files.filter(named) {
            if text.len() < bytes {
                text.extend(std::fs::read(path).unwrap_or_default());
            }
        }
    }
    if text.is_empty() {
        bail!("no source text in {}: apt-get install perl-base", SOURCES.join(", "));
    }
    while text.len() < bytes {
        text.extend_from_within(..text.len().min(bytes - text.len()));
    }
    text.truncate(bytes);
    Ok(std::fs::write(folder.join("input"), text)?)
}

/// Writes a random minimum-cost flow of `nodes` nodes in the form of the first DIMACS challenge:
/// half of the nodes supply, half demand; six arcs leave a node, and a dear path joins all of them,
/// so that a flow exists.
pub(super) fn network(folder: &Path, nodes: usize) -> Result<()> {
    let mut random = Random::new(1);
    // The seed is fixed, so every run of the study solves one and the same problem.
    let mut below = |limit: usize| random.below(limit);
    let half = nodes / 2;
    let supplies: Vec<usize> = (0..half).map(|_| 1 + below(50)).collect();
    let total: usize = supplies.iter().sum();
    let mut arcs = String::new();
    let mut count = 0;
    for _ in 0..6 * nodes {
        let (from, to, capacity, cost) = (below(nodes), below(nodes), 1 + below(200), 5 + below(3000));
        if from != to {
            writeln!(arcs, "a {} {} 0 {capacity} {cost}", from + 1, to + 1)?;
            count += 1;
        }
    }
    // Random arcs alone might leave a consumer without supply. This path has room for everything,
    // at a price that makes it the last resort.
    for node in 1..nodes {
        writeln!(arcs, "a {node} {} 0 10000000 50000\na {} {node} 0 10000000 50000", node + 1, node + 1)?;
        count += 2;
    }
    let mut out = format!("p min {nodes} {count}\n");
    for (node, supply) in (1..).zip(&supplies) {
        writeln!(out, "n {node} {supply}")?;
    }
    // Demands must add up to the supplies: the first consumer takes what the division leaves.
    let consumers = nodes - half;
    for consumer in 0..consumers {
        let rest = if consumer == 0 { total % consumers } else { 0 };
        writeln!(out, "n {} -{}", half + consumer + 1, total / consumers + rest)?;
    }
    Ok(std::fs::write(folder.join("input"), out + &arcs)?)
}

/// Writes a script for SIMH's VAX whose guest repeats its phases `repeats` times.
pub(super) fn guest(folder: &Path, repeats: usize) -> Result<()> {
    let script = include_str!("inputs/processor.simh").replace("REPEATS", &format!("{repeats:X}"));
    Ok(std::fs::write(folder.join("input"), script)?)
}

/// Middle games of an opening that is centuries old, the Queen's Gambit, and of the Spanish game.
const POSITIONS: &[&str] = &[
    "r1bq1rk1/pp2bppp/2n1pn2/3p4/2PP4/2N2N2/PP2BPPP/R1BQ1RK1 w - -",
    "rnbq1rk1/ppp1bppp/4pn2/3p2B1/2PP4/2N2N2/PP2PPPP/R2QKB1R w KQ -",
    "r1bqk2r/1pppbppp/p1n2n2/4p3/B3P3/5N2/PPPP1PPP/RNBQR1K1 b kq -",
    "r1bq1rk1/2p1bppp/p1np1n2/1p2p3/4P3/1BP2N1P/PP1P1PP1/RNBQR1K1 b - -",
    "rnbq1rk1/pp3ppp/4pn2/2pp4/1bPP4/2NBPN2/PP3PPP/R1BQ1RK1 w - -",
    "r2q1rk1/pb1nbppp/1p2pn2/2pp4/2PP4/1PN1PN2/PB2BPPP/R2Q1RK1 w - -",
];

/// Writes commands for a chess program; the hundreds of `size` say how many positions, the rest
/// says how many half moves deep.
pub(super) fn positions(folder: &Path, size: usize) -> Result<()> {
    let (count, depth) = (size / 100, size % 100);
    let chosen: Vec<&str> = POSITIONS.iter().copied().cycle().take(count).collect();
    let commands = format!("depth {depth}\n{}\nquit\n", chosen.join("\n"));
    Ok(std::fs::write(folder.join("input"), commands)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Writer = fn(&Path, usize) -> Result<()>;

    #[test]
    fn a_network_supplies_what_it_demands() {
        let folder = tempfile::tempdir().unwrap();
        network(folder.path(), 101).unwrap();
        let written = std::fs::read_to_string(folder.path().join("input")).unwrap();
        let field = |line: &str, at: usize| line.split(' ').nth(at).unwrap().parse::<i64>().unwrap();
        let balance: i64 =
            written.lines().filter(|line| line.starts_with("n ")).map(|line| field(line, 2)).sum();
        assert_eq!(balance, 0);
        let arcs = written.lines().filter(|line| line.starts_with("a ")).count() as i64;
        assert_eq!(field(written.lines().next().unwrap(), 3), arcs);
    }

    #[test]
    fn inputs_are_the_same_every_time_and_as_large_as_asked() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let writers: [(Writer, usize); 4] = [(text, 100_000), (network, 50), (guest, 17), (positions, 306)];
        for (write, size) in writers {
            let both = [&one, &two].map(|folder| {
                write(folder.path(), size).unwrap();
                std::fs::read(folder.path().join("input")).unwrap()
            });
            assert_eq!(both[0], both[1]);
            assert!(size != 100_000 || both[0].len() == size);
        }
        let commands = std::fs::read_to_string(one.path().join("input")).unwrap();
        assert!(commands.starts_with("depth 6\n") && commands.lines().count() == 5, "{commands}");
        guest(one.path(), 17).unwrap();
        let script = std::fs::read_to_string(one.path().join("input")).unwrap();
        assert!(script.contains("dep 8000 11\n"), "{script}");
    }
}
