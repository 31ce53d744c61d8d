//! Sums over numbers in an array, and in linked lists whose nodes lie in several orders.

use super::{Pass, Variant};
use search::sample::Random;
use std::hint::black_box;

/// A node; its successor is named by index.
#[derive(Clone, Copy)]
struct Node {
    value: u64,
    next: u32,
}

/// The order of a list's nodes in memory.
#[derive(Clone, Copy)]
enum Order {
    Ascending,
    /// At random among so many neighbours.
    Within(usize),
    AtRandom,
}

const SMALL: usize = 1 << 10;
const MIDDLE: usize = 1 << 14;
const LARGE: usize = 1 << 18;
const HUGE: usize = 1 << 21;

/// Elements that a pass visits at least.
const VISITED: usize = 1 << 18;

pub(super) fn variants() -> Vec<Variant> {
    let array = [MIDDLE, HUGE].map(array);
    let lists = [
        list("list ascending", MIDDLE, Order::Ascending),
        list("list ascending", LARGE, Order::Ascending),
        list("list shuffled", SMALL, Order::AtRandom),
        list("list shuffled", MIDDLE, Order::AtRandom),
        list("list shuffled", LARGE, Order::AtRandom),
        list("list shuffled", HUGE, Order::AtRandom),
        list("list shuffled in pages", LARGE, Order::Within(256)),
    ];
    array.into_iter().chain(lists).chain([two_lists(LARGE), chunks(LARGE)]).collect()
}

fn repeats(count: usize) -> usize {
    (VISITED / count).max(1)
}

fn array(count: usize) -> Variant {
    let repeats = repeats(count);
    Variant::new("list", &format!("array {count}"), count * repeats, move || {
        let values: Vec<u64> = (0..count as u64).collect();
        Box::new(move || (0..repeats).map(|_| sum(black_box(&values))).fold(0, u64::wrapping_add))
    })
}

#[inline(never)]
fn sum(values: &[u64]) -> u64 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
}

/// The nodes of a circular list that begins at node 0.
fn nodes(count: usize, order: Order) -> Vec<Node> {
    let mut places: Vec<u32> = (0..count as u32).collect();
    let mut random = Random::new(3);
    let mut shuffle = |places: &mut [u32]| {
        for last in (1..places.len()).rev() {
            places.swap(last, random.below(last as u64 + 1) as usize);
        }
    };
    match order {
        Order::Ascending => {}
        Order::Within(near) => places.chunks_mut(near).for_each(&mut shuffle),
        Order::AtRandom => shuffle(&mut places),
    }
    let mut nodes = vec![Node { value: 0, next: 0 }; count];
    for (step, &place) in places.iter().enumerate() {
        let next = places[(step + 1) % count];
        nodes[place as usize] = Node { value: step as u64, next };
    }
    nodes
}

fn list(name: &str, count: usize, order: Order) -> Variant {
    let steps = count * repeats(count).min(if count == HUGE { 1 } else { usize::MAX });
    let steps = steps.min(VISITED);
    Variant::new("list", &format!("{name} {count}"), steps, move || -> Pass {
        let nodes = nodes(count, order);
        Box::new(move || walk(black_box(&nodes), steps))
    })
}

#[inline(never)]
fn walk(nodes: &[Node], steps: usize) -> u64 {
    let (mut place, mut sum) = (0, 0u64);
    for _ in 0..steps {
        let node = nodes[place];
        sum = sum.wrapping_add(node.value);
        place = node.next as usize;
    }
    sum
}

/// Four walks over one shuffled list at once, from different places.
fn two_lists(count: usize) -> Variant {
    Variant::new("list", &format!("four lists shuffled {count}"), VISITED, move || -> Pass {
        let nodes = nodes(count, Order::AtRandom);
        Box::new(move || walk_four(black_box(&nodes), VISITED / 4))
    })
}

#[inline(never)]
fn walk_four(nodes: &[Node], steps: usize) -> u64 {
    let mut places = [0, nodes.len() / 4, nodes.len() / 2, nodes.len() / 4 * 3];
    let mut sum = 0u64;
    for _ in 0..steps {
        for place in &mut places {
            let node = nodes[*place];
            sum = sum.wrapping_add(node.value);
            *place = node.next as usize;
        }
    }
    sum
}

/// Values of a node of an unrolled list.
const UNROLLED: usize = 14;

#[derive(Clone, Copy)]
struct Chunk {
    values: [u64; UNROLLED],
    next: u32,
}

/// A shuffled list with several values in each node.
fn chunks(count: usize) -> Variant {
    let count = count / UNROLLED;
    Variant::new("list", &format!("unrolled list shuffled {count}"), count * UNROLLED, move || -> Pass {
        let order = nodes(count, Order::AtRandom);
        let chunk = |node: &Node| Chunk { values: [node.value; UNROLLED], next: node.next };
        let chunks: Vec<Chunk> = order.iter().map(chunk).collect();
        Box::new(move || walk_chunks(black_box(&chunks), count))
    })
}

#[inline(never)]
fn walk_chunks(chunks: &[Chunk], steps: usize) -> u64 {
    let (mut place, mut sum) = (0, 0u64);
    for _ in 0..steps {
        let chunk = &chunks[place];
        sum = chunk.values.iter().fold(sum, |sum, value| sum.wrapping_add(*value));
        place = chunk.next as usize;
    }
    sum
}
