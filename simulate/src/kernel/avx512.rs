//! The kernel for AVX-512: a row is one register, or two; compare, permute, store. Sixteen touches
//! are staged, located and packed at once.
//!
//! **Cost.** About fifteen instructions for a row of 8 lanes; touches of different sets overlap.

use super::row::Row;
use super::tag::Tag;
use super::token::Avx512;
use super::touch_row::{Fill, TouchRow};
use super::vectors::{Located, Vectors};
use crate::limits::TouchLimits;
use crate::row_map::RowMap;
use crate::touch::{lanes_mut, TouchStep, Touches, STEP};
use bytemuck::cast;
use event::{Record, RecordKind};
use std::arch::x86_64::{__m128i, __m512i};

impl Vectors for Avx512 {
    #[inline(always)]
    fn stage(
        self,
        records: &[Record; STEP],
        limits: &TouchLimits,
        reference: u32,
        touches: &mut Touches,
    ) -> u32 {
        let quarters = quarters(records);
        // A record is 16 bytes: address (8), `what` (4), `extra` (4). Four registers hold the
        // sixteen, and two permutations gather the addresses of eight records into one register.
        let even = cast([0u64, 2, 4, 6, 8, 10, 12, 14]);
        let low = self._mm512_permutex2var_epi64(quarters.0, even, quarters.1);
        let high = self._mm512_permutex2var_epi64(quarters.2, even, quarters.3);
        let what = thirds(self, quarters);
        let evens = cast(EVEN);
        // The low words of the addresses say where in their lines the records are.
        let offset = self._mm512_and_si512(
            self._mm512_permutex2var_epi32(low, evens, high),
            self._mm512_set1_epi32(limits.offset_mask as i32),
        );
        // A look-up takes the lowest four bits of each lane.
        let kind = self._mm512_srli_epi32::<4>(what);
        let size_limit = self._mm512_permutexvar_epi32(what, cast(limits.sizes));
        let mask = self._mm512_permutexvar_epi32(kind, cast(limits.masks));
        let kind_limit = self._mm512_permutexvar_epi32(kind, cast(limits.kinds));
        let limit = self._mm512_or_si512(self._mm512_and_si512(size_limit, mask), kind_limit);
        // References are numbered in program order.
        let first = self._mm512_set1_epi32(reference as i32);
        let numbers = cast([0u32, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let at = touches.len;
        // All sixteen are written; the caller moves `len` over those that are touches.
        let address: [u64; STEP] = cast([low, high]);
        *lanes_mut(&mut touches.address, at) = address;
        let compared = self._mm512_cmple_epi32_mask(offset, limit);
        let what: [u32; STEP] = cast(what);
        *lanes_mut(&mut touches.what, at) = what;
        let reference: [u32; STEP] = cast(self._mm512_add_epi32(first, numbers));
        *lanes_mut(&mut touches.reference, at) = reference;
        u32::from(compared)
    }

    #[inline(always)]
    fn whats(self, records: &[Record; STEP]) -> [u32; STEP] {
        cast(thirds(self, quarters(records)))
    }

    #[inline(always)]
    fn without_extra(self, records: &[Record; STEP]) -> u32 {
        let (a, b, c, d) = quarters(records);
        // The last word of each record, in a register of four. A mask has a bit for each word, of
        // which every fourth counts.
        let zero = cast([0u32; STEP]);
        let nth = |quarter| u32::from(self._mm512_cmpeq_epi32_mask(quarter, zero)) >> 3 & 0x1111;
        // The four bits of a mask move together by one multiplication.
        let four = |quarter| nth(quarter).wrapping_mul(0x1248) >> 12 & 15;
        four(a) | four(b) << 4 | four(c) << 8 | four(d) << 12
    }

    #[inline(always)]
    fn prefetch<T>(self, item: &T) {
        self.prefetch_item(item);
    }

    #[inline(always)]
    fn prefetch_address(self, address: usize) {
        self.prefetch_line(address);
    }

    #[inline(always)]
    fn find(self, row: &Row<u64, 16>, line: u64) -> u32 {
        let tag = self._mm512_set1_epi64(line as i64);
        let [low, high]: [[u64; 8]; 2] = cast(row.0);
        let found = |tags: [u64; 8]| u32::from(self._mm512_cmpeq_epi64_mask(cast(tags), tag));
        found(low) | found(high) << 8
    }

    #[inline(always)]
    fn zeros(self, found: &[u32; STEP]) -> u32 {
        u32::from(self._mm512_cmpeq_epi32_mask(cast(*found), cast([0u32; STEP])))
    }

    #[inline(always)]
    fn of_kind(self, what: &[u32; STEP], kind: RecordKind) -> u32 {
        let kinds = self._mm512_and_si512(cast(*what), self._mm512_set1_epi32(0xf0));
        u32::from(self._mm512_cmpeq_epi32_mask(kinds, self._mm512_set1_epi32((kind as i32) << 4)))
    }

    #[inline(always)]
    fn differ(self, some: &[u32; STEP], others: &[u32; STEP]) -> u32 {
        u32::from(self._mm512_cmpneq_epi32_mask(cast(*some), cast(*others)))
    }

    #[inline(always)]
    fn long_differ(self, some: &[u64; STEP], others: &[u64; STEP]) -> u32 {
        let [low, high]: [[u64; 8]; 2] = cast(*some);
        let [other_low, other_high]: [[u64; 8]; 2] = cast(*others);
        let low = self._mm512_cmpneq_epi64_mask(cast(low), cast(other_low));
        u32::from(low) | u32::from(self._mm512_cmpneq_epi64_mask(cast(high), cast(other_high))) << 8
    }

    #[inline(always)]
    fn changes(self, before: &mut [u32; STEP], now: &[u32; STEP]) -> u32 {
        // Each lane beside the one before it; the first beside the last of the step before.
        let shifted = self._mm512_alignr_epi32::<15>(cast(*now), cast(*before));
        *before = *now;
        u32::from(self._mm512_cmpneq_epi32_mask(cast(*now), shifted))
    }

    #[inline(always)]
    fn long_changes(self, before: &mut [u64; STEP], now: &[u64; STEP]) -> u32 {
        let [_, last]: [[u64; 8]; 2] = cast(*before);
        let [low, high]: [[u64; 8]; 2] = cast(*now);
        let changes = |before: [u64; 8], now: [u64; 8]| {
            let shifted = self._mm512_alignr_epi64::<7>(cast(now), cast(before));
            u32::from(self._mm512_cmpneq_epi64_mask(cast(now), shifted))
        };
        *before = *now;
        changes(last, low) | changes(low, high) << 8
    }

    #[inline(always)]
    fn locate(self, step: TouchStep, maps: &[RowMap; 2], rows: &mut [u32; STEP]) -> Located {
        let fetch = self.fetches(step.what);
        let [low, high]: [[u64; 8]; 2] = cast(*step.address);
        // Addresses have 8 bytes: the sixteen are located eight at a time.
        let (row_low, line_low, quotient_low) = locate(self, fetch as u8, maps, cast(low));
        let (row_high, line_high, quotient_high) = locate(self, (fetch >> 8) as u8, maps, cast(high));
        *rows = cast(self._mm512_permutex2var_epi32(row_low, cast(EVEN), row_high));
        Located { line: cast([line_low, line_high]), quotient: cast([quotient_low, quotient_high]) }
    }

    #[inline(always)]
    fn narrow(self, quotients: &[u64; STEP], tags: &mut [u32; STEP]) -> u32 {
        let [low, high]: [[u64; 8]; 2] = cast(*quotients);
        let (low, high) = (cast(low), cast(high));
        // Lower and upper halves of sixteen numbers of 8 bytes; a number fits where its upper half
        // is 0.
        let narrow = self._mm512_permutex2var_epi32(low, cast(EVEN), high);
        let upper = self._mm512_permutex2var_epi32(low, cast(ODD), high);
        let inverted = self._mm512_xor_si512(narrow, cast([u32::MAX; STEP]));
        *tags = cast(inverted);
        let large = self._mm512_cmpneq_epi32_mask(upper, cast([0u32; STEP]));
        u32::from(large | self._mm512_cmpeq_epi32_mask(inverted, cast([u32::EMPTY; STEP])))
    }

    #[inline(always)]
    fn pack(self, kept: u32, numbers: &[u32; STEP]) -> [u32; STEP] {
        cast(self._mm512_maskz_compress_epi32(kept as u16, cast(*numbers)))
    }

    #[inline(always)]
    fn keep(self, kept: u32, step: TouchStep, touches: &mut Touches) {
        let [low, high]: [[u64; 8]; 2] = cast(*step.address);
        let at = touches.len;
        let middle = at + (kept & 0xff).count_ones() as usize;
        // The second half overwrites what of the first is not kept.
        let low: [u64; 8] = cast(self._mm512_maskz_compress_epi64(kept as u8, cast(low)));
        let high: [u64; 8] = cast(self._mm512_maskz_compress_epi64((kept >> 8) as u8, cast(high)));
        *lanes_mut(&mut touches.address, at) = low;
        *lanes_mut(&mut touches.address, middle) = high;
        let what: [u32; STEP] = cast(self._mm512_maskz_compress_epi32(kept as u16, cast(*step.what)));
        let reference: [u32; STEP] =
            cast(self._mm512_maskz_compress_epi32(kept as u16, cast(*step.reference)));
        *lanes_mut(&mut touches.what, at) = what;
        *lanes_mut(&mut touches.reference, at) = reference;
        touches.len = at + kept.count_ones() as usize;
    }
}

/// Every other lane of two registers.
const EVEN: [u32; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];

const ODD: [u32; 16] = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31];

/// Rows, lines and quotients of eight touches; `fetch` says which go to the second part.
#[inline(always)]
fn locate(avx512: Avx512, fetch: u8, maps: &[RowMap; 2], address: __m512i) -> (__m512i, __m512i, __m512i) {
    let [data, code] = maps;
    // Each lane takes the numbers of the cache that its touch goes to.
    let line_shift = either(avx512, fetch, data.line_shift.into(), code.line_shift.into());
    let last_set = either(avx512, fetch, data.sets - 1, code.sets - 1);
    let base = either(avx512, fetch, data.base.into(), code.base.into());
    let set_shift = either(avx512, fetch, data.set_shift.into(), code.set_shift.into());
    let line = avx512._mm512_srlv_epi64(address, line_shift);
    let row = avx512._mm512_add_epi64(base, avx512._mm512_and_si512(line, last_set));
    (row, line, avx512._mm512_srlv_epi64(line, set_shift))
}

#[inline(always)]
fn either(avx512: Avx512, fetch: u8, data: u64, code: u64) -> __m512i {
    avx512._mm512_mask_blend_epi64(
        fetch,
        avx512._mm512_set1_epi64(data as i64),
        avx512._mm512_set1_epi64(code as i64),
    )
}

/// Sixteen records, four in each register.
type Quarters = (__m512i, __m512i, __m512i, __m512i);

#[inline(always)]
fn quarters(records: &[Record; STEP]) -> Quarters {
    (quarter(records, 0), quarter(records, 4), quarter(records, 8), quarter(records, 12))
}

/// The third word of 4 bytes of each record, which is `what`.
#[inline(always)]
fn thirds(avx512: Avx512, quarters: Quarters) -> __m512i {
    // Two registers give eight of them, and the halves join.
    let thirds = cast([2u32, 6, 10, 14, 18, 22, 26, 30, 2, 6, 10, 14, 18, 22, 26, 30]);
    let low = avx512._mm512_permutex2var_epi32(quarters.0, thirds, quarters.1);
    let high = avx512._mm512_permutex2var_epi32(quarters.2, thirds, quarters.3);
    avx512._mm512_mask_blend_epi32(0xff00, low, high)
}

/// Four records. A record is two words: its address, and `what` below `extra`; as quarters of a
/// register the four are one load.
#[inline(always)]
fn quarter(records: &[Record; STEP], first: usize) -> __m512i {
    let record = |index: usize| -> __m128i {
        cast([records[first + index].address, payloads(records[first + index])])
    };
    cast::<[__m128i; 4], _>([record(0), record(1), record(2), record(3)])
}

#[inline(always)]
fn payloads(record: Record) -> u64 {
    u64::from(record.what) | u64::from(record.extra) << 32
}

// Lanes are moved by a permutation whose indices are chosen, not by a choice between lanes as they
// were and lanes that have moved: that would become a store under a mask, and a load of the same
// row soon after would wait until it has left the store buffer. Touches of one row follow each
// other in many programs (a binary search does not leave one set for half of its steps), so what
// counts is the time from a row's load to its store. Where all lanes are ways, masks stay in mask
// registers: twelve cycles, not fifteen.

/// Where lanes of eight come from that stay.
const STAY: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
/// Where lanes of eight come from that move up by one: the lowest from the second operand's first
/// lane, or from its last.
const MOVE: [u64; 8] = [8, 0, 1, 2, 3, 4, 5, 6];
const MOVE_HIGH: [u64; 8] = [15, 0, 1, 2, 3, 4, 5, 6];
/// Where lanes of sixteen come from that stay, and that move up by one.
const NARROW_STAY: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const NARROW_MOVE: [u32; 16] = [16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];

impl TouchRow<u64, 8> for Avx512 {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<u64, 8>, line: u64, fill: F) -> u32 {
        let tag = self._mm512_set1_epi64(line as i64);
        let tags = cast(row.0);
        let found = self._mm512_cmpeq_epi64_mask(tags, tag);
        // Lanes up to the tag move; `found ^ (found + all)` is that mask, and never leaves mask
        // registers.
        let moved = match fill.whole() {
            Some(all) => self._kxor_mask8(found, self._kadd_mask8(found, all as u8)),
            None => fill.moved(found.into()) as u8,
        };
        // One permutation with chosen indices shifts the lanes and brings the tag in front.
        let from = self._mm512_mask_blend_epi64(moved, cast(STAY), cast(MOVE));
        row.0 = cast(self._mm512_permutex2var_epi64(tags, from, tag));
        found.into()
    }
}

impl TouchRow<u64, 16> for Avx512 {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<u64, 16>, line: u64, fill: F) -> u32 {
        let tag = self._mm512_set1_epi64(line as i64);
        let [low, high]: [[u64; 8]; 2] = cast(row.0);
        let (low, high) = (cast(low), cast(high));
        let found = u32::from(self._mm512_cmpeq_epi64_mask(low, tag))
            | u32::from(self._mm512_cmpeq_epi64_mask(high, tag)) << 8;
        let moved = fill.moved(found);
        // The lower half takes the tag in front; the upper half takes the lower one's last lane.
        let from_low = self._mm512_mask_blend_epi64(moved as u8, cast(STAY), cast(MOVE));
        let from_high = self._mm512_mask_blend_epi64((moved >> 8) as u8, cast(STAY), cast(MOVE_HIGH));
        let new_low: [u64; 8] = cast(self._mm512_permutex2var_epi64(low, from_low, tag));
        let new_high: [u64; 8] = cast(self._mm512_permutex2var_epi64(high, from_high, low));
        row.0 = cast([new_low, new_high]);
        found
    }
}

impl TouchRow<u32, 16> for Avx512 {
    #[inline(always)]
    fn touch_row<F: Fill>(self, row: &mut Row<u32, 16>, tag: u32, fill: F) -> u32 {
        let tag = self._mm512_set1_epi32(tag as i32);
        let tags = cast(row.0);
        let found = self._mm512_cmpeq_epi32_mask(tags, tag);
        let moved = match fill.whole() {
            Some(all) => self._kxor_mask16(found, self._kadd_mask16(found, all as u16)),
            None => fill.moved(found.into()) as u16,
        };
        let from = self._mm512_mask_blend_epi32(moved, cast(NARROW_STAY), cast(NARROW_MOVE));
        row.0 = cast(self._mm512_permutex2var_epi32(tags, from, tag));
        found.into()
    }
}
