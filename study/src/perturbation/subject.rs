//! The programs of the study: real ones, unmodified, as Debian ships them.
//!
//! Each stands for a benchmark of the paper's Table 1. The executable is copied into a folder of
//! the study and started by a relative path, because the length of a path moves the stack, and
//! because a copy has no set-group-id bit. Its input is made here, the same every time. The toy
//! programs with counters in their source, which stood here once, are a test of the command now
//! (`lightfoot/tests/compiled_in.rs`). Deliberately absent: SPEC CPU2006, which is not free.

use super::input;
use anyhow::{bail, Context, Result};
use std::path::{Path, PathBuf};

/// A program.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    /// The paper's benchmark.
    pub(super) stands_for: &'static str,
    pub(super) about: &'static str,
    /// The Debian package that has it.
    pub(super) package: &'static str,
    /// Where it is installed.
    places: &'static [&'static str],
    /// The files whose functions may be metrics: the program and its own libraries.
    pub(super) files: &'static [&'static str],
    /// Writes the input into a folder.
    input: fn(&Path, usize) -> Result<()>,
    pub(super) arguments: &'static [&'static str],
    /// The file in the folder that is its standard input.
    pub(super) stdin: Option<&'static str>,
    pub(super) sizes: Sizes,
}

/// Sizes of an input, each as the subject's generator counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) quick: usize,
    pub(super) full: usize,
    /// Of runs without a simulation, which are a hundred times as fast.
    pub(super) native_quick: usize,
    pub(super) native_full: usize,
    /// Seconds of one simulated run of the full size, on a machine of 2024.
    pub(super) full_seconds: f64,
}

/// All of them, in the order of the paper's Table 1.
pub(super) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "bzip2",
        stands_for: "bzip",
        about: "compression of the source text of Perl's modules",
        package: "bzip2",
        places: &["/usr/bin/bzip2", "/bin/bzip2"],
        files: &["bzip2", "libbz2"],
        input: input::text,
        arguments: &["-k", "-c", "input"],
        stdin: None,
        sizes: Sizes {
            quick: 300_000,
            full: 1_000_000,
            native_quick: 8_000_000,
            native_full: 50_000_000,
            full_seconds: 2.0,
        },
    },
    Subject {
        name: "dimacs-solver",
        stands_for: "mcf",
        about: "network simplex of the LEMON library on a random minimum-cost flow",
        package: "liblemon-utils",
        places: &["/usr/bin/dimacs-solver"],
        files: &["dimacs-solver", "libstdc++"],
        input: input::network,
        arguments: &["-q", "input"],
        stdin: None,
        sizes: Sizes {
            quick: 4_000,
            full: 6_000,
            native_quick: 12_000,
            native_full: 40_000,
            full_seconds: 3.0,
        },
    },
    Subject {
        name: "vax",
        stands_for: "sim-outorder",
        about: "the VAX simulator of SIMH running probes, column sums, a sort and a sieve",
        package: "simh",
        places: &["/usr/bin/vax"],
        files: &["vax"],
        input: input::guest,
        arguments: &["input"],
        stdin: None,
        sizes: Sizes { quick: 1, full: 3, native_quick: 20, native_full: 130, full_seconds: 5.0 },
    },
    Subject {
        name: "phalanx",
        stands_for: "sjeng",
        about: "chess: positions searched to a fixed depth, without a book",
        package: "phalanx",
        places: &["/usr/games/phalanx", "/usr/bin/phalanx"],
        files: &["phalanx"],
        input: input::positions,
        arguments: &["-b", "-", "-o", "-", "-l", "-", "-x-", "-t", "8192", "-f", "100000"],
        stdin: Some("input"),
        sizes: Sizes { quick: 206, full: 208, native_quick: 608, native_full: 611, full_seconds: 6.0 },
    },
];

impl Subject {
    /// Where the program is.
    ///
    /// # Errors
    /// When it is not installed: a sentence with the command that installs it.
    pub(super) fn installed(&self) -> Result<&'static Path> {
        let Some(installed) = self.places.iter().map(Path::new).find(|place| place.exists()) else {
            bail!("{} is not installed: apt-get install {}", self.name, self.package);
        };
        Ok(installed)
    }
}

/// A program with its input, in a folder of its own.
#[derive(Clone, Debug)]
pub(super) struct Bench {
    pub(super) subject: &'static Subject,
    pub(super) folder: PathBuf,
}

impl Bench {
    /// Copies the program and writes its input.
    ///
    /// # Errors
    /// When the program is not installed, or the folder cannot be written to.
    pub(super) fn new(shop: &Path, subject: &'static Subject, size: usize) -> Result<Bench> {
        let installed = subject.installed()?;
        // Folders have names of one length: the path of the folder stands in the environment of
        // some programs.
        let folder = shop.join(format!("{:.3}-{size:012}", subject.name));
        std::fs::create_dir_all(&folder)?;
        let program = folder.join(subject.name);
        std::fs::copy(installed, &program).with_context(|| format!("cannot copy {}", installed.display()))?;
        executable(&program)?;
        (subject.input)(&folder, size)?;
        Ok(Bench { subject, folder })
    }

    /// A folder with the program and its input alone: what an earlier run left behind, such as the
    /// file in which a chess program notes positions, must not reach the next one.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn fresh(&self, number: usize) -> Result<PathBuf> {
        let folder = self.folder.join(format!("{number:03}"));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir(&folder)?;
        for name in [self.subject.name, "input"] {
            std::fs::hard_link(self.folder.join(name), folder.join(name))?;
        }
        Ok(folder)
    }

    /// The program as it is started.
    pub(super) fn program(&self) -> String {
        format!("./{}", self.subject.name)
    }

    /// The metrics of all functions that may be counted.
    pub(super) fn every_function(&self) -> String {
        self.subject.files.iter().map(|file| format!("fn:{file}!*")).collect::<Vec<_>>().join(",")
    }
}

/// Makes a file executable, without the set-id bits that a tracer cannot honour.
fn executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}
