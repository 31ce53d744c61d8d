//! Who races: lightfoot's commands, the program itself, and the peers, each with the command line
//! that it needs.
//!
//! Cachegrind simulates the geometry that `cache` is given: 32 KiB, 8 ways for both first levels, 8
//! MiB, 16 ways behind them, 64-byte lines. Beside it `cache` simulates what cachegrind cannot:
//! this machine, which is its default, and three processors with their TLBs and three levels. A
//! peer that is not installed is "not measured", with what would provide it.

use crate::race::{Line, FORMER, PEER_HOME};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How often a contender runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Every round.
    Every,
    /// Two rounds of the quick study.
    Most,
    /// Few rounds: it is slow.
    Few,
    /// Only in the full study.
    FullOnly,
}

/// A contender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contender {
    /// Its name in tables.
    pub(super) name: &'static str,
    /// How often it runs.
    pub(super) pace: Pace,
    /// Its command line for a program.
    pub(super) line: fn(&Tools, &Line) -> Result<Line, String>,
}

pub(super) const NATIVE: &str = "native";
pub(super) const EMPTY: &str = "translation alone";
pub(super) const COUNT: &str = "count";
pub(super) const CACHE: &str = "cache";
pub(super) const CACHE_PINNED: &str = "cache, one core";
pub(super) const CACHE_HOST: &str = "cache, this machine";
/// `cache` with processors by name.
pub(super) const CACHE_PROCESSORS: [&str; 3] = ["cache, zen4", "cache, zen5", "cache, sapphire-rapids"];
pub(super) const CACHEGRIND: &str = "cachegrind";
pub(super) const CACHEGRIND_SIM: &str = "cachegrind, simulating";
pub(super) const CACHEGRIND_PINNED: &str = "cachegrind, simulating, one core";
pub(super) const BBCOUNT: &str = "DynamoRIO bbcount";

/// All of them.
pub(super) const CONTENDERS: &[Contender] = &[
    Contender { name: NATIVE, pace: Pace::Every, line: |_, program| Ok(program.clone()) },
    Contender { name: EMPTY, pace: Pace::Most, line: |tools, program| Ok(tools.empty(program)) },
    Contender { name: COUNT, pace: Pace::Every, line: |tools, program| Ok(tools.count(program, &[])) },
    Contender { name: CACHE, pace: Pace::Most, line: |tools, program| Ok(tools.cache(program, HIERARCHY)) },
    Contender {
        name: CACHE_PINNED,
        pace: Pace::Few,
        line: |tools, program| tools.pinned(&tools.cache(program, HIERARCHY)),
    },
    Contender { name: CACHE_HOST, pace: Pace::Most, line: |tools, program| Ok(tools.cache(program, &[])) },
    Contender {
        name: CACHE_PROCESSORS[0],
        pace: Pace::Few,
        line: |tools, program| Ok(tools.cache(program, &["--machine", "zen4"])),
    },
    Contender {
        name: CACHE_PROCESSORS[1],
        pace: Pace::Few,
        line: |tools, program| Ok(tools.cache(program, &["--machine", "zen5"])),
    },
    Contender {
        name: CACHE_PROCESSORS[2],
        pace: Pace::Few,
        line: |tools, program| Ok(tools.cache(program, &["--machine", "sapphire-rapids"])),
    },
    Contender { name: BBCOUNT, pace: Pace::Few, line: Tools::bbcount },
    Contender { name: CACHEGRIND, pace: Pace::Few, line: |tools, program| tools.cachegrind(program, PLAIN) },
    Contender {
        name: CACHEGRIND_SIM,
        pace: Pace::Few,
        line: |tools, program| tools.cachegrind(program, SIMULATING),
    },
    Contender {
        name: CACHEGRIND_PINNED,
        pace: Pace::FullOnly,
        line: |tools, program| tools.pinned(&tools.cachegrind(program, SIMULATING)?),
    },
];

pub(super) const COUNT_FORMER: &str = "count, former build";
pub(super) const CACHE_FORMER: &str = "cache, former build";

/// The commands of this build and of a former one, side by side.
pub(super) const WITH_FORMER: &[Contender] = &[
    Contender { name: COUNT, pace: Pace::Every, line: |tools, program| Ok(tools.count(program, &[])) },
    Contender {
        name: COUNT_FORMER,
        pace: Pace::Every,
        line: |tools, program| Ok(tools.former()?.count(program, &[])),
    },
    Contender { name: CACHE, pace: Pace::Every, line: |tools, program| Ok(tools.cache(program, HIERARCHY)) },
    Contender {
        name: CACHE_FORMER,
        pace: Pace::Every,
        line: |tools, program| Ok(tools.former()?.cache(program, HIERARCHY)),
    },
];

/// Output files, in the folder where everything runs.
const COUNT_REPORT: &str = "count.json";
const CACHEGRIND_OUT: &str = "cachegrind.out";
const PLAIN: &[&str] = &["--cache-sim=no"];
const SIMULATING: &[&str] = &["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];
const HIERARCHY: &[&str] = &["--machine", "cachegrind"];

/// Where the contenders are installed.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    /// For output files.
    pub(super) folder: PathBuf,
    lightfoot: PathBuf,
}

impl Tools {
    /// This very program is the one that is measured.
    pub(super) fn new(folder: &Path) -> anyhow::Result<Tools> {
        Ok(Tools { folder: folder.to_owned(), lightfoot: std::env::current_exe()? })
    }

    /// The tools with a former build in place of this one.
    pub(super) fn former(&self) -> Result<Tools, String> {
        let missing = format!("no former build was named (set {FORMER} to its binary)");
        let lightfoot = std::env::var_os(FORMER).map(PathBuf::from).ok_or(missing)?;
        Ok(Tools { lightfoot, ..self.clone() })
    }

    /// Where `count` leaves its report.
    pub(super) fn count_report(&self) -> PathBuf {
        self.folder.join(COUNT_REPORT)
    }

    /// Where cachegrind leaves its file.
    pub(super) fn cachegrind_out(&self) -> PathBuf {
        self.folder.join(CACHEGRIND_OUT)
    }

    /// `lightfoot count`.
    pub(super) fn count(&self, program: &Line, options: &[&str]) -> Line {
        self.lightfoot("count", options, COUNT_REPORT, program)
    }

    fn cache(&self, program: &Line, machine: &[&str]) -> Line {
        self.lightfoot("cache", machine, "cache.json", program)
    }

    /// The empty tool.
    fn empty(&self, program: &Line) -> Line {
        program.under([self.lightfoot.clone().into(), "tool".into(), "nothing".into(), "--".into()])
    }

    fn lightfoot(&self, command: &str, options: &[&str], report: &str, program: &Line) -> Line {
        let mut words: Vec<OsString> = vec![self.lightfoot.clone().into(), command.into()];
        words.extend(options.iter().map(OsString::from));
        // Peers keep nothing from run to run either.
        words.push("--no-translation-cache".into());
        words.extend(["--format".into(), "json".into(), "-o".into(), report.into(), "--".into()]);
        program.under(words)
    }

    fn cachegrind(&self, program: &Line, options: &[&str]) -> Result<Line, String> {
        let valgrind = found("valgrind").ok_or("valgrind is not installed (apt install valgrind)")?;
        let mut words: Vec<OsString> = vec![valgrind.into(), "--tool=cachegrind".into()];
        words.extend(options.iter().map(OsString::from));
        words.push(format!("--cachegrind-out-file={CACHEGRIND_OUT}").into());
        Ok(program.under(words))
    }

    fn bbcount(&self, program: &Line) -> Result<Line, String> {
        let missing = "drrun with its sample libbbcount.so is not installed \
                       (build DynamoRIO from source and set DYNAMORIO_HOME; Debian has no package)";
        let (drrun, client) = dynamorio().ok_or(missing)?;
        Ok(program.under([drrun.into(), "-c".into(), client.into(), "--".into()]))
    }

    fn pinned(&self, line: &Line) -> Result<Line, String> {
        let taskset = found("taskset").ok_or("taskset is not installed (apt install util-linux)")?;
        Ok(line.under([taskset.into(), "-c".into(), "0".into()]))
    }
}

/// DynamoRIO's launcher and its basic-block counter.
fn dynamorio() -> Option<(PathBuf, PathBuf)> {
    let home = std::env::var_os(PEER_HOME).map(PathBuf::from);
    let drrun = home.as_ref().map(|home| home.join("bin64/drrun")).filter(|path| path.exists());
    let drrun = drrun.or_else(|| found("drrun"))?;
    let home = home.or_else(|| Some(drrun.canonicalize().ok()?.parent()?.parent()?.to_owned()))?;
    let client = ["samples/bin64", "api/bin"].map(|folder| home.join(folder).join("libbbcount.so"));
    Some((drrun, client.into_iter().find(|path| path.exists())?))
}

/// A program in the search path.
fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Tools {
        Tools { folder: "/tmp/x".into(), lightfoot: std::env::current_exe().unwrap() }
    }

    fn program() -> Line {
        Line { words: vec!["prog".into(), "-k".into()], env: Vec::new(), folder: "/".into() }
    }

    #[test]
    fn the_programs_own_options_come_last() {
        let shown = tools().count(&program(), &["--rep", "iterations"]).shown();
        assert_eq!(
            shown,
            "lightfoot count --rep iterations --no-translation-cache --format json -o count.json -- prog -k"
        );
    }

    #[test]
    fn a_missing_peer_says_what_would_provide_it() {
        for contender in CONTENDERS {
            if let Err(reason) = (contender.line)(&tools(), &program()) {
                assert!(reason.contains("install") || reason.contains("build"), "{reason}");
            }
        }
    }
}
