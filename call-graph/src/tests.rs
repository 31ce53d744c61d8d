//! Shadow stacks against a twin that adds each cost to every open call.

mod batches;
mod stubs;

use super::stack::{CalleeKind, Collects, Known, ShadowStack};
use instrument::Block;
use std::collections::BTreeMap;

const FUNCTIONS: u32 = 5;
const TOP: u32 = 0x8000_0000;

fn known(edge: u32) -> Known {
    Known::new(edge, edge % FUNCTIONS, CalleeKind::Function)
}

/// Every open call with its slot and edge, and sums by edge.
#[derive(Default)]
struct Twin {
    open: Vec<(u32, u32)>,
    edges: BTreeMap<u32, (u64, u64)>,
}

impl Twin {
    fn cost(&mut self, more: u64) {
        if more == 0 {
            return;
        }
        for (index, &(_, edge)) in self.open.iter().enumerate() {
            let further_out = &self.open[..index];
            let inner = further_out.iter().any(|(_, other)| other % FUNCTIONS == edge % FUNCTIONS);
            if !inner {
                self.edges.entry(edge).or_default().1 += more;
            }
        }
    }

    fn opens(&mut self, slot: u32, edge: u32) {
        self.open.push((slot, edge));
        self.edges.entry(edge).or_default().0 += 1;
    }
}

/// Numbers that repeat, from a linear congruence.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(end)) as u32
    }
}

/// What the stack has counted, without edges that it has not.
fn counted(stack: &mut ShadowStack<1>, now: u64) -> BTreeMap<u32, (u64, u64)> {
    let edges = stack.take(&[now]).into_iter().zip(0..);
    edges
        .filter(|(edge, _)| !edge.is_empty())
        .map(|(edge, number)| (number, (edge.calls, edge.costs[0])))
        .collect()
}

#[test]
fn random_calls_and_returns_are_those_of_the_twin() {
    for seed in 0..300 {
        let mut numbers = Numbers(seed);
        let (mut stack, mut twin, mut now) = (ShadowStack::new(), Twin::default(), 0u64);
        for _ in 0..400 {
            let more = u64::from(numbers.below(9));
            now += more;
            twin.cost(more);
            let (depth, edge) = (twin.open.len() as u32, numbers.below(12));
            match numbers.below(8) {
                // A call from the innermost function, or from one further out behind a long jump.
                choice @ 0..4 => {
                    let left = if choice == 0 && depth > 0 { numbers.below(depth) } else { 0 };
                    let kept = (depth - left) as usize;
                    let pointer = twin.open[..kept].last().map_or(TOP, |(slot, _)| *slot);
                    let pointer = pointer - 16 * numbers.below(3);
                    twin.open.retain(|&(slot, _)| slot >= pointer);
                    twin.opens(pointer - 8, edge);
                    stack.call(pointer, known(edge), &[now], Collects::Yes);
                }
                // A jump into another function.
                4 => {
                    let Some(&(slot, top)) = twin.open.last() else { continue };
                    if edge % FUNCTIONS == top % FUNCTIONS {
                        continue;
                    }
                    let of_edge =
                        |&(own, other): &(u32, u32)| own == slot && other % FUNCTIONS == edge % FUNCTIONS;
                    match twin.open.iter().rposition(of_edge) {
                        Some(index) => twin.open.truncate(index + 1),
                        None => twin.opens(slot, edge),
                    }
                    stack.jump(known(edge), &[now], Collects::Yes);
                }
                // A return from the innermost function, from one further out, or from none.
                choice => {
                    let back = if choice == 5 && depth > 0 { numbers.below(depth) } else { 0 };
                    let slot = twin.open.iter().rev().nth(back as usize).map_or(TOP, |(slot, _)| *slot);
                    let slot = if numbers.below(10) == 0 { slot + 4 } else { slot };
                    if let Some(index) = twin.open.iter().position(|(own, _)| *own == slot) {
                        twin.open.truncate(index);
                    }
                    stack.give_back(slot, &[now]);
                }
            }
            if numbers.below(60) == 0 {
                assert_eq!(counted(&mut stack, now), std::mem::take(&mut twin.edges), "seed {seed}");
            }
        }
        stack.clear(&[now]);
        assert_eq!(counted(&mut stack, now), twin.edges, "seed {seed}");
    }
}

#[test]
fn calls_that_nobody_collects_need_costs() {
    let mut stack = ShadowStack::new();
    stack.call(TOP, known(1), &[0], Collects::No);
    stack.call(TOP - 64, known(2), &[0], Collects::Yes);
    stack.call(TOP - 128, known(3), &[5], Collects::No);
    stack.give_back(TOP - 136, &[5]);
    stack.give_back(TOP - 72, &[5]);
    stack.give_back(TOP - 8, &[7]);
    assert_eq!(counted(&mut stack, 7), BTreeMap::from([(1, (1, 7)), (2, (1, 5))]));
}

#[test]
fn a_stub_gives_its_place_away_and_a_resolver_ends() {
    let stub = Known::new(1, 1, CalleeKind::Stub);
    let mut stack = ShadowStack::new();
    stack.call(TOP, stub, &[0], Collects::Yes);
    stack.replace((1, known(2)));
    stack.succeed(known(3), &[10], Collects::Yes);
    stack.give_back(TOP - 8, &[15]);
    assert_eq!(counted(&mut stack, 15), BTreeMap::from([(2, (1, 10)), (3, (1, 5))]));
}

#[test]
fn another_stack_closes_nothing() {
    let mut stack = ShadowStack::new();
    stack.call(TOP, known(1), &[0], Collects::Yes);
    stack.call(TOP + (512 << 20), known(2), &[1], Collects::Yes);
    stack.give_back(TOP + (512 << 20) - 8, &[4]);
    stack.give_back(TOP - 8, &[6]);
    assert_eq!(counted(&mut stack, 6), BTreeMap::from([(1, (1, 6)), (2, (1, 3))]));
}

#[test]
fn open_calls_are_bounded() {
    let mut stack = ShadowStack::<1>::new();
    let known = Known::new(0, 0, CalleeKind::Function);
    let calls = (1 << 20) + 5;
    for call in 0..calls {
        stack.call(0xf000_0000 - 16 * call, known, &[u64::from(call)], Collects::Yes);
    }
    assert_eq!(stack.depth(), 5);
    stack.clear(&[u64::from(calls)]);
    let edges = stack.take(&[u64::from(calls)]);
    // The costs of a recursion are those of its outermost call: up to where all were closed, and
    // from there on.
    assert_eq!((edges[0].calls, edges[0].costs), (u64::from(calls), [u64::from(calls)]));
}

#[test]
fn the_callee_is_a_block_that_ran() {
    let block = |ip, executions| Block { ip, executions, len: 4, module: 0, first: 0, count: 1, taken: 0 };
    let blocks = [block(0x10, 0), block(0x10, 5), block(0x20, 7), block(0x10, 0), block(0x30, 0)];
    let firsts = crate::first_blocks(&blocks, [0x10, 0x30, 0x40].into_iter());
    assert_eq!(firsts.get(&0x10), Some(&1));
    assert_eq!(firsts.get(&0x30), Some(&4), "its first instruction faulted");
    assert_eq!(firsts.get(&0x40), None);
}
