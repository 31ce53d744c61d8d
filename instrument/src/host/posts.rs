//! Requests that threads post, instead of stopping for the host by a breakpoint.
//!
//! **The problem.** Most stops ask for code that is not translated yet. The host needs nothing of
//! ptrace to answer them: it reads the exit's number and writes an address. But it must answer
//! stops and requests in turn, and a thread that waits for an answer may also get a signal.
//!
//! **The idea.** The host sleeps on the run's bell (`target::bell`), which threads ring when they
//! post (`code::hand_over`), and the handler of SIGCHLD when a thread stops. What needs a stopped
//! thread is answered by a breakpoint: marks, errors, signals that are held back.
//!
//! **A signal** may stop a thread that waits for an answer. Before the host steps it to a boundary,
//! and behind each step, it answers what the thread has posted, so the thread never sleeps in a
//! step. **A filter of system calls** (seccomp) may forbid the calls by which threads wait, so a
//! process that sets one stops by breakpoints from then on, and so do its children. **Leaves out**
//! runs that repeat exactly: there the host decides at each stop whose turn it is.

use super::state::Host;
use super::task::ProgramThread;
use crate::code::fragment::{EXIT_INSTRUCTION, EXIT_LOOKUP, EXIT_PAGES, EXIT_RING, EXIT_SYSTEM_CALL};
use crate::host::gathering::Gathering;
use crate::image::Answer;
use crate::target::layout::context;
use crate::target::ptrace::{self, Registers, Wait};

/// What the host has to do next.
pub(super) enum Next {
    /// This thread has posted a request.
    Posted(i32),
    /// This task has stopped or ended.
    Stopped(i32, Wait),
    /// A signal to the host has interrupted the wait.
    Interrupted,
    /// No task is left.
    Nothing,
}

impl Host<'_> {
    /// Waits for the next request or stop.
    pub(super) fn next(&mut self) -> Next {
        let stopped = |waited| match waited {
            Ok(Some((tid, what))) => Next::Stopped(tid, what),
            Ok(None) => Next::Interrupted,
            Err(()) => Next::Nothing,
        };
        loop {
            // Without threads nobody rings, and without a bell nobody posts.
            let Some(bell) = self.bell.as_ref().filter(|_| !self.threads.is_empty()) else {
                return stopped(ptrace::wait(-1));
            };
            if bell.takes_child() {
                match ptrace::poll() {
                    Ok(None) => {}
                    more => {
                        bell.note_child();
                        return stopped(more);
                    }
                }
            }
            // A thread that has posted since the bell was cleared here has rung it again.
            let has_rung = bell.takes_ring();
            if has_rung {
                let (images, rung) = (&self.images, bell.takes_places());
                let has_posted = |thread: &ProgramThread| {
                    rung.has(thread.image, thread.context)
                        && images.get(&thread.image).is_some_and(|image| image.has_posted(thread.context))
                };
                let posted = self.threads.iter().filter(|(_, thread)| has_posted(thread));
                let posted: Vec<i32> = posted.map(|(&tid, _)| tid).collect();
                // Threads that were found before and still wait have no place written any more.
                // They come first.
                self.posted.splice(0..0, posted);
            }
            // A request may have been answered in the meantime, or its thread may be gone.
            while let Some(tid) = self.posted.pop() {
                if self.has_posted(tid) {
                    return Next::Posted(tid);
                }
            }
            // A stop may have rung the bell since stops were looked at.
            let Some(bell) = self.bell.as_ref().filter(|_| !has_rung) else { continue };
            if bell.sleep() {
                return Next::Interrupted;
            }
        }
    }

    /// Whether the thread waits for the answer to a request.
    pub(super) fn has_posted(&self, tid: i32) -> bool {
        let posted =
            |thread: &ProgramThread| Some(self.images.get(&thread.image)?.has_posted(thread.context));
        self.threads.get(&tid).and_then(posted).unwrap_or(false)
    }

    /// Answers the request that thread `tid` has posted.
    pub(super) fn answer_post(&mut self, tid: i32) {
        self.stops += 1;
        self.gathering.iter().for_each(Gathering::count_stop);
        let ProgramThread { context, .. } = self.threads[&tid];
        let exit = self.image_mut(tid).read32(context, context::EXIT);
        let answer = match exit {
            EXIT_RING => {
                self.ring_full(tid);
                Answer::GoOn
            }
            exit if self.needs_no_stop(tid, exit) => {
                let code = self.serve(tid, exit);
                // An error ends the run, for which the thread must be stopped.
                let fails = self.evidence.exists() || self.image_mut(tid).translator.refusal.is_some();
                if fails {
                    Answer::Stop
                } else {
                    Answer::GoOnAt(code)
                }
            }
            _ => Answer::Stop,
        };
        self.image_mut(tid).answer_post(context, answer);
    }

    /// Answers what the thread has posted, if it has posted anything: it is stepped next.
    pub(crate) fn answer_before_step(&mut self, tid: i32) {
        if self.has_posted(tid) {
            self.answer_post(tid);
        }
    }

    /// Whether the thread's request can be answered while it waits for the answer.
    fn needs_no_stop(&self, tid: i32, exit: u32) -> bool {
        let thread = &self.threads[&tid];
        let translator = &self.images[&thread.image].translator;
        let target = match exit {
            0 | EXIT_PAGES | EXIT_SYSTEM_CALL | EXIT_INSTRUCTION => return false,
            EXIT_LOOKUP => self.images[&thread.image].read64(thread.context, context::TARGET),
            // The breakpoint finds out that the number is forged.
            exit => match translator.cache.exits.get(exit as usize) {
                Some(exit) => exit.target,
                None => return false,
            },
        };
        thread.held.is_empty() && !translator.watch.has(target)
    }

    /// Answers a system call that may set a filter of system calls: from now on the process's
    /// threads hand over without system calls.
    pub(super) fn may_filter_calls(&mut self, tid: i32, registers: &Registers) {
        let sets = match registers.rax as u32 as i64 {
            libc::SYS_prctl => registers.rdi == libc::PR_SET_SECCOMP as u64,
            _ => registers.rdi <= libc::SECCOMP_SET_MODE_FILTER.into(),
        };
        let ProgramThread { process, image, .. } = self.threads[&tid];
        if !sets {
            return;
        }
        if let Some(living) = self.living.get_mut(&process) {
            living.filters_calls = true;
        }
        self.image_of(image).set_posting(false);
        // A filter for all threads may come between the calls of a thread that has just posted.
        let threads = self.threads.iter().filter(|(_, thread)| thread.image == image);
        let tids: Vec<i32> = threads.map(|(&tid, _)| tid).collect();
        tids.into_iter().for_each(|tid| self.answer_before_step(tid));
    }
}
