//! Marks: the stops at watched addresses, and what a run's marker wants done there.
//!
//! A thread that stops at a watched address has the program's own registers. The host asks the
//! marker, notes the thread's counters as the deeds demand, and hands the thread's records to the
//! observer, with the deeds behind them. So counters and records are divided at the same
//! instruction.
//!
//! A function's call is open from its entry until a thread reaches the return address with the
//! stack pointer above the entry's. A call that ended otherwise (`longjmp`, an exception) is closed
//! at the thread's next mark. **Leaves out** calls on other stacks than the thread's.
//!
//! A request may ask for a call of one of the program's functions. The compiler knows of no call
//! there, so all registers but the answer's are put back when the function has returned.

use super::open_calls::{AskedCall, OpenCall};
use super::ring::{MarkWithin, RingMessage};
use super::state::Host;
use super::task::ProgramThread;
use crate::image::Keeps;
use crate::mark::{Answer, Birth, Deed, FunctionCall, Mark, MarkedBlock, MarkedThread, ProgramMemory};
use crate::target::layout::context;
use crate::target::memory;
use crate::target::ptrace;
use crate::target::ptrace::Registers;
use crate::translate::watch::{Ending, Watched};

/// `NT_X86_XSTATE` of elf.h: the register set that holds an XSAVE image.
const EXTENDED: u64 = 0x202;
/// Such images have some kilobytes, and eight more with tiles.
const EXTENDED_BYTES_MAX: usize = 1 << 15;
/// Bytes below the stack pointer that belong to the running function.
const RED_ZONE_BYTES: u64 = 128;

/// The memory of the process of a task.
struct TaskMemory(i32);

impl ProgramMemory for TaskMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> usize {
        memory::read_target(self.0, address, bytes)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> usize {
        memory::write_target(self.0, address, bytes)
    }
}

/// The registers by their DWARF numbers; the code's address is `behind`.
fn by_number(registers: &Registers, behind: u64) -> [u64; 17] {
    let Registers { rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, .. } =
        *registers;
    [rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, behind]
}

impl Host<'_> {
    fn marked_thread(&self, tid: i32) -> MarkedThread {
        let ProgramThread { image, number, process, .. } = self.threads[&tid];
        MarkedThread { image, thread: number, pid: process }
    }

    /// Tells the marker that a thread begins, before it runs.
    pub(crate) fn starts_marked(&mut self, tid: i32) {
        let Some(marking) = &mut self.marking else { return };
        let maker = marking.maker.take();
        let ProgramThread { context, image, number, .. } = self.threads[&tid];
        let birth = match maker.and_then(|maker| self.threads.get(&maker)) {
            Some(maker) => {
                let open = marking.calls.get(&maker.number).cloned().unwrap_or_default();
                marking.calls.insert(number, open);
                let asked = marking.asked.get(&maker.number).cloned().unwrap_or_default();
                marking.asked.insert(number, asked);
                Birth::Forked(maker.number)
            }
            None if self.images[&image].threads > 1 => Birth::Cloned,
            None => Birth::Executed,
        };
        let marker = marking.marker.clone();
        self.hand_over_marks(image);
        self.image_of(image).section_starts(number, context);
        let deeds = marker.borrow_mut().starts(&self.marked_thread(tid), birth);
        self.perform(tid, &deeds);
    }

    /// Notes that a thread ended.
    pub(crate) fn ends_marked(&mut self, thread: &ProgramThread) {
        if let Some(marking) = &mut self.marking {
            marking.calls.remove(&thread.number);
            marking.asked.remove(&thread.number);
            self.image_of(thread.image).section_ends(thread.number);
        }
    }

    /// Answers a thread that left by `exit` and is about to reach watched address `target`, whose
    /// code is at `body`. Returns the address where the thread is to continue.
    pub(super) fn reaches(&mut self, tid: i32, exit: u32, target: u64, body: u64) -> u64 {
        let Some(registers) = ptrace::registers(tid) else { return body };
        self.close_abandoned(tid, &registers, target);
        self.returns(tid, target, &registers);
        if self.returns_to_request(tid, target, &registers) {
            return body;
        }
        let image = self.image_mut(tid);
        let watched = image.translator.watch.at(target);
        let left = image.block_of_exit(exit);
        let ending = left.and_then(|(block, end)| Some((block, image.translator.watch.ending(end)?)));
        if let Some((block, ending)) = ending {
            match ending {
                Ending::Request => return self.requested(tid, block, registers, target).unwrap_or(body),
                // Nothing is redirected, so no function stands for another one.
                Ending::Original => ptrace::set_registers(tid, &Registers { rax: 0, ..registers }),
                Ending::Call => return self.calls_through_rax(tid, registers, target).unwrap_or(body),
                Ending::Internal => {}
                Ending::Opens(name, length) => self.passes_region(tid, (name, length), Mark::RegionOpens),
                Ending::Closes(name, length) => self.passes_region(tid, (name, length), Mark::RegionCloses),
            }
        }
        if watched == Some(Watched::Entry) {
            self.enters(tid, target, &registers);
        }
        body
    }

    /// Answers a request that ends `block`: `rax` points to its words, and `rdx` gets the answer.
    /// Words that cannot be read ask for nothing. Returns the place of the function that it asks to
    /// call, if it does; that returns to `behind`.
    #[inline(never)]
    fn requested(&mut self, tid: i32, block: u32, registers: Registers, behind: u64) -> Option<u64> {
        let mut bytes = [0u8; 48];
        if memory::read_target(tid, registers.rax, &mut bytes) != bytes.len() {
            return None;
        }
        let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * index + byte]));
        let mark = Mark::Request {
            words: std::array::from_fn(word),
            default: registers.rdx,
            registers: by_number(&registers, behind),
        };
        let answer = self.answer_of_marker(tid, &mark)?;
        let ProgramThread { context, number, .. } = self.threads[&tid];
        let moves = answer.block == MarkedBlock::Behind && !answer.deeds.is_empty();
        let taken = moves && self.image_mut(tid).section_lacks(context, block);
        self.perform(tid, &answer.deeds);
        if taken {
            self.image_mut(tid).section_regains(number, block);
        }
        if let Some(value) = answer.value {
            ptrace::set_registers(tid, &Registers { rdx: value, ..registers });
        }
        self.calls_for_request(tid, answer.call?, registers, behind)
    }

    /// Makes the call that a request asks for, which returns to `behind`. Returns the place of the
    /// function.
    #[cold]
    #[inline(never)]
    fn calls_for_request(
        &mut self,
        tid: i32,
        FunctionCall { function, arguments: [rdi, rsi, rdx, rcx] }: FunctionCall,
        registers: Registers,
        behind: u64,
    ) -> Option<u64> {
        let extended = ptrace::register_set(tid, EXTENDED, EXTENDED_BYTES_MAX).ok()?;
        // Functions begin with the stack pointer 8 bytes below a multiple of 16.
        let stack = (registers.rsp.wrapping_sub(RED_ZONE_BYTES) & !15).wrapping_sub(8);
        let called = Registers { rax: function, rsp: stack + 8, rdi, rsi, rdx, rcx, ..registers };
        let body = self.calls_through_rax(tid, called, behind)?;
        let number = self.threads[&tid].number;
        let asked = self.marking.as_mut()?.asked.entry(number).or_default();
        asked.push(AskedCall { behind, stack: stack + 8, registers, extended });
        Some(body)
    }

    /// Whether the function that a request asked for has returned to `target`. Puts the request's
    /// registers back, with the function's value as its answer.
    fn returns_to_request(&mut self, tid: i32, target: u64, now: &Registers) -> bool {
        let number = self.threads[&tid].number;
        let Some(asked) = self.marking.as_mut().and_then(|marking| marking.asked.get_mut(&number)) else {
            return false;
        };
        let is_over = |call: &AskedCall| call.behind == target && call.stack == now.rsp;
        let Some(index) = asked.iter().rposition(is_over) else { return false };
        // Calls inside of this one were left otherwise.
        asked.truncate(index + 1);
        let Some(call) = asked.pop() else { return false };
        self.puts_back(tid, &call, now);
        true
    }

    /// Puts the registers of a request back whose call has returned, with its value as the answer.
    #[cold]
    #[inline(never)]
    fn puts_back(&mut self, tid: i32, call: &AskedCall, now: &Registers) {
        let (rip, orig_rax) = (now.rip, now.orig_rax);
        let (fs_base, gs_base) = (now.fs_base, now.gs_base);
        let before = Registers { rdx: now.rax, rip, orig_rax, fs_base, gs_base, ..call.registers };
        ptrace::set_registers(tid, &before);
        ptrace::set_register_set(tid, EXTENDED, &call.extended);
        self.ask_marker(tid, &Mark::Returned);
    }

    /// Makes the call that a wrapper asks for: of the function in `rax`, which returns to `behind`.
    fn calls_through_rax(&mut self, tid: i32, registers: Registers, behind: u64) -> Option<u64> {
        let stack = registers.rsp.wrapping_sub(8);
        let image = self.image_mut(tid);
        let fragment_index = image.translator.fragment(registers.rax, &mut image.maps)?;
        let body = image.translator.cache.fragments[fragment_index].body;
        if memory::write_target(tid, stack, &behind.to_le_bytes()) != 8 {
            return None;
        }
        ptrace::set_registers(tid, &Registers { rsp: stack, ..registers });
        Some(body)
    }

    fn passes_region(&mut self, tid: i32, (name, length): (u64, u64), mark: fn(String) -> Mark) {
        let mut bytes = vec![0; length as usize];
        let got = memory::read_target(tid, name, &mut bytes);
        bytes.truncate(got);
        bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(got));
        self.ask_marker(tid, &mark(String::from_utf8_lossy(&bytes).into_owned()));
    }

    /// Opens a call of the function at `target`, unless one is open in the thread.
    fn enters(&mut self, tid: i32, target: u64, registers: &Registers) {
        let number = self.threads[&tid].number;
        let mut word = [0u8; 8];
        if memory::read_target(tid, registers.rsp, &mut word) != word.len() {
            return;
        }
        let return_address = u64::from_le_bytes(word);
        let Some(marking) = &mut self.marking else { return };
        let calls = marking.calls.entry(number).or_default();
        if calls.iter().any(|call| call.function == target) {
            return;
        }
        calls.push(OpenCall { function: target, return_address, stack: registers.rsp });
        // The return is an indirect transfer, so it stops once its target has no slot.
        let translator = &mut self.image_mut(tid).translator;
        if translator.watch.returns_to(return_address) {
            translator.cache.hide(return_address);
        }
        self.ask_marker(tid, &Mark::Enters(target));
    }

    /// Closes the innermost open call if the thread stands at its return address, behind its
    /// return.
    fn returns(&mut self, tid: i32, target: u64, registers: &Registers) {
        let number = self.threads[&tid].number;
        let Some(calls) = self.marking.as_mut().and_then(|marking| marking.calls.get_mut(&number)) else {
            return;
        };
        let is_over = |call: &mut OpenCall| call.return_address == target && registers.rsp > call.stack;
        if let Some(call) = calls.pop_if(is_over) {
            self.ask_marker(tid, &Mark::Leaves(call.function));
        }
    }

    /// Closes calls whose stack frames are gone although they never returned.
    fn close_abandoned(&mut self, tid: i32, registers: &Registers, target: u64) {
        let number = self.threads[&tid].number;
        loop {
            let calls = self.marking.as_mut().and_then(|marking| marking.calls.get_mut(&number));
            let gone = |call: &mut OpenCall| call.stack < registers.rsp && call.return_address != target;
            let Some(call) = calls.and_then(|calls| calls.pop_if(gone)) else { return };
            self.ask_marker(tid, &Mark::Leaves(call.function));
        }
    }

    fn ask_marker(&mut self, tid: i32, mark: &Mark) {
        if let Some(answer) = self.answer_of_marker(tid, mark) {
            self.perform(tid, &answer.deeds);
        }
    }

    fn answer_of_marker(&self, tid: i32, mark: &Mark) -> Option<Answer> {
        let marker = &self.marking.as_ref()?.marker;
        let answer = marker.borrow_mut().reached(&self.marked_thread(tid), mark, &TaskMemory(tid));
        Some(answer)
    }

    /// Performs deeds at the thread's place: in its counters now, and at the observer behind the
    /// records that the thread has written.
    fn perform(&mut self, tid: i32, deeds: &[Deed]) {
        if deeds.is_empty() {
            return;
        }
        let ProgramThread { image: number, number: thread, .. } = self.threads[&tid];
        if self.stays_within(tid, deeds) {
            return self.perform_in_counters(number, deeds);
        }
        self.hand_over_records(tid);
        // Other threads run meanwhile; their sums are those of some instant of the mark.
        let others = self.threads.iter().filter(|(_, other)| other.image == number);
        let tids: Vec<i32> = others.map(|(&tid, _)| tid).collect();
        tids.into_iter().for_each(|tid| self.tell_ticks(tid));
        self.perform_in_counters(number, deeds);
        self.give(RingMessage::Marked { image: number, thread, deeds: deeds.to_vec() });
    }

    /// Notes the deeds with the segment that the thread fills, if that may wait until it is handed
    /// over: the records of no other thread may come between.
    fn stays_within(&mut self, tid: i32, deeds: &[Deed]) -> bool {
        let ProgramThread { context, image: number, .. } = self.threads[&tid];
        let image = self.image_of(number);
        let (segment, _, behind) = image.written(context);
        let (is_alone, ticks) = (image.threads == 1, image.ticks(context));
        let takes_turns = self.shown.quantum().is_some();
        let Some(marking) = self.marking.as_mut().filter(|_| is_alone && !takes_turns) else {
            return false;
        };
        marking.within.note((number, context, segment), MarkWithin { behind, ticks, deeds: deeds.to_vec() })
    }

    /// Hands over the marks that wait in a segment of an image, with the records before them. The
    /// thread that fills it may run.
    fn hand_over_marks(&mut self, image: u32) {
        let waiting = self.marking.as_ref().and_then(|marking| marking.within.of_image(image));
        let is_its = |thread: &ProgramThread| (thread.image, Some(thread.context)) == (image, waiting);
        let Some((&tid, _)) = self.threads.iter().find(|(_, thread)| is_its(thread)) else { return };
        self.take_back();
        self.tell_code(tid);
        let Some(mut segment) = self.filled(tid) else { return };
        let id = segment.id;
        self.marking.iter_mut().for_each(|marking| marking.within.divide(&mut segment));
        self.lend(segment);
        // The same segment is handed over once more when it is full.
        self.wait_for(|lent| *lent == id);
    }

    /// Performs deeds in the counters of an image.
    fn perform_in_counters(&mut self, number: u32, deeds: &[Deed]) {
        for deed in deeds {
            let image = self.image_of(number);
            match *deed {
                Deed::Open(thread) => image.section_opens(thread),
                Deed::Close(thread) => image.section_closes(thread),
                Deed::Cut(thread) => image.sections_cut(thread, Keeps::Part),
                Deed::Drop(thread) => image.sections_cut(thread, Keeps::Nothing),
                Deed::Empty => image.empty_caches(),
                Deed::Rest | Deed::Work => {}
            }
        }
    }

    /// Hands what the thread has recorded to the observer, and gives the thread an empty segment.
    pub(crate) fn hand_over_records(&mut self, tid: i32) {
        let ProgramThread { context, image: number, .. } = self.threads[&tid];
        let (segment, _, count) = self.image_of(number).written(context);
        self.pass_on(tid);
        if count == 0 {
            return;
        }
        let (next, bytes) = match self.binding.is_single() {
            true => (segment, context::RING_SINGLE_BYTES),
            false => ((segment + 1) % context::RING_SEGMENTS, context::RING_SEGMENT_BYTES),
        };
        self.wait_for(|id| *id == (number, context, next));
        self.image_of(number).start_segment(context, next, bytes);
    }
}
