//! Shadow stacks: find callers and callees from the order of blocks alone.
//!
//! **What.** The blocks of a thread arrive in order. A block that ends in a call opens a frame for
//! the function of the next block. A block that ends in a return closes the frame whose return
//! address is the next block's address. Any other change of the function is a jump. If the new
//! function is already open (an exception, `longjmp`, a handler that returns), the frames above it
//! are closed. Otherwise (a tail call, a stub of the linkage table, a signal handler) the jump
//! opens a frame that ends with the one below it.
//!
//! Contexts form a tree. A function that is already open further out does not get another node: its
//! recursion goes to the existing one, so trees stay small and inclusive costs stay below the
//! total. **Leaves out** the cost of inner calls of a recursion. Source of the idea: Ammons, Ball
//! and Larus 1997, calling context trees; Weidendorfer, Kowarschik and Trinitis 2004 (callgrind).

use std::collections::HashMap;
use symbol::ByNumber;

/// Number of a function of the symbolizer.
pub type Function = u32;
/// Number of a node of the tree; 0 is the root, which is no function.
pub type Node = u32;

/// The most frames that are searched for a return address; beyond them a return counts as a jump.
const FRAMES_SEARCHED: usize = 4096;
/// Up to this many nodes, calls of one function from several blocks of another are separate
/// contexts; then further calls share the context of the first block.
const PLACES_MAX: usize = 1 << 16;
/// The most nodes; costs that would need more belong to the caller.
const NODES_MAX: usize = 1 << 20;

/// How a block ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// In a call, which returns to the address behind the block.
    Call,
    /// In a return.
    Return,
    /// In any other way.
    #[default]
    Other,
}

/// The properties of a block that shadow stacks need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Number of the block.
    pub block: u32,
    /// Address of its first instruction.
    pub address: u64,
    /// Address behind its last one.
    pub next: u64,
    /// How it ends.
    pub ends: Ends,
    /// Number of its function.
    pub function: Function,
    /// Whether it is the first block of its function.
    pub entry: Entry,
}

/// Whether a block is the first of its function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entry {
    /// It is the first block.
    First,
    /// It is another block.
    #[default]
    Inside,
    /// The function is a stub: the function to which it jumps takes its place.
    Stub,
}

/// A calling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The context of the caller.
    pub parent: Node,
    /// The function.
    pub function: Function,
    /// Number of the block in the caller that ends in the call; `None` if no call led here.
    pub site: Option<u32>,
    /// How often it was entered from that block.
    pub calls: u64,
}

/// A recursive call: from a node into a node further out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Back {
    /// The node that calls.
    pub from: Node,
    /// Number of the block that ends in the call.
    pub site: Option<u32>,
    /// The node that is called again.
    pub to: Node,
}

/// All contexts of a run.
#[derive(Clone, Debug)]
pub struct Contexts {
    nodes: Vec<Context>,
    children: ByNumber<(Node, Option<u32>, Function), Node>,
    /// For each context and function the first child.
    firsts: ByNumber<(Node, Function), Node>,
    /// How often each recursive call was made.
    pub backs: HashMap<Back, u64>,
}

impl Default for Contexts {
    fn default() -> Contexts {
        let root = Context { parent: 0, function: Function::MAX, site: None, calls: 1 };
        Contexts {
            nodes: vec![root],
            children: ByNumber::default(),
            firsts: ByNumber::default(),
            backs: HashMap::new(),
        }
    }
}

impl Contexts {
    /// The nodes; parents come before their children, the root first.
    pub fn nodes(&self) -> &[Context] {
        &self.nodes
    }

    /// A warning if there may not have been enough nodes, so that costs and calls belong to
    /// callers.
    pub fn warning(&self) -> Option<String> {
        (self.nodes.len() >= NODES_MAX).then(|| {
            format!(
                "the program has more than {NODES_MAX} calling contexts: what further ones did stands with their callers, so that costs with calls are too \
                 small in functions that are called from many places; totals and own costs are right"
            )
        })
    }

    /// The node for `function`, entered from `site` in `parent`.
    fn enter(&mut self, parent: Node, site: Option<u32>, function: Function) -> Node {
        let key = (parent, site, function);
        let known = self.children.get(&key).copied();
        let node = known.unwrap_or_else(|| self.new_node(parent, site, function));
        let place = &mut self.nodes[node as usize];
        if (place.parent, place.function) == (parent, function) {
            place.calls += 1;
        } else if place.function == function {
            *self.backs.entry(Back { from: parent, site, to: node }).or_default() += 1;
        }
        node
    }

    fn new_node(&mut self, parent: Node, site: Option<u32>, function: Function) -> Node {
        let shared =
            || self.firsts.get(&(parent, function)).copied().filter(|_| self.nodes.len() >= PLACES_MAX);
        let node = match self.open_outwards(parent, function).or_else(shared) {
            Some(node) => node,
            None if self.nodes.len() >= NODES_MAX => return parent,
            None => {
                let node = self.nodes.len() as Node;
                self.nodes.push(Context { parent, function, site, calls: 0 });
                self.firsts.entry((parent, function)).or_insert(node);
                node
            }
        };
        self.children.insert((parent, site, function), node);
        node
    }

    fn open_outwards(&self, from: Node, function: Function) -> Option<Node> {
        let mut at = from;
        while at != 0 {
            let place = &self.nodes[at as usize];
            if place.function == function {
                return Some(at);
            }
            at = place.parent;
        }
        None
    }
}

/// How a frame was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opened {
    /// By a call, which returns to this address.
    Call(u64),
    /// By a jump: it ends when the frame below it ends.
    Jump,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    function: Function,
    node: Node,
    opened: Opened,
    /// Number of the block that called.
    site: Option<u32>,
    entry: Entry,
}

/// The stack of one thread.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    frames: Vec<Frame>,
    last: Option<Step>,
}

impl Stack {
    /// Processes the next block of the thread, and returns the context in which it runs.
    pub fn step(&mut self, step: Step, contexts: &mut Contexts) -> Node {
        match self.last {
            Some(last) if last.ends == Ends::Call => self.call(&last, &step, contexts),
            Some(last) if last.ends == Ends::Return => self.give_back(&step, contexts),
            _ => self.stay(&step, contexts),
        }
        self.last = Some(step);
        self.frames.last().map_or(0, |frame| frame.node)
    }

    fn push(&mut self, opened: Opened, site: Option<u32>, step: &Step, contexts: &mut Contexts) {
        let parent = self.frames.last().map_or(0, |frame| frame.node);
        let node = contexts.enter(parent, site, step.function);
        self.frames.push(Frame { function: step.function, node, opened, site, entry: step.entry });
    }

    fn call(&mut self, last: &Step, step: &Step, contexts: &mut Contexts) {
        // A `call` to the next instruction only reads the program counter, so it is not a call.
        if step.address == last.next {
            return self.stay(step, contexts);
        }
        self.push(Opened::Call(last.next), Some(last.block), step, contexts);
    }

    fn give_back(&mut self, step: &Step, contexts: &mut Contexts) {
        let searched = self.frames.iter().rev().take(FRAMES_SEARCHED);
        let above = searched.take_while(|frame| frame.opened != Opened::Call(step.address)).count();
        if above < self.frames.len().min(FRAMES_SEARCHED) {
            self.frames.truncate(self.frames.len() - above - 1);
        }
        self.stay(step, contexts);
    }

    /// Processes a block that follows neither a call nor a return: in the same function, or in
    /// another one by a jump.
    fn stay(&mut self, step: &Step, contexts: &mut Contexts) {
        if self.frames.last().is_some_and(|top| top.function == step.function) {
            return;
        }
        let searched = self.frames.iter().rev().take(FRAMES_SEARCHED);
        let jumps = self.frames.iter().rev().take_while(|frame| frame.opened == Opened::Jump).count();
        // A tail call enters a function again even if it is open further out, but within one chain
        // of jumps each function has one frame.
        let reach = if step.entry == Entry::First { jumps + 1 } else { FRAMES_SEARCHED };
        let above = searched.take(reach).position(|frame| frame.function == step.function);
        match above {
            Some(above) => self.frames.truncate(self.frames.len() - above),
            None => self.jump(step, contexts),
        }
    }

    /// Opens a frame for a function that was reached by a jump; it replaces the frame of a stub.
    fn jump(&mut self, step: &Step, contexts: &mut Contexts) {
        match self.frames.pop_if(|top| top.entry == Entry::Stub) {
            Some(stub) => self.push(stub.opened, stub.site, step, contexts),
            None => self.push(Opened::Jump, None, step, contexts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Ends = Ends::Call;
    const RETURN: Ends = Ends::Return;
    const OTHER: Ends = Ends::Other;

    /// A step of a block of 16 bytes; a function has 256, so the block's number determines the
    /// step.
    fn step(block: u32, ends: Ends) -> Step {
        let address = u64::from(block) * 16;
        let entry = if block.is_multiple_of(16) { Entry::First } else { Entry::Inside };
        Step { block, address, next: address + 16, ends, function: block / 16, entry }
    }

    /// The functions of the contexts that the blocks ran in, innermost last.
    fn paths(blocks: &[(u32, Ends)]) -> (Vec<Vec<Function>>, Contexts) {
        let (mut stack, mut contexts) = (Stack::default(), Contexts::default());
        let path = |node: Node, contexts: &Contexts| {
            let mut path = Vec::new();
            let mut at = node;
            while at != 0 {
                path.insert(0, contexts.nodes()[at as usize].function);
                at = contexts.nodes()[at as usize].parent;
            }
            path
        };
        let paths = blocks.iter().map(|&(block, ends)| {
            let node = stack.step(step(block, ends), &mut contexts);
            path(node, &contexts)
        });
        (paths.collect(), contexts)
    }

    #[test]
    fn calls_nest_and_return() {
        let (paths, contexts) = paths(&[
            (16, CALL),
            (32, CALL),
            (48, RETURN),
            (33, RETURN),
            (17, CALL),
            (32, RETURN),
            (18, OTHER),
        ]);
        let expected: &[&[u32]] = &[&[1], &[1, 2], &[1, 2, 3], &[1, 2], &[1], &[1, 2], &[1]];
        assert_eq!(paths, expected);
        // The two calls of function 2 come from different places.
        assert_eq!(contexts.nodes().len(), 5);
    }

    #[test]
    fn a_tail_call_ends_with_its_frame() {
        let (paths, _) = paths(&[(16, CALL), (32, OTHER), (48, RETURN), (17, OTHER)]);
        let expected: &[&[u32]] = &[&[1], &[1, 2], &[1, 2, 3], &[1]];
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_stub_gives_its_place_away() {
        let (mut stack, mut contexts) = (Stack::default(), Contexts::default());
        let stub = Step { entry: Entry::Stub, ..step(32, OTHER) };
        let nodes = [step(16, CALL), stub, step(48, RETURN), step(17, OTHER)];
        let nodes = nodes.map(|step| stack.step(step, &mut contexts));
        let parents = nodes.map(|node| contexts.nodes()[node as usize].parent);
        assert_eq!(parents, [0, nodes[0], nodes[0], 0]);
        assert_eq!(nodes[3], nodes[0]);
        assert_eq!(contexts.nodes()[nodes[2] as usize].site, Some(16));
    }

    #[test]
    fn a_long_jump_closes_what_is_above() {
        let (paths, _) = paths(&[(16, CALL), (32, CALL), (48, OTHER), (18, OTHER)]);
        assert_eq!(paths[3], [1]);
    }

    #[test]
    fn recursion_stays_in_its_node() {
        let (paths, contexts) = paths(&[
            (16, CALL),
            (32, CALL),
            (32, CALL),
            (32, RETURN),
            (33, RETURN),
            (33, RETURN),
            (17, OTHER),
        ]);
        assert_eq!(paths, [vec![1], vec![1, 2], vec![1, 2], vec![1, 2], vec![1, 2], vec![1, 2], vec![1]]);
        assert_eq!(contexts.backs.values().sum::<u64>(), 2);
        assert_eq!(contexts.nodes().iter().map(|node| node.calls).sum::<u64>(), 3);
    }

    #[test]
    fn functions_that_jump_at_each_other_do_not_pile_up() {
        let blocks: Vec<(u32, Ends)> = (0..100).map(|n| (if n % 2 == 0 { 16 } else { 32 }, OTHER)).collect();
        let (paths, _) = paths(&blocks);
        assert!(paths.iter().all(|path| path.len() <= 2));
    }

    #[test]
    fn from_many_contexts_on_places_share_one() {
        let mut contexts = Contexts::default();
        let apart = [1, 2].map(|site| contexts.enter(0, Some(site), 7));
        assert_ne!(apart[0], apart[1]);
        for function in 0..PLACES_MAX as Function {
            contexts.enter(0, None, 1000 + function);
        }
        let caller = contexts.enter(0, None, 8);
        let together = [1, 2, 1].map(|site| contexts.enter(caller, Some(site), 9));
        assert_eq!(together, [together[0]; 3]);
        let place = contexts.nodes()[together[0] as usize];
        assert_eq!((place.calls, place.site), (3, Some(1)));
        assert!(contexts.backs.is_empty());
        // Recursion is still distinguished.
        contexts.enter(together[0], Some(3), 8);
        assert_eq!(contexts.backs.values().sum::<u64>(), 1);
    }

    #[test]
    fn contexts_without_room_are_said() {
        let mut contexts = Contexts::default();
        for function in 0..NODES_MAX as Function - 2 {
            contexts.enter(0, None, function);
        }
        assert_eq!(contexts.warning(), None);
        let last = contexts.enter(0, None, Function::MAX - 1);
        assert!(contexts.warning().is_some_and(|said| said.contains("calling contexts")));
        assert_eq!(
            contexts.enter(last, None, Function::MAX - 2),
            last,
            "what has no room stays with its caller"
        );
        assert!(contexts.backs.is_empty(), "and is no recursion");
    }
}
