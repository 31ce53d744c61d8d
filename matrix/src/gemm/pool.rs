//! Threads that wait for the next multiplication.
//!
//! **What.** [`run`] calls a function once for every index, each on its own thread, the first on the caller's.
//! **Why this way.** Starting a thread takes 50 µs and more on a virtual machine, a third of a product with N = 512. Workers
//! therefore stay, watch for work for [`WATCH`] after each call (a caller that multiplies again finds them awake), and then
//! sleep. One caller at a time has them; another one, or one that wants more threads than the machine has processors, gets
//! threads of its own for the call.
//! **Left out.** Stealing work: parts are equal, and results must not depend on who computes them.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a worker watches for more work before it sleeps.
const WATCH: Duration = Duration::from_micros(200);

/// A call: lives on the caller's stack until every worker has left it.
struct Call<'a> {
    function: &'a (dyn Fn(usize) + Sync),
    /// Workers that have not finished.
    left: AtomicUsize,
    /// What a part panicked with, the first of them.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Where a worker finds its next call.
#[derive(Default)]
struct Desk {
    call: AtomicPtr<Call<'static>>,
    index: AtomicUsize,
    asleep: AtomicBool,
}

struct Worker {
    desk: Arc<Desk>,
    thread: Thread,
}

static WORKERS: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// Calls `function(0)`, …, `function(count - 1)`, each on its own thread.
///
/// # Panics
/// When a part panics, after all have ended.
pub(super) fn run(count: usize, function: &(dyn Fn(usize) + Sync)) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut workers = match WORKERS.try_lock() {
        Ok(workers) => Some(workers),
        // A part panicked once; the workers are fine.
        Err(TryLockError::Poisoned(broken)) => Some(broken.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    if let Some(workers) = workers.as_mut().filter(|_| count <= processors) {
        if engage(workers, count - 1) {
            return call(&workers[..count - 1], function);
        }
    }
    std::thread::scope(|scope| {
        (1..count).for_each(|index| drop(scope.spawn(move || function(index))));
        function(0);
    });
}

/// Makes sure that there are `count` workers.
fn engage(workers: &mut Vec<Worker>, count: usize) -> bool {
    while workers.len() < count {
        let desk = Arc::new(Desk::default());
        let own = Arc::clone(&desk);
        let started = std::thread::Builder::new().name("matrix".into()).spawn(move || work(&own));
        let Ok(handle) = started else { return false };
        workers.push(Worker { desk, thread: handle.thread().clone() });
    }
    true
}

/// Hands the parts out, takes the first, waits for the others.
fn call(workers: &[Worker], function: &(dyn Fn(usize) + Sync)) {
    let call = Call { function, left: AtomicUsize::new(workers.len()), panic: Mutex::new(None) };
    let shared = (&raw const call).cast_mut().cast::<Call<'static>>();
    for (worker, index) in workers.iter().zip(1..) {
        worker.desk.index.store(index, Ordering::Relaxed);
        worker.desk.call.store(shared, Ordering::SeqCst);
        if worker.desk.asleep.load(Ordering::SeqCst) {
            worker.thread.unpark();
        }
    }
    let own = catch_unwind(AssertUnwindSafe(|| function(0)));
    let mut turns = 0u32;
    while call.left.load(Ordering::Acquire) > 0 {
        turns = turns.saturating_add(1);
        match turns {
            0..20_000 => std::hint::spin_loop(),
            _ => std::thread::yield_now(),
        }
    }
    let other = call.panic.into_inner().unwrap_or_else(|broken| broken.into_inner());
    if let Some(panic) = own.err().or(other) {
        resume_unwind(panic);
    }
}

/// A worker's life.
fn work(desk: &Desk) {
    loop {
        let call = next(desk);
        // SAFETY: the caller of `call` keeps it alive until `left` is 0, and this worker lowers `left` last.
        let call = unsafe { &*call };
        let index = desk.index.load(Ordering::Relaxed);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (call.function)(index))) {
            call.panic.lock().unwrap_or_else(|broken| broken.into_inner()).get_or_insert(panic);
        }
        call.left.fetch_sub(1, Ordering::Release);
    }
}

/// Watches for a call, then sleeps until there is one.
fn next(desk: &Desk) -> *const Call<'static> {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            let call = desk.call.swap(std::ptr::null_mut(), Ordering::Acquire);
            if !call.is_null() {
                return call;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > WATCH {
            desk.asleep.store(true, Ordering::SeqCst);
            let call = desk.call.swap(std::ptr::null_mut(), Ordering::SeqCst);
            if call.is_null() {
                std::thread::park();
            }
            desk.asleep.store(false, Ordering::SeqCst);
            if !call.is_null() {
                return call;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_called_once_awake_or_asleep() {
        for round in 0..200 {
            let count = 1 + round % 5;
            let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            run(count, &|index| {
                seen[index].fetch_add(1, Ordering::Relaxed);
            });
            assert!(seen.iter().all(|calls| calls.load(Ordering::Relaxed) == 1));
            if round % 20 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn callers_at_the_same_time_do_not_meet() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| every_index_is_called_once_awake_or_asleep_once()));
            }
        });
    }

    fn every_index_is_called_once_awake_or_asleep_once() {
        let calls = AtomicUsize::new(0);
        run(2, &|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_survives() {
        for bad in [0, 1] {
            let caught = catch_unwind(|| run(2, &|index| assert_ne!(index, bad, "part {bad}")));
            assert!(caught.is_err());
        }
        run(2, &|_| ());
    }
}
