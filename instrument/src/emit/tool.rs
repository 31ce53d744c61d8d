//! The events that a tool asked for, as code.
//!
//! A record per event: the value, the request's number, its tag. Before an instruction they stand where its references do, so that an attempt
//! that faults shows; after it, behind everything that belongs to it, so that only what retired shows. An address that is wanted afterwards
//! is formed before (the instruction may change its registers) and waits in the context. Signals are delivered at an
//! instruction's bound only, hence never between the two. **Leaves out** deciding what is asked (`tool`).

use super::data::check_ring;
use super::draft::{Draft, FLAGS_BIT};
use super::{add_segment, Facts};
use crate::assemble::{Address, Assembler};
use crate::layout::context;
use crate::tool::{Asked, Source, When};
use crate::translate::Piece;
use event::RecordKind;

/// Events before instruction `k`, and the addresses of those after it.
pub(super) fn before(d: &mut Draft, piece: &Piece, k: usize) {
    if piece.events.is_empty() {
        return;
    }
    for asked in piece.events.at(k, When::After) {
        if let Source::Stashed(address, slot) = asked.source {
            stash(d, &address, slot);
        }
    }
    record(d, piece.events.at(k, When::Before));
}

/// Events after instruction `k`: what is dead, and what comes next, is that of the instruction behind it.
pub(super) fn after(d: &mut Draft, piece: &Piece, facts: &Facts, k: usize) {
    let events = piece.events.at(k, When::After);
    if events.is_empty() {
        return;
    }
    d.flags_dead = facts.flags_dead.get(k + 1).copied().unwrap_or(false);
    d.dead = facts.dead.get(k + 1).copied().unwrap_or(0);
    d.touched = facts.touched.get(k + 1).copied().unwrap_or(0);
    record(d, events);
}

fn stash(d: &mut Draft, address: &Address, slot: u8) {
    let registers = address.registers();
    d.free_flags();
    d.restore(registers & !FLAGS_BIT);
    let a = d.scratch(registers);
    form(&mut d.hot, a, address);
    d.hot.store(a, waiting(slot));
}

/// One record per event; the ring's slack holds them all, so one check at the end will do.
fn record(d: &mut Draft, events: &[Asked]) {
    let Some(last) = events.len().checked_sub(1) else { return };
    d.free_flags();
    for (n, asked) in events.iter().enumerate() {
        let needed = asked.source.registers();
        d.restore(needed & !FLAGS_BIT);
        let position = d.scratch(needed);
        d.hot.load(position, context::RING_POSITION);
        value(d, asked.source, position);
        d.hot.store_imm_at(position, 8, asked.number << 8 | (RecordKind::Tool as u32) << 4);
        d.hot.store_imm_at(position, 12, asked.tag);
        d.hot.advance(position, 16);
        d.hot.store(position, context::RING_POSITION);
        if n == last {
            check_ring(d, position);
        }
    }
}

/// Stores the value at the ring's position.
fn value(d: &mut Draft, source: Source, position: u8) {
    match source {
        Source::Constant(value) => {
            d.hot.store_imm_at(position, 0, value as u32);
            d.hot.store_imm_at(position, 4, (value >> 32) as u32);
        }
        Source::Register(r) => d.hot.store_at(r, position, 0),
        Source::Address(address) => {
            let a = d.scratch(address.registers() | 1 << position);
            form(&mut d.hot, a, &address);
            d.hot.store_at(a, position, 0);
        }
        Source::Stashed(_, slot) => {
            let a = d.scratch(1 << position);
            d.hot.load(a, waiting(slot));
            d.hot.store_at(a, position, 0);
        }
    }
}

/// `lea`, with the segment's base. Needs free flags.
fn form(code: &mut Assembler, a: u8, address: &Address) {
    code.lea(a, address);
    add_segment(code, a, address);
}

/// Where an address waits for its instruction's end.
fn waiting(slot: u8) -> u32 {
    context::WAITING + 8 * u32::from(slot)
}
