//! A pool of threads that wait for the next multiplication.
//!
//! **The problem.** Starting a thread takes 50 µs and more on a virtual machine, a third of a
//! product with N = 512.
//!
//! **The idea.** Workers stay. After each call they watch their mailbox for [`WATCH`], so a caller
//! that multiplies again finds them awake, and then they sleep. [`run`] calls a function once for
//! every index, each on its own thread, the first on the caller's:
//!
//! ```text
//! caller                                   worker
//!   mailbox.index, then mailbox.call  --->   takes the call out of its mailbox
//!   if mailbox.asleep: unpark                runs its part
//!   runs part 0                              lowers call.left, and never looks at the call again
//!   runs parts that no worker took
//!   spins until call.left is 0        <---
//! ```
//!
//! **Invariants.** The call lives in the caller's frame, which ends only after `left` is 0. A
//! worker that is about to sleep sets a flag before it looks a last time, and a caller stores the
//! call before it reads that flag, so no call is missed. One caller at a time has the workers.
//! Another caller, or one that requests more threads than there are processors, gets threads of its
//! own for the call.
//!
//! **Leaves out** work stealing: parts are equal, and results must not depend on the thread that
//! computes them.

use crate::Error;
use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a worker watches for work before it sleeps. Between two products of a factorisation lie
/// panels that take up to a millisecond, and waking a worker on a virtual machine can take longer.
const WATCH: Duration = Duration::from_millis(4);
/// After this time a watching worker lets others run in between.
const EAGER: Duration = Duration::from_micros(200);

/// A call. It lives on the caller's stack until every worker has finished with it.
struct Call<'a> {
    function: &'a (dyn Fn(usize) + Sync),
    /// The number of workers that have not finished.
    left: AtomicUsize,
    /// The first panic of a part.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The place from which a worker takes its next call.
#[derive(Default)]
struct Mailbox {
    call: AtomicPtr<Call<'static>>,
    index: AtomicUsize,
    asleep: AtomicBool,
}

struct Worker {
    mailbox: Arc<Mailbox>,
    thread: Thread,
}

static WORKERS: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// Calls `function(0)`, …, `function(count - 1)`, each on its own thread.
///
/// # Panics
/// When a part panics, after all parts have ended.
pub(crate) fn run(count: usize, function: &(dyn Fn(usize) + Sync)) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut workers = match WORKERS.try_lock() {
        Ok(workers) => Some(workers),
        // A part of an earlier call panicked; the workers themselves are usable.
        Err(TryLockError::Poisoned(broken)) => Some(broken.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    // Use the waiting workers, unless another caller has them or they would share processors.
    if let Some(workers) = workers.as_mut().filter(|_| count <= processors) {
        if engage(workers, count - 1) {
            return call(&workers[..count - 1], function);
        }
    }
    // Otherwise start threads for this call.
    std::thread::scope(|scope| {
        (1..count).for_each(|index| drop(scope.spawn(move || function(index))));
        function(0);
    });
}

/// Calls parts as [`run`] does; the result is an error of one of them, if there is one.
///
/// # Panics
/// When a part panics, after all parts have ended.
pub(crate) fn try_run(
    count: usize,
    function: &(dyn Fn(usize) -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    let outcome = Mutex::new(Ok(()));
    run(count, &|index| {
        if let Err(error) = function(index) {
            *outcome.lock().unwrap_or_else(|broken| broken.into_inner()) = Err(error);
        }
    });
    outcome.into_inner().unwrap_or_else(|broken| broken.into_inner())
}

/// Makes sure that there are `count` workers.
fn engage(workers: &mut Vec<Worker>, count: usize) -> bool {
    while workers.len() < count {
        let mailbox = Arc::new(Mailbox::default());
        let own = Arc::clone(&mailbox);
        let started = std::thread::Builder::new().name("matrix".into()).spawn(move || work(&own));
        let Ok(handle) = started else { return false };
        workers.push(Worker { mailbox, thread: handle.thread().clone() });
    }
    true
}

/// Distributes the parts, runs the first one, and waits for the others.
fn call(workers: &[Worker], function: &(dyn Fn(usize) + Sync)) {
    let call = Call { function, left: AtomicUsize::new(workers.len()), panic: Mutex::new(None) };
    // A pointer to this frame. It stays valid because the loop below waits until `left` is 0.
    let shared = (&raw const call).cast_mut().cast::<Call<'static>>();
    for (worker, index) in workers.iter().zip(1..) {
        worker.mailbox.index.store(index, Ordering::Relaxed);
        worker.mailbox.call.store(shared, Ordering::SeqCst);
        // The call is stored before the flag is read, and the worker sets its flag before it looks
        // again. One of the two sees the other, so no call is missed.
        if worker.mailbox.asleep.load(Ordering::SeqCst) {
            worker.thread.unpark();
        }
    }
    // The first part belongs to the caller. Its panic must wait until the others have left the
    // frame.
    let own = catch_unwind(AssertUnwindSafe(|| function(0)));
    // A worker that has no processor has not taken its call. Its part is done here rather than
    // waited for: nobody else can take a call that was swapped out.
    for (worker, index) in workers.iter().zip(1..) {
        if !worker.mailbox.call.swap(std::ptr::null_mut(), Ordering::AcqRel).is_null() {
            call.run(index);
        }
    }
    let mut rounds = 0u32;
    while call.left.load(Ordering::Acquire) > 0 {
        rounds = rounds.saturating_add(1);
        // Parts are equal, so the wait is short: spin first, then let others run.
        match rounds {
            0..2_000 => std::hint::spin_loop(),
            _ => std::thread::yield_now(),
        }
    }
    let other = call.panic.into_inner().unwrap_or_else(|broken| broken.into_inner());
    if let Some(panic) = own.err().or(other) {
        resume_unwind(panic);
    }
}

/// The loop of a worker.
fn work(mailbox: &Mailbox) {
    loop {
        let call = next(mailbox);
        // SAFETY: the caller of `call` keeps it alive until `left` is 0, and this worker lowers
        // `left` last.
        let call = unsafe { &*call };
        let index = mailbox.index.load(Ordering::Relaxed);
        call.run(index);
    }
}

impl Call<'_> {
    /// Runs a part, keeps its panic, and lowers `left`, after which the call may be gone.
    fn run(&self, index: usize) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.function)(index))) {
            self.panic.lock().unwrap_or_else(|broken| broken.into_inner()).get_or_insert(panic);
        }
        self.left.fetch_sub(1, Ordering::Release);
    }
}

/// Watches for a call, then sleeps until there is one.
fn next(mailbox: &Mailbox) -> *const Call<'static> {
    let start = Instant::now();
    loop {
        // The mailbox is read often between two readings of the clock.
        for _ in 0..64 {
            let call = mailbox.call.swap(std::ptr::null_mut(), Ordering::Acquire);
            if !call.is_null() {
                return call;
            }
            std::hint::spin_loop();
        }
        let watched = start.elapsed();
        if watched > EAGER {
            std::thread::yield_now();
        }
        if watched > WATCH {
            // Sets the flag, then looks once more: a call that was stored before that is found
            // here, and a caller that stores one later sees the flag.
            mailbox.asleep.store(true, Ordering::SeqCst);
            let call = mailbox.call.swap(std::ptr::null_mut(), Ordering::SeqCst);
            if call.is_null() {
                std::thread::park();
            }
            mailbox.asleep.store(false, Ordering::SeqCst);
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
