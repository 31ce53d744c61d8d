//! Processes that still run when the program has ended.
//!
//! A pipeline's last command, or the jobs of a shell, end a moment after the program and belong to
//! the measurement; a daemon does not. So the host counts on until all of them have been idle for
//! [`IDLE`], but no longer than [`LONGEST`]. Then it releases them (`release`). **Leaves out** runs
//! that wait for all children ([`Children::Awaited`](crate::outcome::Children::Awaited)).

use super::state::Host;
use crate::outcome::Children;
use crate::target::ptrace;
use crate::target::pulse::Pulse;
use std::fs;
use std::time::{Duration, Instant};

/// Time between two checks of the remaining processes.
const LOOK: Duration = Duration::from_millis(100);
/// Processes that have not worked for this time count as idle.
const IDLE: Duration = Duration::from_secs(1);
/// Processes that still work this long after the program's end are taken for daemons.
const LONGEST: Duration = Duration::from_secs(10);
/// A process that could not be released within this time is killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of the wait for processes that outlive the program; empty until the program ends.
#[derive(Default)]
pub(crate) struct Remainder(Option<Watched>);

struct Watched {
    /// Wakes the host even if no process stops.
    _pulse: Option<Pulse>,
    /// When the program ended.
    ended: Instant,
    /// When the host last checked the remaining processes.
    looked: Instant,
    /// When a check last found one of them at work.
    worked: Instant,
    /// Stops that the host had answered at the last check.
    stops: u64,
    /// When the release of the remaining processes began.
    let_go: Option<Instant>,
}

impl Host<'_> {
    /// Decides whether the remaining processes are counted on or released. Called after every stop
    /// once the program has ended.
    pub(crate) fn program_has_ended(&mut self, remainder: &mut Remainder) {
        if self.children != Children::Followed || self.failure.is_some() {
            return;
        }
        let now = Instant::now();
        // The clock starts at the program's end.
        let watched = remainder.0.get_or_insert_with(|| Watched {
            _pulse: Pulse::start(LOOK),
            ended: now,
            looked: now,
            worked: now,
            stops: self.stops,
            let_go: None,
        });
        if now - watched.looked < LOOK {
            return;
        }
        watched.looked = now;
        if let Some(since) = watched.let_go {
            self.let_all_go();
            if now - since > PATIENCE {
                self.end_the_rest();
            }
            return;
        }
        // A stop that was answered since the last check also means work.
        if self.stops != watched.stops || self.living.keys().any(|&pid| works(pid)) {
            (watched.stops, watched.worked) = (self.stops, now);
        }
        if now - watched.worked > IDLE || now - watched.ended > LONGEST {
            watched.let_go = Some(now);
            self.let_all_go();
        }
    }

    fn let_all_go(&mut self) {
        let left: Vec<i32> = self.living.keys().copied().filter(|&pid| !self.process_leaves(pid)).collect();
        for pid in left {
            self.departures.left_behind.push((pid, self.name(pid)));
            self.send_away(pid, None, None);
        }
    }

    /// Kills processes that could not be released.
    fn end_the_rest(&mut self) {
        for &pid in self.living.keys() {
            let left = &mut self.departures.left_behind;
            let Some(known) = left.iter().position(|(left, _)| *left == pid) else { continue };
            let (_, name) = left.swap_remove(known);
            let why = "it still ran after the program had ended, and lightfoot could not release it";
            self.warnings.push(format!("process {pid} ({name}) was killed: {why}"));
            ptrace::kill(pid, libc::SIGKILL);
        }
    }
}

/// Whether any thread of the process runs, or waits for a processor, a device or the host.
fn works(pid: i32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    tasks.flatten().any(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        matches!(state, Some('R' | 'D' | 't'))
    })
}
