//! Unicode classes as streams: the class bit stands on the last byte of each character.
//!
//! Characters of different lengths are different streams. The code point's bits are basis streams:
//! six of the last byte, six of the byte before, and so on (delayed bases); a class is a decision
//! diagram over them, one choice per node. Diagrams stand in bodies that are skipped in blocks
//! without characters of that length, those for three and four bytes once more by groups of 4,096
//! code points, and all of it vanishes from the program for ASCII.
//!
//! **Exactness.** A diagram covers exactly the code points that a length encodes (no overlong
//! forms, no surrogates), below structural tests of lead and continuation bytes. So a class bit is
//! set exactly where a valid encoding of a member ends, and `advance(m ∧ lead₃, 2) ∧ class₃` moves
//! exactly over valid characters, wherever the markers are and whatever else the text holds. Runs
//! (`\w+`) use one addition: a marker passes members' last bytes and all leads and middles; where a
//! sequence breaks off, the byte that should have continued it is taken out of the run, and what
//! stops inside a character is masked off.

use super::class::{self, ByteSet};
use crate::program::{Builder, Value};
use regex_syntax::hir::{Class, HirKind};
use std::collections::HashMap;

/// Code points as sorted ranges that do not touch.
pub(super) type Ranges = Vec<(u32, u32)>;

/// The streams that the structure of UTF-8 gives, whatever the classes.
#[derive(Clone, Copy)]
pub(super) struct Structure {
    /// Leads of sequences of 2, 3, 4 bytes.
    pub(super) lead: [Value; 3],
    /// Last bytes of well-formed sequences of 2, 3, 4 bytes; overlong forms and surrogates
    /// included.
    last: [Value; 3],
    /// Continuation bytes that are not the last one.
    pub(super) middle: Value,
    /// The byte before is part of a sequence that it does not end.
    pub(super) expected: Value,
    /// Continuation bytes here, and one and two bytes before in the same haystack.
    continues: [Value; 3],
    /// Positions in one haystack with those one, two and three bytes before.
    same_row: [Value; 3],
}

/// The streams of one class.
#[derive(Clone, Copy)]
pub(super) struct ClassStreams {
    /// Members of one byte.
    pub(super) ascii: Value,
    /// Last bytes of members of 2, 3, 4 bytes.
    pub(super) last: [Value; 3],
}

/// Code points that sequences of 2, 3 and 4 bytes encode, cut where UTF-8 has no form.
const LENGTHS: [&[(u32, u32)]; 3] =
    [&[(0x80, 0x7FF)], &[(0x800, 0xD7FF), (0xE000, 0xFFFF)], &[(0x1_0000, 0x10_FFFF)]];
/// Bits of a code point by length of its encoding.
const BITS: [u32; 3] = [11, 16, 21];

impl Structure {
    pub(super) fn build(builder: &mut Builder, same_row: [Value; 3]) -> Structure {
        let near = |builder: &mut Builder, stream: Value, delay: u8| match delay {
            0 => stream,
            _ => builder.and(stream, same_row[usize::from(delay) - 1]),
        };
        let continues = [0, 1, 2].map(|delay| {
            let stream = Self::prefix(builder, &[7], 6, delay);
            near(builder, stream, delay)
        });
        let plain_lead_at = |builder: &mut Builder, length: usize, delay: u8| match length {
            0 => Self::prefix(builder, &[7, 6], 5, delay),
            1 => Self::prefix(builder, &[7, 6, 5], 4, delay),
            _ => Self::prefix(builder, &[7, 6, 5, 4], 3, delay),
        };
        let lead_at = |builder: &mut Builder, length: usize, delay: u8| {
            let stream = plain_lead_at(builder, length, delay);
            near(builder, stream, delay)
        };
        let lead = [0, 1, 2].map(|length| lead_at(builder, length, 0));
        let at_one = [0, 1, 2].map(|length| lead_at(builder, length, 1));
        let at_two = [1, 2].map(|length| lead_at(builder, length, 2));
        let at_three = lead_at(builder, 2, 3);
        let two_continue = builder.and(continues[0], continues[1]);
        let three_continue = builder.and(two_continue, continues[2]);
        let last = [(at_one[0], continues[0]), (at_two[0], two_continue), (at_three, three_continue)];
        let last = last.map(|(lead, rest)| builder.and(lead, rest));
        let long_before = builder.or(at_one[1], at_one[2]);
        let any_before = builder.or(at_one[0], long_before);
        let second_of_long = builder.and(long_before, continues[0]);
        let third_of_four = builder.and(at_two[1], two_continue);
        let middle = builder.or(second_of_long, third_of_four);
        let after_second = builder.or(at_two[0], at_two[1]);
        let after_second = builder.and(after_second, continues[1]);
        let both_before = builder.and(continues[1], continues[2]);
        let after_third = builder.and(at_three, both_before);
        let expected = builder.or(any_before, after_second);
        let expected = builder.or(expected, after_third);
        Structure { lead, last, middle, expected, continues, same_row }
    }

    /// Bytes with the given bits set and one clear, some bytes before.
    fn prefix(builder: &mut Builder, set: &[u8], clear: u8, delay: u8) -> Value {
        let mut stream = builder.basis(clear, delay);
        stream = builder.not(stream);
        for &bit in set.iter().rev() {
            let bit = builder.basis(bit, delay);
            stream = builder.and(bit, stream);
        }
        stream
    }

    /// Any lead.
    pub(super) fn any_lead(&self, builder: &mut Builder) -> Value {
        let long = builder.or(self.lead[1], self.lead[2]);
        builder.or(self.lead[0], long)
    }
}

/// Where decoding backwards finds a member of the class, given its streams: on its last byte, and
/// on up to three continuation bytes too many after it, four bytes in all, over which such decoders
/// step without a look.
pub(super) fn found_backwards(
    builder: &mut Builder,
    structure: &Structure,
    class: &ClassStreams,
    ascii: ByteSet,
) -> Value {
    let [here, one, two] = structure.continues;
    let stray = builder.and_not(here, structure.expected);
    let after_ascii = builder.if_any_list(stray, |builder| {
        let mut strays = stray;
        let mut union = builder.zero();
        for (delay, next) in [(1, Some(one)), (2, Some(two)), (3, None)] {
            let member = class::delayed(builder, ascii, delay);
            let member = builder.and(member, structure.same_row[usize::from(delay) - 1]);
            let found = builder.and(strays, member);
            union = builder.or(union, found);
            strays = next.map_or(strays, |next| builder.and(strays, next));
        }
        vec![union]
    });
    let two_or_three = builder.or(class.last[0], class.last[1]);
    let one_after = builder.advance(two_or_three, 1);
    let two_after = builder.advance(class.last[0], 2);
    let two_after = builder.and(two_after, one);
    let two_after = builder.and(two_after, structure.same_row[1]);
    let one_after = builder.and(one_after, structure.same_row[0]);
    let after_long = builder.or(one_after, two_after);
    let after_long = builder.and(after_long, stray);
    let strays = builder.or(after_ascii[0], after_long);
    class.last.iter().fold(builder.or(class.ascii, strays), |union, &last| builder.or(union, last))
}

/// Streams of several classes at once, which share their diagrams' nodes and their skipped bodies.
pub(super) fn classes(
    builder: &mut Builder,
    structure: &Structure,
    classes: &[Ranges],
    terminator: Option<u8>,
) -> Vec<ClassStreams> {
    let without = |set: ByteSet| terminator.map_or(set, |terminator| set.without(terminator));
    let ascii: Vec<Value> =
        classes.iter().map(|ranges| class::stream(builder, without(ascii_set(ranges)))).collect();
    let last = [0, 1, 2].map(|length| long_members(builder, structure, classes, length));
    let streams =
        |at: usize| ClassStreams { ascii: ascii[at], last: [last[0][at], last[1][at], last[2][at]] };
    (0..classes.len()).map(streams).collect()
}

/// Members below 0x80.
pub(super) fn ascii_set(ranges: &Ranges) -> ByteSet {
    let ascii = ranges.iter().filter(|(first, _)| *first < 0x80);
    ascii.fold(ByteSet::EMPTY, |set, &(first, last)| set.with(first as u8..=last.min(0x7F) as u8))
}

fn cut(ranges: &Ranges, to: &[(u32, u32)]) -> Ranges {
    let mut cut = Vec::new();
    for &(first, last) in ranges {
        for &(low, high) in to {
            if first.max(low) <= last.min(high) {
                cut.push((first.max(low), last.min(high)));
            }
        }
    }
    cut
}

/// A block of code points: the first one, and how many low bits vary.
#[derive(Clone, Copy)]
struct CodeGroup {
    base: u32,
    bits: u32,
}

impl CodeGroup {
    fn ranges(self) -> [(u32, u32); 1] {
        [(self.base, self.base + (1 << self.bits) - 1)]
    }

    /// Whether a class, cut to the group, has all of it or nothing.
    fn is_plain(self, own: &Ranges) -> bool {
        own.is_empty() || own[..] == self.ranges()
    }
}

/// The groups by which members of `length + 2` bytes are skipped: three bytes by their lead, four
/// by 4,096 code points of the first supplementary plane, where scripts and symbols lie mixed, and
/// by whole planes behind it.
fn groups(length: usize) -> Vec<CodeGroup> {
    let small = |base: u32| (0..16).map(move |group| CodeGroup { base: base + (group << 12), bits: 12 });
    match length {
        0 => vec![CodeGroup { base: 0, bits: 11 }],
        1 => small(0).collect(),
        _ => small(0x1_0000).chain((2..=16).map(|plane| CodeGroup { base: plane << 16, bits: 16 })).collect(),
    }
}

/// Last bytes of the members of each class that take `length + 2` bytes.
fn long_members(
    builder: &mut Builder,
    structure: &Structure,
    classes: &[Ranges],
    length: usize,
) -> Vec<Value> {
    let members: Vec<Ranges> = classes.iter().map(|ranges| cut(ranges, LENGTHS[length])).collect();
    let last = structure.last[length];
    if members.iter().all(Vec::is_empty) {
        return vec![builder.zero(); classes.len()];
    }
    builder.if_any_list(last, |builder| {
        let cut_to =
            |group: CodeGroup| members.iter().map(|ranges| cut(ranges, &group.ranges())).collect::<Vec<_>>();
        let all = groups(length).into_iter().map(|group| (group, cut_to(group)));
        let (plain, mixed): (Vec<_>, Vec<_>) =
            all.partition(|(group, own)| length == 0 || own.iter().all(|own| group.is_plain(own)));
        // Groups that a class has entirely or not at all are one small diagram.
        let rest: Vec<Ranges> = (0..classes.len())
            .map(|at| plain.iter().flat_map(|(_, own)| own[at].clone()).collect())
            .collect();
        let whole = CodeGroup { base: 0, bits: BITS[length] };
        let mut union = diagrams(builder, whole, &rest, last);
        for (group, own) in mixed {
            let part = mixed_group(builder, group, BITS[length], &own, last);
            for (union, part) in union.iter_mut().zip(part) {
                *union = builder.or(*union, part);
            }
        }
        union
    })
}

/// The members within one group, in a body that is skipped where no character of the group ends.
fn mixed_group(
    builder: &mut Builder,
    group: CodeGroup,
    bits: u32,
    own: &[Ranges],
    last: Value,
) -> Vec<Value> {
    let inside = (group.bits..bits).fold(last, |stream, bit| {
        let basis = code_bit(builder, bit);
        if group.base >> bit & 1 == 1 {
            builder.and(stream, basis)
        } else {
            builder.and_not(stream, basis)
        }
    });
    builder.if_any_list(inside, |builder| diagrams(builder, group, own, inside))
}

fn diagrams(builder: &mut Builder, group: CodeGroup, own: &[Ranges], inside: Value) -> Vec<Value> {
    let mut known = HashMap::new();
    let mut stream = |ranges: &Ranges| {
        let diagram = diagram(builder, &mut known, group, ranges);
        builder.and(diagram, inside)
    };
    own.iter().map(&mut stream).collect()
}

/// Bit `bit` of the code point of the character that ends here: six bits per continuation byte, the
/// last byte lowest.
fn code_bit(builder: &mut Builder, bit: u32) -> Value {
    builder.basis((bit % 6) as u8, (bit / 6) as u8)
}

/// The stream of code points in `ranges`, as a decision diagram over the bits that vary in the
/// group.
fn diagram(
    builder: &mut Builder,
    known: &mut HashMap<u64, Value>,
    CodeGroup { base, bits }: CodeGroup,
    ranges: &[(u32, u32)],
) -> Value {
    // A group without members, or of nothing else, needs no bit of the code.
    let end = base + (1 << bits) - 1;
    let from = ranges.partition_point(|&(_, last)| last < base);
    let to = ranges.partition_point(|&(first, _)| first <= end);
    let own = &ranges[from..to];
    match own {
        [] => return builder.zero(),
        &[(first, last)] if first <= base && end <= last => return builder.ones(),
        _ => {}
    }
    // Sixty-four codes are a word: groups with equal words share their stream.
    if bits == 6 {
        let bit = |code: u32| u64::from(own.iter().any(|&(first, last)| first <= code && code <= last));
        let members = (base..=end).fold(0, |members, code| members | bit(code) << (code - base));
        return match known.get(&members) {
            Some(&known) => known,
            None => {
                let stream = small_diagram(builder, 6, members);
                known.insert(members, stream);
                stream
            }
        };
    }
    // Else the highest bit chooses between the two halves.
    let no = diagram(builder, known, CodeGroup { base, bits: bits - 1 }, own);
    let yes = diagram(builder, known, CodeGroup { base: base + (1 << (bits - 1)), bits: bits - 1 }, own);
    let bit = code_bit(builder, bits - 1);
    builder.choose(bit, yes, no)
}

/// The decision diagram over at most six bits, for members given as a mask.
fn small_diagram(builder: &mut Builder, bits: u32, members: u64) -> Value {
    let all = u64::MAX >> (64 - (1 << bits));
    if members & all == 0 {
        return builder.zero();
    }
    if members & all == all {
        return builder.ones();
    }
    let no = small_diagram(builder, bits - 1, members);
    let yes = small_diagram(builder, bits - 1, members >> (1 << (bits - 1)));
    let bit = code_bit(builder, bits - 1);
    builder.choose(bit, yes, no)
}

/// The class as bytes, where all of its members are single bytes.
pub(super) fn as_bytes(class: &Class) -> Option<ByteSet> {
    match class {
        Class::Bytes(class) => {
            Some(class.iter().fold(ByteSet::EMPTY, |set, range| set.with(range.start()..=range.end())))
        }
        Class::Unicode(class) => {
            let is_ascii = class.iter().all(|range| range.end() < '\u{80}');
            is_ascii.then(|| ascii_set(&unicode_ranges(class)))
        }
    }
}

pub(super) fn as_ranges(class: &Class) -> Ranges {
    match class {
        Class::Unicode(class) => unicode_ranges(class),
        Class::Bytes(class) => {
            class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect()
        }
    }
}

fn unicode_ranges(class: &regex_syntax::hir::ClassUnicode) -> Ranges {
    class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect()
}

/// Code points of words, as `\w` has them.
pub(super) fn word_ranges() -> Ranges {
    let hir = regex_syntax::parse(r"\w").expect("a Perl class parses");
    match hir.kind() {
        HirKind::Class(class) => as_ranges(class),
        _ => Vec::new(),
    }
}

/// Every code point that UTF-8 encodes.
pub(super) fn all_ranges() -> Ranges {
    vec![(0, 0xD7FF), (0xE000, 0x10_FFFF)]
}

/// The code points that are not in `ranges`.
pub(super) fn complement(ranges: &Ranges) -> Ranges {
    let mut next = 0;
    let mut gaps = Vec::new();
    for &(first, last) in ranges.iter().chain(&[(0x11_0000, 0x11_0000)]) {
        if next < first {
            gaps.push((next, first - 1));
        }
        next = last + 1;
    }
    gaps
}
