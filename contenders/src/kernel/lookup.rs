//! Searches for keys: in a sorted array by halves, with branches and without; in the order of
//! Eytzinger; in trees.

use super::{Pass, Variant};
use search::sample::Random;
use std::collections::BTreeMap;
use std::hint::black_box;

/// Look-ups of a pass.
const LOOKUPS: usize = 1 << 14;

const SIZES: [usize; 3] = [1 << 10, 1 << 15, 1 << 20];

pub(super) fn variants() -> Vec<Variant> {
    let of_size = |count: usize| {
        let mut all = vec![
            search("halves", count, |keys| {
                Box::new(move |sought| find_all(black_box(&keys), sought, by_halves))
            }),
            search("halves without branches", count, |keys| {
                Box::new(move |sought| find_all(black_box(&keys), sought, without_branches))
            }),
            search("tree", count, |keys| {
                let tree = Tree::of(&keys);
                Box::new(move |sought| sought.iter().fold(0, |sum, key| sum + black_box(&tree).find(*key)))
            }),
        ];
        if count == SIZES[1] {
            all.push(search("Eytzinger", count, |keys| {
                let placed = eytzinger(&keys);
                Box::new(move |sought| find_all(black_box(&placed), sought, downwards))
            }));
            all.push(search("standard library map", count, |keys| {
                let map: BTreeMap<u64, u64> = keys.into_iter().zip(0..).collect();
                Box::new(move |sought| sought.iter().filter_map(|key| black_box(&map).get(key)).sum())
            }));
        }
        all
    };
    SIZES.into_iter().flat_map(of_size).collect()
}

type Search = Box<dyn Fn(&[u64]) -> u64>;

fn search(name: &str, count: usize, build: fn(Vec<u64>) -> Search) -> Variant {
    Variant::new("search", &format!("{name} {count}"), LOOKUPS, move || -> Pass {
        let keys: Vec<u64> = (0..count as u64).map(|key| 3 * key).collect();
        let mut random = Random::new(7);
        let sought: Vec<u64> = (0..LOOKUPS).map(|_| 3 * random.below(count as u64)).collect();
        let run = build(keys);
        Box::new(move || run(black_box(&sought)))
    })
}

#[inline(always)]
fn find_all(keys: &[u64], sought: &[u64], find: impl Fn(&[u64], u64) -> usize) -> u64 {
    sought.iter().fold(0, |sum, key| sum + find(keys, *key) as u64)
}

#[inline(never)]
fn by_halves(keys: &[u64], key: u64) -> usize {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        let middle = (low + high) / 2;
        // Both outcomes stay branches: one of them has a mark that the compiler cannot move.
        if keys[middle] < key {
            low = black_box(middle + 1);
        } else {
            high = middle;
        }
    }
    low
}

#[inline(never)]
fn without_branches(keys: &[u64], key: u64) -> usize {
    let (mut low, mut left) = (0, keys.len());
    while left > 1 {
        let half = left / 2;
        low += usize::from(keys[low + half - 1] < key) * half;
        left -= half;
    }
    low
}

/// The keys in the order of a breadth-first walk; element 0 is not used.
fn eytzinger(keys: &[u64]) -> Vec<u64> {
    fn fill(keys: &[u64], next: &mut usize, placed: &mut [u64], place: usize) {
        if place < placed.len() {
            fill(keys, next, placed, 2 * place);
            placed[place] = keys[*next];
            *next += 1;
            fill(keys, next, placed, 2 * place + 1);
        }
    }
    let mut placed = vec![0; keys.len() + 1];
    fill(keys, &mut 0, &mut placed, 1);
    placed
}

#[inline(never)]
fn downwards(placed: &[u64], key: u64) -> usize {
    let mut place = 1;
    while place < placed.len() {
        place = 2 * place + usize::from(placed[place] < key);
    }
    place
}

#[derive(Clone, Copy)]
struct Node {
    key: u64,
    /// Nodes with smaller and larger keys; 0 is none.
    below: [u32; 2],
}

/// A balanced tree whose nodes lie in random order.
struct Tree {
    nodes: Vec<Node>,
    root: u32,
}

impl Tree {
    fn of(keys: &[u64]) -> Tree {
        let mut places: Vec<u32> = (1..=keys.len() as u32).collect();
        let mut random = Random::new(9);
        for last in (1..places.len()).rev() {
            places.swap(last, random.below(last as u64 + 1) as usize);
        }
        let mut nodes = vec![Node { key: 0, below: [0; 2] }; keys.len() + 1];
        let root = Tree::fill(keys, &mut places.into_iter(), &mut nodes);
        Tree { nodes, root }
    }

    fn fill(keys: &[u64], places: &mut impl Iterator<Item = u32>, nodes: &mut [Node]) -> u32 {
        if keys.is_empty() {
            return 0;
        }
        let place = places.next().unwrap_or_default();
        let middle = keys.len() / 2;
        let below =
            [Tree::fill(&keys[..middle], places, nodes), Tree::fill(&keys[middle + 1..], places, nodes)];
        nodes[place as usize] = Node { key: keys[middle], below };
        place
    }

    #[inline(never)]
    fn find(&self, key: u64) -> u64 {
        let mut place = self.root;
        while place != 0 {
            let node = &self.nodes[place as usize];
            if node.key == key {
                return u64::from(place);
            }
            place = node.below[usize::from(node.key < key)];
        }
        0
    }
}
