//! Runs the benchmarks of a program: natively each once, under `lightfoot bench` each in a copy of
//! the process.
//!
//! The runner works in a thread of its own. The stack of a thread begins at a page, wherever
//! environment and arguments have moved that of the process, so neither changes what is counted.

use crate::bencher::{Bencher, Passes};
use crate::process::run_copied;
use crate::request::{is_counted, Announcement};
use crate::settings::Settings;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitCode;

/// By these bytes `lightfoot bench` knows a program of benchmarks without running it.
static PROTOCOL: [u8; 28] = *b"lightfoot-bench protocol: 1\0";

/// The stack of the thread in which benchmarks run.
const STACK_BYTES: usize = 8 << 20;
/// The status of a program whose benchmarks panicked, as of Rust's test programs.
const PANICKED: u8 = 101;
/// The status of a copy that called no routine.
const NOTHING_CALLED: u8 = 102;
/// The status of a command line that cannot be used.
const MISUSED: u8 = 2;

/// Where a benchmark is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The source file.
    pub file: &'static str,
    /// The line in it.
    pub line: u32,
}

/// What happens to a benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// Its name is written.
    Lists,
    /// It is called once in this process.
    #[default]
    Tries,
    /// It is counted in a copy of this process.
    Counts,
}

/// Runs benchmarks as they are handed over.
#[derive(Debug, Default)]
pub struct Runner {
    settings: Settings,
    mode: Mode,
    /// Benchmarks that the filters mean.
    meant: u64,
    ran: u64,
    failed: Vec<String>,
}

impl Runner {
    /// Runs the benchmark of a function, unless the command line leaves it out. `path` begins with
    /// the crate's name, which is the program's too; `body` calls a routine with the bencher.
    pub fn benchmark(&mut self, path: &str, place: Place, body: &mut dyn FnMut(&mut Bencher)) {
        self.named(path.split_once("::").map_or(path, |(_, rest)| rest), place, body);
    }

    /// Runs a benchmark, unless the command line leaves it out.
    pub(crate) fn named(&mut self, name: &str, place: Place, body: &mut dyn FnMut(&mut Bencher)) {
        // What is allocated is the same whether or not the benchmark is chosen: the memory of those
        // behind it does not depend on that.
        let Ok(announcement) = Announcement::new(name, (place.file, place.line)) else {
            return self.fails(name, "its name holds a NUL: take that out");
        };
        if !self.settings.means(name) {
            return;
        }
        self.meant += 1;
        if !self.settings.has_number(self.meant - 1) {
            return;
        }
        match self.mode {
            Mode::Lists => println!("{name}: benchmark"),
            Mode::Tries => self.tries(name, body),
            Mode::Counts => self.counts(name, &announcement, body),
        }
        self.ran += 1;
    }

    fn tries(&mut self, name: &str, body: &mut dyn FnMut(&mut Bencher)) {
        let passes =
            if self.settings.stays_here { self.passes(Passes::WarmThenMarked) } else { Passes::Once };
        let mut bencher = Bencher::new(passes);
        match catch_unwind(AssertUnwindSafe(|| body(&mut bencher))) {
            Err(_) => self.fails(name, "it panicked"),
            Ok(()) if !bencher.has_called() => self.fails(name, "it calls no routine: call iter"),
            Ok(()) => println!("{name} ... ok"),
        }
    }

    fn counts(&mut self, name: &str, announcement: &Announcement, body: &mut dyn FnMut(&mut Bencher)) {
        let passes = self.passes(Passes::MarkedTwice);
        let ended = run_copied(|| {
            announcement.announce();
            let mut bencher = Bencher::new(passes);
            match catch_unwind(AssertUnwindSafe(|| body(&mut bencher))) {
                Err(_) => PANICKED.into(),
                Ok(()) if !bencher.has_called() => NOTHING_CALLED.into(),
                Ok(()) => 0,
            }
        });
        match ended {
            Ok(0) => {}
            Ok(status) if status == i32::from(NOTHING_CALLED) << 8 => {
                self.fails(name, "it calls no routine: call iter");
            }
            Ok(status) if status & 0x7f == 0 => self.fails(name, "it panicked or exited"),
            Ok(status) => self.fails(name, &format!("signal {} ended it", status & 0x7f)),
            Err(error) => self.fails(name, &format!("it has no process: {error}")),
        }
    }

    /// The passes of a benchmark that is counted, these if it warms up.
    fn passes(&self, warm: Passes) -> Passes {
        if self.settings.starts_cold {
            Passes::Marked
        } else {
            warm
        }
    }

    fn fails(&mut self, name: &str, why: &str) {
        eprintln!("benchmark {name} failed: {why}");
        self.failed.push(name.to_owned());
    }

    /// Says what natively nobody else says, and gives the status of the program.
    fn ends(&self) -> ExitCode {
        if self.mode == Mode::Tries {
            let good = self.ran.saturating_sub(self.failed.len() as u64);
            println!("{good} of {} benchmarks ran; 'cargo lightfoot bench' counts them", self.ran);
        }
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(PANICKED)
        }
    }
}

/// The body of `main`: reads the command line and runs the benchmarks that `all` hands over.
pub fn run(all: impl FnOnce(&mut Runner) + Send + 'static) -> ExitCode {
    // What nobody reads would not be linked.
    std::hint::black_box(&PROTOCOL);
    let settings = match Settings::read(std::env::args_os().skip(1)) {
        Ok(settings) => settings,
        Err(sentence) => {
            eprintln!("{sentence}");
            return ExitCode::from(MISUSED);
        }
    };
    let mode = match (settings.lists, is_counted()) {
        (true, _) => Mode::Lists,
        (false, true) => Mode::Counts,
        (false, false) => Mode::Tries,
    };
    let work = move || {
        // The seeds of hash maps are drawn once in a thread, and copies inherit them: whichever
        // benchmarks run, each has equal ones.
        std::hint::black_box(std::collections::hash_map::RandomState::new());
        let mut runner = Runner { settings, mode, ..Runner::default() };
        all(&mut runner);
        runner.ends()
    };
    let thread =
        std::thread::Builder::new().name("benchmarks".to_owned()).stack_size(STACK_BYTES).spawn(work);
    match thread.map(|thread| thread.join()) {
        Ok(Ok(status)) => status,
        // The panic of what stands between benchmarks was written when it happened.
        Ok(Err(_)) => ExitCode::from(PANICKED),
        Err(error) => {
            eprintln!("there is no thread to run benchmarks in: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::is_alone;

    const PLACE: Place = Place { file: "file", line: 1 };

    #[test]
    fn what_fails_is_named_and_ends_nothing() {
        let mut runner = Runner::default();
        let mut called = 0;
        runner.benchmark("crate::good", PLACE, &mut |bencher| bencher.measure(|| (), |()| called += 1));
        runner.benchmark("crate::idle", PLACE, &mut |_| {});
        runner.benchmark("crate::bad", PLACE, &mut |bencher| bencher.measure(|| (), |()| panic!("so it is")));
        runner.benchmark("crate::n\0l", PLACE, &mut |bencher| bencher.measure(|| (), |()| ()));
        assert_eq!((called, runner.ran), (1, 3));
        assert_eq!(runner.failed, ["idle", "bad", "n\0l"]);
    }

    #[test]
    fn a_benchmark_that_counts_runs_in_a_copy() {
        if !is_alone("runner::tests::a_benchmark_that_counts_runs_in_a_copy") {
            return;
        }
        let mut runner = Runner { mode: Mode::Counts, ..Runner::default() };
        let mut called = 0;
        runner.benchmark("crate::good", PLACE, &mut |bencher| bencher.measure(|| (), |()| called += 1));
        runner.benchmark("crate::bad", PLACE, &mut |bencher| bencher.measure(|| (), |()| panic!("so it is")));
        runner.benchmark("crate::ends", PLACE, &mut |_| std::process::exit(0));
        assert_eq!(called, 0, "the copy called it");
        assert_eq!(runner.failed, ["bad"]);
    }
}
