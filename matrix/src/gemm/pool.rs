//! A pool of threads that wait for the next multiplication.
//!
//! **The problem.** Starting a thread takes 50 µs and more on a virtual machine, a third of a
//! product with N = 512.
//!
//! **The idea.** Workers stay. After each call they watch their mailbox for [`WATCH`], so a caller
//! that multiplies again finds them awake, and then they sleep. [`run`] calls a function once for
//! every part. The caller and its workers each take the next part until there is none:
//!
//! ```text
//! caller                                   worker
//!   mailbox.call                     --->    takes the call out of its mailbox
//!   if mailbox.asleep: unpark                takes parts until none is left
//!   takes parts until none is left           lowers call.left, and never looks at the call again
//!   takes back calls that no worker took
//!   spins until call.left is 0        <---
//! ```
//!
//! A worker that has no processor, or comes late, delays nobody: the caller computes its parts.
//! Workers stay off the processors of the caller and of each other (`placement`).
//!
//! **Invariants.** The call lives in the caller's frame, which ends only after `left` is 0. A
//! worker that is about to sleep sets a flag before it looks a last time, and a caller stores the
//! call before it reads that flag, so no call is missed. One caller at a time has the workers.
//! Another caller, or one that requests more threads than there are processors, gets threads of its
//! own for the call. Which thread computes a part must not change the result.

use super::placement::{self, ThreadId, NOWHERE};
use crate::Error;
use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
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
    parts: usize,
    /// The next part that nobody has taken.
    next: AtomicUsize,
    /// The number of workers that may still look at this call.
    left: AtomicUsize,
    /// The first panic of a part.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The place from which a worker takes its next call.
struct Mailbox {
    call: AtomicPtr<Call<'static>>,
    asleep: AtomicBool,
    /// The processor that the worker may not use while it sleeps, or [`NOWHERE`].
    kept_off: AtomicUsize,
    /// The worker, as soon as it runs.
    id: OnceLock<ThreadId>,
}

struct Worker {
    mailbox: Arc<Mailbox>,
    thread: Thread,
}

static WORKERS: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// Where the last caller and the workers ran last, in this order. Workers beyond these are not
/// placed.
static PLACES: [AtomicUsize; 64] = [const { AtomicUsize::new(NOWHERE) }; 64];

/// Calls `function(0)`, …, `function(parts - 1)` on at most `threads` threads.
///
/// # Panics
/// When a part panics, after all parts have ended.
pub(crate) fn run(threads: usize, parts: usize, function: &(dyn Fn(usize) + Sync)) {
    let count = threads.min(parts);
    if count <= 1 {
        return (0..parts).for_each(function);
    }
    let mut workers = match WORKERS.try_lock() {
        Ok(workers) => Some(workers),
        // A part of an earlier call panicked; the workers themselves are usable.
        Err(TryLockError::Poisoned(broken)) => Some(broken.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    // Use the waiting workers, unless another caller has them or they would share processors.
    if let Some(workers) = workers.as_mut().filter(|_| count <= processors()) {
        if engage(workers, count - 1) {
            return call(&workers[..count - 1], parts, function);
        }
    }
    // Otherwise start threads for this call.
    let next = AtomicUsize::new(0);
    let work = || take_parts(&next, parts, function);
    std::thread::scope(|scope| {
        (1..count).for_each(|_| drop(scope.spawn(work)));
        work();
    });
}

/// The processors that this program may use, found once: the standard library reads files of the
/// control group for it, which takes as long as a product with N = 100.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Calls parts as [`run`] does; the result is an error of one of them, if there is one.
///
/// # Panics
/// When a part panics, after all parts have ended.
pub(crate) fn try_run(
    threads: usize,
    parts: usize,
    function: &(dyn Fn(usize) -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    let outcome = Mutex::new(Ok(()));
    run(threads, parts, &|index| {
        if let Err(error) = function(index) {
            *outcome.lock().unwrap_or_else(|broken| broken.into_inner()) = Err(error);
        }
    });
    outcome.into_inner().unwrap_or_else(|broken| broken.into_inner())
}

/// Takes one part after the other until there is none.
fn take_parts(next: &AtomicUsize, parts: usize, mut function: impl FnMut(usize)) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= parts {
            return;
        }
        function(index);
    }
}

/// Makes sure that there are `count` workers.
fn engage(workers: &mut Vec<Worker>, count: usize) -> bool {
    while workers.len() < count {
        let mailbox = Arc::new(Mailbox {
            call: AtomicPtr::default(),
            asleep: AtomicBool::new(false),
            kept_off: AtomicUsize::new(NOWHERE),
            id: OnceLock::new(),
        });
        let (own, place) = (Arc::clone(&mailbox), workers.len() + 1);
        let started = std::thread::Builder::new().name("matrix".into()).spawn(move || work(&own, place));
        let Ok(handle) = started else { return false };
        workers.push(Worker { mailbox, thread: handle.thread().clone() });
    }
    true
}

/// Offers the call to the workers, takes parts, and waits for the workers.
fn call(workers: &[Worker], parts: usize, function: &(dyn Fn(usize) + Sync)) {
    let (next, left) = (AtomicUsize::new(0), AtomicUsize::new(workers.len()));
    let call = Call { function, parts, next, left, panic: Mutex::new(None) };
    let own_place = placement::current();
    PLACES[0].store(own_place, Ordering::Relaxed);
    // A pointer to this frame. It stays valid because the loop below waits until `left` is 0.
    let shared = (&raw const call).cast_mut().cast::<Call<'static>>();
    for (worker, place) in workers.iter().zip(1..) {
        worker.mailbox.call.store(shared, Ordering::SeqCst);
        // The call is stored before the flag is read, and the worker sets its flag before it looks
        // again. One of the two sees the other, so no call is missed.
        if worker.mailbox.asleep.load(Ordering::SeqCst) {
            worker.wake(place, own_place);
        }
    }
    call.take_parts();
    // A worker that has no processor has not taken its call. Nobody waits for it: it cannot take a
    // call that was swapped out.
    for worker in workers {
        if !worker.mailbox.call.swap(std::ptr::null_mut(), Ordering::AcqRel).is_null() {
            call.left.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let mut rounds = 0u32;
    while call.left.load(Ordering::Acquire) > 0 {
        rounds = rounds.saturating_add(1);
        // A worker computes its last part, so the wait is short: spin first, then let others run.
        match rounds {
            0..2_000 => std::hint::spin_loop(),
            _ => std::thread::yield_now(),
        }
    }
    let panic = call.panic.into_inner().unwrap_or_else(|broken| broken.into_inner());
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

impl Worker {
    /// Wakes the worker, which sleeps, on another processor than the caller's.
    fn wake(&self, place: usize, processor: usize) {
        let last = PLACES.get(place).map_or(NOWHERE, |place| place.load(Ordering::Relaxed));
        let mailbox = &self.mailbox;
        if let Some(&id) = mailbox.id.get().filter(|_| last == processor && processor != NOWHERE) {
            // The processor is noted before the mask changes, so the worker restores the mask
            // whenever it wakes. One that is still noted is out of the mask already.
            let noted =
                mailbox.kept_off.compare_exchange(NOWHERE, processor, Ordering::SeqCst, Ordering::SeqCst);
            if noted.is_ok() && placement::keep_off(id, processor) {
                // If the worker woke up meanwhile, it restored its mask before this changed it.
                if mailbox.kept_off.load(Ordering::SeqCst) == NOWHERE {
                    placement::back_to(id, processor);
                }
            }
        }
        self.thread.unpark();
    }
}

/// The loop of a worker.
fn work(mailbox: &Mailbox, place: usize) {
    mailbox.id.get_or_init(placement::own_id);
    loop {
        let call = next(mailbox, place);
        // SAFETY: the caller of `call` keeps it alive until `left` is 0, and this worker lowers
        // `left` last.
        let call = unsafe { &*call };
        call.take_parts();
        call.left.fetch_sub(1, Ordering::Release);
    }
}

impl Call<'_> {
    /// Takes parts until there is none, and keeps the first panic.
    fn take_parts(&self) {
        take_parts(&self.next, self.parts, |index| {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.function)(index))) {
                self.panic.lock().unwrap_or_else(|broken| broken.into_inner()).get_or_insert(panic);
            }
        });
    }
}

/// Notes the worker's processor, and leaves that of the caller and those of the workers before it.
/// `tried` is where it has tried that already.
fn keep_apart(place: usize, tried: &mut usize) {
    let Some(own) = PLACES.get(place) else { return };
    let processor = placement::current();
    let used = || PLACES[..place].iter().map(|place| place.load(Ordering::Relaxed));
    if processor != *tried && processor != NOWHERE && used().any(|used| used == processor) {
        *tried = processor;
        placement::leave(used());
    }
    let processor = placement::current();
    if own.load(Ordering::Relaxed) != processor {
        own.store(processor, Ordering::Relaxed);
    }
}

/// Watches for a call, then sleeps until there is one.
fn next(mailbox: &Mailbox, place: usize) -> *const Call<'static> {
    let start = Instant::now();
    let mut tried = NOWHERE;
    loop {
        keep_apart(place, &mut tried);
        // The mailbox is read often between two readings of the clock.
        for _ in 0..64 {
            let call = mailbox.call.load(Ordering::Relaxed);
            let call = if call.is_null() { call } else { mailbox.take() };
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
            let call = mailbox.take();
            if call.is_null() {
                std::thread::park();
            }
            mailbox.asleep.store(false, Ordering::SeqCst);
            let kept_off = mailbox.kept_off.swap(NOWHERE, Ordering::SeqCst);
            if let Some(&id) = mailbox.id.get().filter(|_| kept_off != NOWHERE) {
                placement::back_to(id, kept_off);
            }
            if !call.is_null() {
                return call;
            }
        }
    }
}

impl Mailbox {
    /// Takes the call out.
    fn take(&self) -> *mut Call<'static> {
        self.call.swap(std::ptr::null_mut(), Ordering::SeqCst)
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
            run(1 + round % 3, count, &|index| {
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
        run(2, 2, &|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_survives() {
        for bad in [0, 1] {
            let caught = catch_unwind(|| run(2, 2, &|index| assert_ne!(index, bad, "part {bad}")));
            assert!(caught.is_err());
        }
        run(2, 2, &|_| ());
    }
}
