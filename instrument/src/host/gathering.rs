//! Keeps the threads of a program on the host's core as long as that is faster.
//!
//! **The problem.** A stop costs five times as much if host and thread are on different cores,
//! because an idle core has to be woken twice. Threads that compute at the same time are faster on
//! different cores. Runtimes such as node's and Java's have a dozen threads from the start, mostly
//! asleep, while one thread meets new code at every step.
//!
//! **The idea.** A watcher looks at the program every few milliseconds. It counts the threads that
//! could run and the stops since it looked last, and moves all threads and the host:
//!
//! | busy threads | stops | threads are |
//! |---|---|---|
//! | one | any | gathered on the host's core |
//! | several | many | gathered: they mostly wait for the host, which is one thread |
//! | several | few | spread over all cores |
//!
//! **Leaves out** programs with very many threads, which are spread at once, and processes without
//! threads (`process` counts the busy ones).

use super::affinity::Cores;
use crate::target::ptrace;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two looks.
const TICK: Duration = Duration::from_millis(5);
/// Stops in a tick from which on gathered threads are faster: they would spend a third of the time
/// with hand-overs between cores.
const STOPS_MANY: u64 = 40;
/// Stops in a tick below which a change gains nothing.
const STOPS_FEW: u64 = 4;
/// A change is made after as many looks in a row that ask for it.
const LOOKS: u32 = 2;
/// The most threads of the program that are watched. The look at one costs some microseconds.
const TASKS_MAX: usize = 40;

/// Where the threads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Gathered,
    Spread,
}

/// What host and watcher share.
struct Shared {
    /// Stops since the watcher looked last.
    stops: AtomicU64,
    has_ended: AtomicBool,
    /// Processes with threads.
    processes: Mutex<Vec<i32>>,
}

/// The watcher of a program with threads. It ends when this value is dropped, and leaves threads
/// and host where they are.
pub(super) struct Gathering {
    shared: Arc<Shared>,
    watcher: Option<JoinHandle<()>>,
}

impl Gathering {
    /// Watches process `pid`, which is bound to the host's core.
    pub(super) fn begin(pid: i32, cores: Cores) -> Gathering {
        let shared = Arc::new(Shared {
            stops: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            processes: Mutex::new(vec![pid]),
        });
        let (own, host) = (shared.clone(), ptrace::own_tid());
        let watch = move || Watcher { shared: own, host, cores }.run();
        // Without a watcher the threads would stay on one core for good.
        let watcher = std::thread::Builder::new().name("gathering".into()).spawn(watch).ok();
        Gathering { shared, watcher }
    }

    /// Whether there is a watcher.
    pub(super) fn is_watched(&self) -> bool {
        self.watcher.is_some()
    }

    /// Watches another process, too.
    pub(super) fn add(&self, pid: i32) {
        let mut processes = self.shared.processes.lock().unwrap_or_else(PoisonError::into_inner);
        if !processes.contains(&pid) {
            processes.push(pid);
        }
    }

    pub(super) fn count_stop(&self) {
        self.shared.stops.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
    }
}

/// The watcher's thread.
struct Watcher {
    shared: Arc<Shared>,
    host: i32,
    cores: Cores,
}

impl Watcher {
    fn run(&self) {
        let mut judge = Judge { place: Place::Gathered, asked: 0 };
        self.cores.observer.apply(0);
        loop {
            std::thread::park_timeout(TICK);
            if self.shared.has_ended.load(Ordering::Relaxed) {
                return;
            }
            let stops = self.shared.stops.swap(0, Ordering::Relaxed);
            // Without stops, gathered threads still have to be looked at.
            if judge.place == Place::Spread && stops < STOPS_FEW {
                judge.asked = 0;
                continue;
            }
            // Many stops keep gathered threads where they are, however many are busy. The look at
            // all of them costs more than some stops.
            if judge.place == Place::Gathered && stops >= STOPS_MANY {
                judge.asked = 0;
                continue;
            }
            let tasks = self.tasks();
            // Very many threads stay where they are once they are spread.
            if judge.place == Place::Spread && tasks.len() > TASKS_MAX {
                judge.asked = 0;
                continue;
            }
            // All processes with threads may have ended; another one may follow.
            let busy = match tasks.len() {
                // The second busy thread decides.
                0..=TASKS_MAX => tasks.iter().filter(|(pid, tid)| is_busy(*pid, *tid)).take(2).count(),
                many => many,
            };
            if let Some(place) = judge.look(busy, stops) {
                let set = if place == Place::Gathered { &self.cores.host } else { &self.cores.all };
                tasks.iter().map(|task| task.1).chain([self.host]).for_each(|tid| set.apply(tid));
            }
        }
    }

    /// The threads of all watched processes, each with its process. Forgets processes that have
    /// ended.
    fn tasks(&self) -> Vec<(i32, i32)> {
        let mut processes = self.shared.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tasks = Vec::new();
        processes.retain(|&pid| {
            let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
            let tid = |name: std::ffi::OsString| name.to_str()?.parse().ok();
            let tids = entries.filter_map(|entry| tid(entry.ok()?.file_name()));
            tasks.extend(tids.map(|tid: i32| (pid, tid)));
            true
        });
        tasks
    }
}

/// Decides where the threads should be.
struct Judge {
    place: Place,
    /// How many looks in a row have asked for the other place.
    asked: u32,
}

impl Judge {
    /// The place to which the threads should move now, if they should.
    fn look(&mut self, busy: usize, stops: u64) -> Option<Place> {
        let better = if busy > 1 && stops < STOPS_MANY { Place::Spread } else { Place::Gathered };
        self.asked = if better == self.place { 0 } else { self.asked + 1 };
        if self.asked < LOOKS {
            return None;
        }
        *self = Judge { place: better, asked: 0 };
        Some(better)
    }
}

/// Whether a thread could run, or waits for nothing but the host.
fn is_busy(pid: i32, tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('R' | 't'))
}

#[cfg(test)]
mod tests {
    use super::super::affinity::Processors;
    use super::*;

    #[test]
    fn threads_that_compute_are_spread_and_come_back_for_stops() {
        let mut judge = Judge { place: Place::Gathered, asked: 0 };
        // One busy thread stays, whatever it does; so do several that mostly wait for the host.
        for (busy, stops) in [(1, 0), (1, 1000), (0, 0), (3, 1000)] {
            assert_eq!((0..5).find_map(|_| judge.look(busy, stops)), None, "{busy} busy, {stops} stops");
        }
        // A single look decides nothing.
        assert_eq!([judge.look(2, 0), judge.look(1, 0), judge.look(2, 0)], [None; 3]);
        assert_eq!(judge.look(2, 3), Some(Place::Spread));
        assert_eq!([judge.look(2, 3), judge.look(2, 1000)], [None; 2]);
        assert_eq!(judge.look(2, 1000), Some(Place::Gathered));
    }

    #[test]
    fn a_watcher_outlives_the_processes_that_it_watches() {
        let all = Processors::of(0).expect("this process has a mask");
        let gathering = Gathering::begin(i32::MAX, Cores { all, host: all, observer: all });
        std::thread::sleep(20 * TICK);
        let processes = gathering.shared.processes.lock().unwrap().clone();
        assert!(processes.is_empty(), "it has looked: no process has the number {}", i32::MAX);
        assert!(gathering.watcher.as_ref().is_some_and(|watcher| !watcher.is_finished()));
        gathering.add(ptrace::own_pid());
        assert_eq!(*gathering.shared.processes.lock().unwrap(), [ptrace::own_pid()]);
    }

    #[test]
    fn a_watcher_finds_the_threads_of_this_process() {
        let own = ptrace::own_pid();
        let shared = Shared {
            stops: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            processes: Mutex::new(vec![own, i32::MAX]),
        };
        let all = Processors::of(0).expect("this process has a mask");
        let cores = Cores { all, host: all, observer: all };
        let watcher = Watcher { shared: Arc::new(shared), host: 0, cores };
        assert!(watcher.tasks().contains(&(own, ptrace::own_tid())));
        assert_eq!(*watcher.shared.processes.lock().unwrap(), [own], "the other one does not exist");
        assert!(is_busy(own, ptrace::own_tid()) && !is_busy(own, i32::MAX));
    }
}
