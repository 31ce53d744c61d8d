//! The programs: small ones of ours with the shape of the paper's, their software metrics, and
//! their builds.
//!
//! The paper's programs are not free, and its instrumentation is in the source, put there by a
//! compiler extension. So these are C programs with a counter at sixteen places each, numbered from
//! the rarest to the most frequent, and a build for every number of counters and every layout.
//! Builds lie in folders whose names have one length and are started by the same relative path,
//! because the length of a name moves the stack as an environment does.

use crate::workshop::Workshop;
use anyhow::{bail, Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// Counters of a program.
pub(super) const COUNTERS: usize = 16;

/// How much a program does, and how often it is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Its argument.
    pub(super) argument: u32,
    /// Cycles of the simulated machine.
    pub(super) interval_cycles: u64,
}

/// A program of the study.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    /// The paper's benchmark.
    pub(super) stands_for: &'static str,
    pub(super) about: &'static str,
    source: &'static str,
    /// Functions whose calls are counted without a charge: the undisturbed truth about software
    /// metrics.
    pub(super) uncharged: [&'static str; 2],
    pub(super) quick: Size,
    pub(super) full: Size,
}

const fn size(argument: u32, interval_cycles: u64) -> Size {
    Size { argument, interval_cycles }
}

/// All of them, in the order of the paper's Table 1.
pub(super) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "blocks",
        stands_for: "bzip",
        about: "block-sorting compression of synthetic text",
        source: include_str!("programs/blocks.c"),
        uncharged: ["fn:compare", "fn:front"],
        quick: size(1, 25_000),
        full: size(12, 33_000),
    },
    Subject {
        name: "simplex",
        stands_for: "mcf",
        about: "network simplex on random transportation problems",
        source: include_str!("programs/simplex.c"),
        uncharged: ["fn:reduced", "fn:room"],
        quick: size(2, 50_000),
        full: size(6, 27_000),
    },
    Subject {
        name: "processor",
        stands_for: "sim-outorder",
        about: "simulator of a processor with a reorder window, two caches and a branch predictor",
        source: include_str!("programs/processor.c"),
        uncharged: ["fn:look", "fn:retire"],
        quick: size(1, 30_000),
        full: size(8, 28_000),
    },
    Subject {
        name: "game",
        stands_for: "sjeng",
        about: "alpha-beta search of Othello positions with a transposition table",
        source: include_str!("programs/game.c"),
        uncharged: ["fn:evaluate", "fn:flips"],
        quick: size(6, 40_000),
        full: size(54, 50_000),
    },
];

const COUNTER: &str = include_str!("programs/counter.h");

/// Where counters lie: bytes from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// Eight to a line.
    Packed,
    /// A page each: all in one set of the first level.
    Page,
}

impl Spacing {
    fn bytes(self) -> usize {
        match self {
            Spacing::Packed => 8,
            Spacing::Page => 4096,
        }
    }
}

/// Compiles a program with its first `counters` counters; the folder that it lies in, as `program`.
///
/// # Errors
/// When there is no C compiler, or it fails.
pub(super) fn build(
    shop: &Workshop,
    subject: &Subject,
    counters: usize,
    spacing: Spacing,
) -> Result<PathBuf> {
    let folder = shop.path().join(format!("{:.4}-{counters:02}-{:04}", subject.name, spacing.bytes()));
    if folder.join("program").exists() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("counter.h"), COUNTER)?;
    std::fs::write(folder.join("program.c"), subject.source)?;
    let output = Command::new("gcc")
        .args(["-O2", "-Wl,--build-id=sha1"])
        .arg(format!("-DMETRICS={counters}"))
        .arg(format!("-DSTRIDE={}", spacing.bytes()))
        .args(["-o", "program", "program.c"])
        .current_dir(&folder)
        .output()
        .context("cannot compile the study's programs: install gcc and libc6-dev")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("gcc cannot compile {}: {}", subject.name, stderr.lines().next().unwrap_or_default());
    }
    Ok(folder)
}
