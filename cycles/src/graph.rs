//! The hot blocks of a profile, and the loops that they stand in.
//!
//! The loop of a block is its most probable way back to itself, by the direction that branches
//! took. A call leads to the instruction behind it; indirect jumps and returns lead nowhere.

use crate::step::{Reader, Step};
use crate::text::Text;
use crate::words::WordMap;
use iced_x86::{FlowControl, Instruction};
use instrument::Profile;
use std::collections::BinaryHeap;

/// Instructions of a run that hot blocks make up, at least.
const HOT_SHARE: f64 = 0.995;

/// Hot blocks at most: the analysis must stay short beside the run.
const HOT_MAX: usize = 4000;

/// Blocks that the search for a loop visits at most.
const VISITED_MAX: usize = 80;

/// Instructions of a loop that are analysed at most.
const STEPS_MAX: usize = 400;

/// Blocks that begin and end at the same places: copies of one.
pub(crate) struct Node {
    /// Indices into [`Profile::blocks`].
    pub(crate) blocks: Vec<usize>,
    pub(crate) executions: u64,
    /// Empty where the code is not known.
    pub(crate) steps: Vec<Step>,
    /// Nodes that follow, with the share of executions that go there.
    next: Vec<(usize, f64)>,
}

/// A loop through a node, which is its first.
pub(crate) struct Cycle {
    pub(crate) nodes: Vec<usize>,
    /// How probably an iteration is followed by another one.
    pub(crate) again: f64,
}

/// The hot blocks.
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
}

impl Graph {
    /// The hot blocks of `profile`, the one with most instructions first.
    pub(crate) fn of(profile: &Profile) -> Graph {
        let mut reader = Reader::new();
        let mut text = Text::new(profile);
        let mut places: WordMap<u64, (usize, u64)> = WordMap::default();
        let mut ends = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        for blocks in hot(profile) {
            let block = &profile.blocks[blocks[0]];
            let executions = blocks.iter().map(|&block| profile.blocks[block].executions).sum();
            let instructions = text.instructions(block).unwrap_or_default();
            let known = &profile.instructions[block.first as usize..][..block.count as usize];
            let steps = instructions.iter().zip(known);
            let steps = steps.map(|(instruction, known)| reader.step(instruction, known.loads, known.stores));
            let place = places.entry(block.ip).or_insert((nodes.len(), executions));
            if executions > place.1 {
                *place = (nodes.len(), executions);
            }
            ends.push(instructions.last().map(|last| targets(last, taken(profile, &blocks, executions))));
            nodes.push(Node { blocks, executions, steps: steps.collect(), next: Vec::new() });
        }
        for (node, targets) in nodes.iter_mut().zip(ends) {
            let found = targets.into_iter().flatten().filter(|(_, share)| *share > 0.0);
            node.next = found.filter_map(|(ip, share)| Some((places.get(&ip)?.0, share))).collect();
        }
        Graph { nodes }
    }

    /// The most probable way from a node back to itself.
    pub(crate) fn cycle(&self, start: usize) -> Option<Cycle> {
        // Dijkstra's search; the length of an edge is the logarithm of how improbable it is.
        let mut reached: WordMap<usize, (f64, usize)> = WordMap::default();
        let mut queue = BinaryHeap::from([Reached { length: 0.0, node: start, from: start }]);
        let mut first = true;
        while let Some(Reached { length, node, from }) = queue.pop() {
            if !first {
                if reached.contains_key(&node) {
                    continue;
                }
                reached.insert(node, (length, from));
                if node == start || reached.len() > VISITED_MAX {
                    break;
                }
            }
            first = false;
            for &(next, share) in &self.nodes[node].next {
                queue.push(Reached { length: length - share.ln(), node: next, from: node });
            }
        }
        let (length, mut node) = *reached.get(&start)?;
        let mut nodes = Vec::new();
        while node != start {
            nodes.push(node);
            node = reached.get(&node)?.1;
        }
        nodes.push(start);
        nodes.reverse();
        let steps: usize = nodes.iter().map(|&node| self.nodes[node].steps.len()).sum();
        (steps <= STEPS_MAX).then(|| Cycle { nodes, again: (-length).exp() })
    }
}

/// Copies of one block, while hot ones are looked for.
struct Copies {
    /// Instructions that all of them executed.
    weight: u64,
    /// The first one's index into [`Profile::blocks`].
    first: usize,
}

/// The blocks with most instructions; copies of one block stand together.
fn hot(profile: &Profile) -> Vec<Vec<usize>> {
    // A large program has hundreds of thousands of blocks that ran, of which few are hot: only
    // those get a list.
    let ran = || profile.blocks.iter().enumerate().filter(|(_, block)| block.executions > 0);
    let mut numbers: WordMap<(u64, u32), u32> = WordMap::default();
    numbers.reserve(ran().count());
    let mut all: Vec<Copies> = Vec::new();
    let of: Vec<u32> = ran()
        .map(|(first, block)| {
            let number = *numbers.entry((block.ip, block.len)).or_insert(all.len() as u32);
            if number as usize == all.len() {
                all.push(Copies { weight: 0, first });
            }
            all[number as usize].weight += block.executions * u64::from(block.count);
            number
        })
        .collect();
    let enough = HOT_SHARE * all.iter().map(|copies| copies.weight).sum::<u64>() as f64;
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    // Addresses decide between equals: which was translated first depends on kept translations.
    let key = |&number: &u32| {
        let Copies { weight, first } = all[number as usize];
        let block = &profile.blocks[first];
        (std::cmp::Reverse(weight), block.ip, block.len)
    };
    if order.len() > HOT_MAX {
        order.select_nth_unstable_by_key(HOT_MAX, key);
        order.truncate(HOT_MAX);
    }
    order.sort_unstable_by_key(key);
    let mut sum = 0.0;
    let more = |number: &&u32| {
        let wanted = sum < enough;
        sum += all[**number as usize].weight as f64;
        wanted
    };
    let hot = order.iter().take_while(more).count();
    // By number of copies, where their list stands.
    let mut places = vec![u32::MAX; all.len()];
    (0..).zip(&order[..hot]).for_each(|(place, &number)| places[number as usize] = place);
    let mut groups = vec![Vec::new(); hot];
    for ((block, _), number) in ran().zip(of) {
        if let Some(group) = groups.get_mut(places[number as usize] as usize) {
            group.push(block);
        }
    }
    groups
}

/// The share of executions that took the branch at their end.
fn taken(profile: &Profile, blocks: &[usize], executions: u64) -> f64 {
    let taken: u64 = blocks.iter().map(|&block| profile.blocks[block].taken).sum();
    (taken as f64 / executions.max(1) as f64).clamp(0.0, 1.0)
}

/// The addresses that follow a block with this last instruction, with their shares.
fn targets(last: &Instruction, taken: f64) -> Vec<(u64, f64)> {
    match last.flow_control() {
        FlowControl::ConditionalBranch => {
            vec![(last.near_branch_target(), taken), (last.next_ip(), 1.0 - taken)]
        }
        FlowControl::UnconditionalBranch => vec![(last.near_branch_target(), 1.0)],
        FlowControl::Return | FlowControl::IndirectBranch => Vec::new(),
        _ => vec![(last.next_ip(), 1.0)],
    }
}

/// A node that the search has reached; the nearest one is the greatest.
#[derive(PartialEq)]
struct Reached {
    length: f64,
    node: usize,
    from: usize,
}

impl Eq for Reached {}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Reached) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Reached {
    fn cmp(&self, other: &Reached) -> std::cmp::Ordering {
        other.length.total_cmp(&self.length).then(other.node.cmp(&self.node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[&[(usize, f64)]]) -> Graph {
        let node = |next: &&[(usize, f64)]| Node {
            blocks: Vec::new(),
            executions: 1,
            steps: Vec::new(),
            next: next.to_vec(),
        };
        Graph { nodes: edges.iter().map(node).collect() }
    }

    #[test]
    fn a_loop_is_the_most_probable_way_back() {
        // 0 goes to 1 or 2, both of which lead to 3, which goes back or on to 4.
        let graph = graph(&[&[(1, 0.25), (2, 0.75)], &[(3, 1.0)], &[(3, 1.0)], &[(0, 0.9), (4, 0.1)], &[]]);
        let cycle = graph.cycle(0).unwrap();
        assert_eq!(cycle.nodes, [0, 2, 3]);
        assert!((cycle.again - 0.675).abs() < 1e-9);
        // The less probable way has a loop of its own.
        assert_eq!(graph.cycle(1).unwrap().nodes, [1, 3, 0]);
        assert!(graph.cycle(4).is_none());
    }

    #[test]
    fn a_block_that_jumps_to_itself_is_a_loop() {
        let graph = graph(&[&[(0, 0.99), (1, 0.01)], &[(0, 1.0)]]);
        let cycle = graph.cycle(0).unwrap();
        assert_eq!(cycle.nodes, [0]);
        assert!((cycle.again - 0.99).abs() < 1e-9);
        // The block around it goes through one iteration.
        assert_eq!(graph.cycle(1).unwrap().nodes, [1, 0]);
    }

    /// The hot blocks by their definition: a list of copies for each block, the heaviest first,
    /// until they make up enough instructions.
    fn hot_by_lists(profile: &Profile) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let place = |block: usize| (profile.blocks[block].ip, profile.blocks[block].len);
        for number in (0..profile.blocks.len()).filter(|&number| profile.blocks[number].executions > 0) {
            match groups.iter_mut().find(|group| place(group[0]) == place(number)) {
                Some(group) => group.push(number),
                None => groups.push(vec![number]),
            }
        }
        let weight = |group: &Vec<usize>| {
            let of =
                |&block: &usize| profile.blocks[block].executions * u64::from(profile.blocks[block].count);
            group.iter().map(of).sum::<u64>()
        };
        groups.sort_unstable_by_key(|group| (std::cmp::Reverse(weight(group)), place(group[0])));
        let enough = HOT_SHARE * groups.iter().map(weight).sum::<u64>() as f64;
        let mut sum = 0.0;
        let mut hot = Vec::new();
        for group in groups {
            if sum >= enough || hot.len() == HOT_MAX {
                break;
            }
            sum += weight(&group) as f64;
            hot.push(group);
        }
        hot
    }

    #[test]
    fn hot_blocks_are_those_of_the_definition() {
        let mut state = 1_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for places in [1, 3, 40, 300, 6000] {
            let blocks = (0..2 * places).map(|_| {
                let most = 1 << below(20);
                instrument::Block {
                    ip: 0x1000 + 16 * below(places),
                    len: 16 - 8 * (below(9) / 8) as u32,
                    module: 0,
                    first: 0,
                    count: 1 + below(6) as u32,
                    executions: below(3) * below(most),
                    taken: 0,
                }
            });
            let profile = Profile { blocks: blocks.collect(), ..Profile::default() };
            let hot = hot(&profile);
            assert_eq!(hot, hot_by_lists(&profile), "{places}");
            assert!(places < 40 || hot.iter().any(|copies| copies.len() > 1) && hot.len() > 5);
        }
    }
}
