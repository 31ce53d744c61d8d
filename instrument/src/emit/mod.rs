//! Turns a superblock into code.
//!
//! Instructions are copied byte for byte; only RIP-relative operands are re-displaced and control transfers rewritten, so every
//! instruction set runs. Around them goes what `events` asks for. The program's stack is never touched (red zone), its return
//! addresses are its own, its flags and registers are as natively at every instruction that could look.

mod append;
mod complex;
mod data;
pub(crate) mod draft;
pub(crate) mod events;
mod facts;
mod group;
pub(crate) mod kept;
pub(crate) mod lookup;
mod looping;
pub(crate) mod routine;
#[cfg(test)]
mod tests;
mod tool;
mod transfer;

pub(crate) use complex::{state_layout, string_shape};
pub(crate) use facts::Facts;

use crate::assemble::{reg, Address, Assembler};
use crate::cache::{count, Exit, Fragment, EXIT_SYSTEM_CALL};
use crate::decode::{number, Decoded, End};
use crate::layout::context;
use crate::liveness;
use crate::translate::{fragment, Piece, Translator, Trust};
use draft::{Bound, Draft, Goal, Part, FLAGS_BIT};
use iced_x86::{Encoder, Mnemonic, Register};

impl Translator {
    /// Emits `pieces` into `draft`, which will lie at the end of zone `z`.
    pub(crate) fn emit(&mut self, draft: &mut Draft, z: usize, pieces: &[Piece], trust: Trust) -> Fragment {
        let counters = self.new_counters(pieces.len());
        let mut facts = std::mem::take(&mut self.facts);
        facts.resize_with(facts.len().max(pieces.len()), Facts::default);
        let dead = self.learn_facts(pieces, &mut facts);
        let flags_dead = facts[0].flags_dead.first().copied().unwrap_or(false);
        let mut result = fragment(pieces[0].ip, z, pieces, counters, flags_dead);
        result.body = draft.hot_base;
        if trust == Trust::Text {
            result.dead = dead;
        }
        result.tunings = self.events.tuning.as_ref().map_or(0, |t| t.tunings);
        // What is not wanted counts as done.
        draft.counted = !self.events.counts();
        if trust == Trust::Generated {
            self.emit_check(draft, z, pieces);
        }
        self.events.start_fragment(counters + pieces.len() as u32 + 1);
        draft.flags_dead = flags_dead;
        draft.dead = facts[0].dead.first().copied().unwrap_or(0);
        draft.touched = facts[0].touched.first().copied().unwrap_or(0xffff);
        draft.limit_due = self.appends();
        if trust == Trust::Text {
            self.begin_loop(draft, pieces, &facts[..pieces.len()]);
        }
        for (n, piece) in pieces.iter().enumerate() {
            let last = n + 1 == pieces.len();
            self.emit_block(draft, z, piece, &facts[n], counters, n, last.then_some(pieces.len()));
        }
        self.finish_tails(draft, z);
        self.facts = facts;
        result
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one call site; a struct of them would only rename the arguments"
    )]
    fn emit_block(
        &mut self,
        d: &mut Draft,
        z: usize,
        piece: &Piece,
        facts: &Facts,
        counters: u32,
        n: usize,
        last_of: Option<usize>,
    ) {
        let plan = self.plan_block(piece, facts, n as u32);
        if facts.uses.is_empty() {
            d.restore(!0);
        }
        let size = piece.instructions.len();
        for (k, decoded) in piece.instructions.iter().enumerate() {
            d.flags_dead = facts.flags_dead[k];
            d.dead = facts.dead.get(k).copied().unwrap_or(0);
            d.touched = facts.touched.get(k).copied().unwrap_or(0xffff);
            let at = d.hot.len() as u32;
            let spilled = d.spilled;
            let counted = d.counted;
            let pending = d.pending;
            if k == 0 {
                self.block_starts(d, z, piece);
            }
            tool::before(d, piece, k);
            self.references(d, z, piece, &plan, k);
            if d.limit_due && (d.flags_free() || k + 1 == size) {
                d.check_limit();
            }
            if let (Some(blocks), true) = (last_of, d.flags_free()) {
                if !d.counted {
                    d.counted = true;
                    d.hot.increment(context::COUNTERS + 8 * (counters + blocks as u32));
                }
            }
            if let Some(u) = facts.uses.get(k) {
                let flags = if needs_flags(decoded) { FLAGS_BIT } else { 0 };
                d.restore((u.needs | u.writes & !u.kills) & !FLAGS_BIT | flags);
                if d.held.is_some_and(|r| u.kills >> r & 1 != 0) {
                    d.let_go();
                }
            }
            if k + 1 == size {
                d.commit();
            }
            let index = k as u8;
            // A stop at `at` is before the counter of this instruction's own prologue.
            d.bounds.push(Bound {
                at,
                block: piece.number,
                index,
                counted,
                counted_executing: d.counted,
                spilled,
                executing: d.spilled,
                retreat: false,
                pending,
                pending_executing: d.pending,
            });
            if k + 1 == size && piece.end == End::Transfer {
                self.transfer(
                    d,
                    z,
                    piece,
                    decoded,
                    counters + n as u32,
                    last_of.map(|b| counters + b as u32),
                );
                break;
            }
            self.copy(d, decoded, facts.uses.get(k));
            if let Some(u) = facts.uses.get(k) {
                d.spilled &= !(u.kills & !FLAGS_BIT);
                if liveness::overwrites_flags(decoded) {
                    d.spilled &= !FLAGS_BIT;
                }
            }
            self.after(d, z, piece, &plan, k);
            tool::after(d, piece, facts, k);
        }
        if piece.end != End::Transfer && piece.next.is_none() {
            self.count_last(d, last_of.map(|b| counters + b as u32));
            self.direct_exit(d, z, piece.end_ip());
        }
        self.plan = plan;
    }

    /// The last counter, where no instruction of the last block offered dead flags.
    pub(crate) fn count_last(&mut self, d: &mut Draft, counter: Option<u32>) {
        if let Some(counter) = counter.filter(|_| !d.counted) {
            let free = d.flags_free();
            count(&mut d.hot, counter, free);
            d.counted = true;
        }
    }

    /// Copies an instruction that is no transfer.
    pub(crate) fn copy(&mut self, d: &mut Draft, decoded: &Decoded, uses: Option<&liveness::Use>) {
        let i = &decoded.i;
        if i.is_ip_rel_memory_operand() {
            return self.copy_relative(d, decoded, uses);
        }
        if let Some(why) = unsupported(i.mnemonic()) {
            self.refusal.get_or_insert_with(|| format!("at {:#x}: {why}", i.ip()));
        }
        d.hot.copy(decoded);
        if matches!(i.mnemonic(), Mnemonic::Wrfsbase) {
            let r = number(i.op0_register()).unwrap_or(reg::RAX);
            d.hot.store(r, context::FS_BASE);
        }
    }

    /// Copies an instruction with a RIP-relative operand: another displacement, or an address in a register.
    fn copy_relative(&mut self, d: &mut Draft, decoded: &Decoded, uses: Option<&liveness::Use>) {
        let i = &decoded.i;
        let target = i.ip_rel_memory_address();
        let end = d.hot_base + d.hot.len() as u64 + i.len() as u64;
        let displacement = target.wrapping_sub(end) as i64;
        let constants = iced_x86::Decoder::with_ip(64, decoded.raw(), i.ip(), 0).decode_with_offsets();
        if let (Ok(value), Some(offset)) = (i32::try_from(displacement), constants) {
            let at = d.hot.len() + offset;
            d.hot.copy(decoded);
            d.hot.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            return;
        }
        if i.mnemonic() == Mnemonic::Lea && i.op0_register().is_gpr64() {
            return d.hot.mov_imm(number(i.op0_register()).unwrap_or(reg::RAX), target);
        }
        let used = match uses {
            Some(u) => u.needs | u.kills | u.writes,
            None => {
                let u = liveness::register_use(&mut self.factory, decoded);
                u.needs | u.kills | u.writes
            }
        };
        // rsp, rbp, r12 and r13 have longer encodings as a base; there is always another register.
        let r = (0..16u8).find(|r| ![4, 5, 12, 13].contains(r) && used >> r & 1 == 0).unwrap_or(reg::RAX);
        d.hot.store(r, context::TEMP + 8);
        d.hot.mov_imm(r, target);
        let mut moved = *i;
        moved.set_memory_base(register(r));
        moved.set_memory_displacement64(0);
        moved.set_memory_displ_size(0);
        let mut encoder = Encoder::new(64);
        match encoder.encode(&moved, d.hot_base + d.hot.len() as u64) {
            Ok(_) => d.hot.raw(&encoder.take_buffer()),
            Err(e) => self.refusal = Some(format!("cannot encode an instruction at {:#x}: {e}", i.ip())),
        }
        d.hot.load(r, context::TEMP + 8);
    }

    /// Compares generated code with what was translated, word by word, without touching flags.
    fn emit_check(&mut self, d: &mut Draft, z: usize, pieces: &[Piece]) {
        let (start, end) = (pieces[0].ip & !7, pieces.last().map_or(pieces[0].ip, Piece::end_ip));
        let exit = self.new_exit(Exit {
            target: pieces[0].ip,
            zone: z as u32,
            patch: self.cache.fragments.len() as u32,
            counter: None,
            restore: 0,
            next: 0,
            stale: true,
        });
        let (ax, cx) = (reg::RAX, reg::RCX);
        d.hot.store(ax, draft::slot(ax));
        d.hot.store(cx, draft::slot(cx));
        let mut failed = Vec::new();
        let mut at = start;
        while at < end {
            let (bytes, _) = self.reader.fetch(at);
            let word = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            d.hot.raw(&[0x48, 0xa1]); // mov rax, [absolute]
            d.hot.raw(&at.to_le_bytes());
            d.hot.mov_imm(cx, word.wrapping_neg());
            d.hot.raw(&[0x48, 0x8d, 0x0c, 0x01, 0xe3, 5]); // lea rcx, [rcx + rax]; jrcxz over the jump
            failed.push(d.hot.jump());
            at += 8;
        }
        for jump in failed {
            d.link(Part::Hot, jump, Goal::Cold(d.cold.len()));
        }
        draft::restore_registers(&mut d.cold, 1 << ax | 1 << cx);
        self.leave_cold(d, z, exit);
        draft::restore_registers(&mut d.hot, 1 << ax | 1 << cx);
    }

    /// Cold code that hands over with exit number `exit`.
    pub(crate) fn leave_cold(&mut self, d: &mut Draft, z: usize, exit: u32) {
        d.cold.store_imm32(context::EXIT, exit);
        let at = d.cold.jump();
        d.link(Part::Cold, at, Goal::Address(self.cache.zones[z].routines.hand_over));
    }

    /// `syscall`: special numbers stop for the host first; afterwards rcx is what the program expects.
    fn system_call(&mut self, d: &mut Draft, z: usize, decoded: &Decoded, piece: &Piece) {
        let next = decoded.i.next_ip();
        // Before the call only rcx changes, which the call destroys anyway.
        d.bounds.push(Bound {
            at: d.hot.len() as u32,
            block: piece.number,
            index: piece.instructions.len() as u8 - 1,
            counted: d.counted,
            counted_executing: d.counted,
            spilled: 0,
            executing: 0,
            retreat: true,
            pending: 0,
            pending_executing: 0,
        });
        d.hot.raw(&[0x0f, 0xb7, 0xc8, 0x0f, 0xb6, 0x89]); // movzx ecx, ax; movzx ecx, byte [rcx + table]
        d.hot.imm32(self.cache.layout.system_call_table() as u32);
        d.hot.raw(&[0xe3, 14]); // jrcxz over the stop
        d.hot.store_imm32(context::EXIT, EXIT_SYSTEM_CALL);
        d.hot.raw(&[0xcc, 0x90]);
        d.hot.raw(&[0x0f, 0x05]);
        d.bounds.push(Bound {
            at: d.hot.len() as u32,
            block: piece.number,
            index: piece.instructions.len() as u8,
            counted: d.counted,
            counted_executing: d.counted,
            spilled: 0,
            executing: 0,
            retreat: false,
            pending: 0,
            pending_executing: 0,
        });
        d.hot.mov_imm(reg::RCX, next);
        self.direct_exit(d, z, next);
    }
}

/// Whether `d` must find the program's status flags (reads some, or leaves some untouched).
fn needs_flags(d: &Decoded) -> bool {
    let touched = d.i.rflags_modified() & liveness::FLAGS;
    d.i.rflags_read() & liveness::FLAGS != 0 || touched != 0 && !liveness::overwrites_flags(d)
}

fn unsupported(m: Mnemonic) -> Option<&'static str> {
    match m {
        Mnemonic::Wrgsbase | Mnemonic::Rdgsbase | Mnemonic::Swapgs => Some(
            "the program uses the gs register itself, which lightfoot needs; such programs are not supported",
        ),
        Mnemonic::Sysenter | Mnemonic::Sysexit => Some("sysenter is not supported in 64-bit programs"),
        _ => None,
    }
}

/// `iced-x86`'s name of a hardware register.
pub(crate) fn register(r: u8) -> Register {
    Register::values().find(|&x| x.is_gpr64() && number(x) == Some(r)).expect("sixteen registers")
}

/// Offset of a 32-bit displacement in an instruction.
trait Offsets {
    fn decode_with_offsets(self) -> Option<usize>;
}

impl Offsets for iced_x86::Decoder<'_> {
    fn decode_with_offsets(mut self) -> Option<usize> {
        let i = self.decode();
        let offsets = self.get_constant_offsets(&i);
        (offsets.has_displacement() && offsets.displacement_size() == 4)
            .then(|| offsets.displacement_offset())
    }
}

/// Adds the `fs` base to an address in `r`. Needs free flags.
pub(crate) fn add_segment(code: &mut Assembler, r: u8, address: &Address) {
    if address.fs {
        code.add_context(r, context::FS_BASE);
    }
}
