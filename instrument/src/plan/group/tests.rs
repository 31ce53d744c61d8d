//! Groups of references against what each reference by itself would touch.

use super::*;
use event::{FetchFilter, ModifyFilter, PageFilter, SetFilter};
use iced_x86::{Decoder, DecoderOptions};

const FILTER: Filter = Filter {
    data: SetFilter { sets: 64, line_bytes: 64 },
    instruction: SetFilter { sets: 64, line_bytes: 64 },
    data_page: None,
    instruction_page: None,
    stores: StoreFilter::NeverEnter,
    fetches: FetchFilter::LastOfSet,
    pages: PageFilter::LastOfSet,
    modifies: ModifyFilter::Both,
};
const RBX: u8 = 3;

/// The properties of an instruction that groups depend on: its reference, and its changes of
/// rsp and rbx.
#[derive(Clone, Debug)]
struct Deed {
    reference: Option<(u8, i64, RecordKind, u32, RecordMode)>,
    bytes: &'static [u8],
    written: u16,
    moves: [i64; 2],
}

/// Instructions: their bytes, the registers that they write, and their additions to rsp and
/// rbx.
const STEPS: &[(&[u8], u16, [i64; 2])] = &[
    (&[0x90], 0, [0, 0]),
    (&[0x53], 1 << reg::RSP, [-8, 0]),                          // push rbx
    (&[0x58], 1 << reg::RSP | 1, [8, 0]),                       // pop rax
    (&[0x48, 0x83, 0xec, 0x18], 1 << reg::RSP, [-24, 0]),       // sub rsp, 24
    (&[0x48, 0x81, 0xc4, 0, 1, 0, 0], 1 << reg::RSP, [256, 0]), // add rsp, 256
    (&[0x48, 0x8d, 0x64, 0x24, 0x08], 1 << reg::RSP, [8, 0]),   // lea rsp, [rsp + 8]
    (&[0x48, 0x83, 0xc3, 0x10], 1 << RBX, [0, 16]),             // add rbx, 16
];

/// Pseudo-random numbers (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

fn deed(random: &mut Random) -> Deed {
    let kind = random.of(&[RecordKind::Load, RecordKind::Load, RecordKind::Load, RecordKind::Store]);
    let mode = random.of(&[
        RecordMode::Checked,
        RecordMode::Checked,
        RecordMode::Checked,
        RecordMode::Checked,
        RecordMode::Always,
        RecordMode::Branchless,
    ]);
    let base = random.of(&[reg::RSP, reg::RSP, reg::RSP, RBX]);
    let reference = (base, 8 * random.below(15) as i64 - 24, kind, random.of(&[4, 8, 8, 16, 128]), mode);
    let step = random.below(2) * random.below(STEPS.len());
    let (bytes, written, moves) = STEPS[step];
    Deed { reference: (random.below(5) > 0).then_some(reference), bytes, written, moves }
}

/// The instruction of a member, and the first byte that it references.
type Truth = (usize, i64);

/// Groups, the true address of each reference, and the registers at each instruction.
fn grouped(deeds: &[Deed]) -> (Groups, Vec<Truth>, Vec<[i64; 2]>) {
    let (mut groups, mut truth, mut states) = (Groups::default(), Vec::new(), Vec::new());
    let mut state = [1 << 40, 1 << 20];
    for (index, deed) in deeds.iter().enumerate() {
        states.push(state);
        if let Some((base, at, kind, size, mode)) = deed.reference {
            truth.push((index, state[usize::from(base == RBX)] + at));
            let address = Address::based(base, at);
            groups.add(Member::new((address, kind, size), 0, index, mode), Some(&FILTER));
        }
        let instruction = Decoder::with_ip(64, deed.bytes, 0x1000, DecoderOptions::NONE).decode();
        groups.pass(&Decoded { instruction, bytes: [0; 16], shape: 0 }, deed.written);
        (state[0], state[1]) = (state[0] + deed.moves[0], state[1] + deed.moves[1]);
    }
    groups.close();
    (groups, truth, states)
}

/// Each reference is in one group, in order and with its true address, and the group's check
/// covers all its bytes.
#[test]
fn a_check_covers_its_members() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut near, mut hoisted, mut joined) = (0, 0, 0);
    for _ in 0..20_000 {
        let deeds: Vec<Deed> = (0..random.below(24)).map(|_| deed(&mut random)).collect();
        let (mut groups, truth, states) = grouped(&deeds);
        near += checked(&groups, &truth, &states);
        let dead: Vec<bool> = (0..deeds.len()).map(|_| random.below(3) > 0).collect();
        let before: Vec<usize> = groups.spans.iter().map(|span| span.at).collect();
        groups.hoist(&dead, |index| {
            let Deed { reference, written, moves, .. } = &deeds[index];
            let step = (written & !(1 << reg::RSP), moves[0]);
            reference.is_none().then_some(step)
        });
        checked(&groups, &truth, &states);
        groups.join_pages();
        let used = page_uses(&groups, &truth, &states);
        joined += groups.spans.len() - used;
        for (span, before) in groups.spans.iter().zip(before) {
            assert!(span.at == before || span.at < before && dead[span.at] && !dead[before], "{deeds:?}");
            assert!(deeds[span.at..before].iter().all(|deed| deed.reference.is_none()), "{deeds:?}");
            hoisted += usize::from(span.at < before);
        }
    }
    assert!(near > 500 && hoisted > 500, "{near} near groups, {hoisted} hoisted");
    assert!(joined > 500, "{joined} groups use their pages with a group before");
}

/// Checks that uses of pages cover the program's references in its order, each use those of one
/// place in memory; returns their number.
fn page_uses(groups: &Groups, truth: &[Truth], states: &[[i64; 2]]) -> usize {
    let (mut found, mut uses) = (Vec::new(), 0);
    for (index, state) in states.iter().enumerate() {
        for number in groups.at(index).map(|group| group.number).collect::<Vec<_>>() {
            let Some(PageUse { members, low, last }) = groups.page_use(number) else { continue };
            uses += 1;
            assert!(last - low < PAGES_BYTES_MAX.max(members[0].size_bytes.into()));
            for member in &members {
                let base = state[usize::from(member.address.base == Some(RBX))];
                assert_eq!(member.at(0), members[0].at(0));
                assert!(member.address.displacement >= low && member.end() <= last + 1, "{members:?}");
                found.push((member.index, base + member.address.displacement));
            }
        }
    }
    assert_eq!(found, truth);
    uses
}

/// Checks that the groups make the program's references in its order; returns the number of
/// near groups.
fn checked(groups: &Groups, truth: &[Truth], states: &[[i64; 2]]) -> usize {
    let mut found = Vec::new();
    let mut near = 0;
    for (index, state) in states.iter().enumerate() {
        for group in groups.at(index) {
            check(&group);
            near += usize::from(group.cover != Cover::First);
            let bases = group
                .members
                .iter()
                .map(|member| (member, state[usize::from(member.address.base == Some(RBX))]));
            found.extend(bases.map(|(member, base)| (member.index, base + member.address.displacement)));
        }
    }
    assert_eq!(found, truth);
    near
}

fn check(group: &Group) {
    let first = group.members[0];
    let (low, high) = match group.cover {
        Cover::First => (first.address.displacement, first.end()),
        Cover::Ends(low, high) => (low, high + 1),
    };
    for member in group.members {
        assert!(member.address.displacement >= low && member.end() <= high, "{group:?}");
        assert_eq!(member.at(0), first.at(0));
        assert_eq!(member.kind == RecordKind::Store, first.kind == RecordKind::Store);
    }
    if group.cover == Cover::First {
        return assert!(group.members.len() <= COVERED_MAX, "{group:?}");
    }
    assert!(group.members.len() >= NEAR_MIN && high - low <= 64, "{group:?}");
    assert_eq!(first.mode, RecordMode::Checked);
}

fn load(at: i64) -> Deed {
    let reference = Some((reg::RSP, at, RecordKind::Load, 8, RecordMode::Checked));
    Deed { reference, bytes: STEPS[0].0, written: 0, moves: [0, 0] }
}

fn covers(deeds: &[Deed]) -> Vec<Cover> {
    let (groups, _, states) = grouped(deeds);
    (0..states.len())
        .flat_map(|index| groups.at(index).map(|group| group.cover).collect::<Vec<_>>())
        .collect()
}

#[test]
fn saved_registers_are_two_checks() {
    let (bytes, written, moves) = STEPS[1];
    let push = Deed { bytes, written, moves, ..load(-8) };
    assert_eq!(covers(&vec![push.clone(); 6]), [Cover::Ends(-48, -1)]);
    assert_eq!(covers(&vec![push; 9]), [Cover::Ends(-64, -1), Cover::First]);
    assert_eq!(covers(&[load(0), load(8)]), [Cover::First; 2]);
    assert_eq!(covers(&[load(0), load(8), load(8), load(16)]), [Cover::Ends(0, 23)]);
    assert_eq!(covers(&[load(0), load(32), load(64)]), [Cover::First; 3]);
}
