//! Shadow stacks: which function called which, from the order of blocks alone.
//!
//! **What.** Every thread's blocks come in order. A block that ends in a call opens a frame for the
//! function of the block that follows; one that ends in a return closes the frame whose return
//! address is the next block's. Everything else that changes the function is a jump: to a function
//! that is still open (an exception, `longjmp`, a handler that returns), which closes what is above
//! it, or else into a new function (a tail call, a stub of the linkage table, a signal handler),
//! which opens a frame that ends with the one below it.
//!
//! Contexts are kept as a tree. A function that is open already, further out, is not entered again:
//! its recursion goes to the same node, so that trees stay small and inclusive costs stay below the
//! total. **Leaves out** what an inner call of a recursion cost by itself. Source of the idea:
//! Ammons, Ball and Larus 1997, calling context trees; Weidendorfer, Kowarschik and Trinitis 2004
//! (callgrind).

use std::collections::HashMap;
use symbol::ByNumber;

/// A function of the symbolizer.
pub type Function = u32;
/// A node of the tree; 0 is the root, which is no function.
pub type Node = u32;

/// Return addresses are looked for in at most this many frames: beyond, a return is a jump.
const FRAMES_SEARCHED: usize = 4096;
/// Up to so many nodes, calls of one function from several places in another are contexts of their
/// own; further ones share that of the first place.
const PLACES_MAX: usize = 1 << 16;
/// Nodes at most; what would need more stays with its caller.
const NODES_MAX: usize = 1 << 20;

/// How a block ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// In a call; what follows it in memory is where it returns to.
    Call,
    /// In a return.
    Return,
    /// In anything else.
    #[default]
    Other,
}

/// What shadow stacks know of a block.
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
    /// Its function.
    pub function: Function,
    /// Whether it is the first block of it.
    pub entry: Entry,
}

/// Whether a block is the first of its function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entry {
    /// It is.
    First,
    /// It is somewhere inside.
    #[default]
    Inside,
    /// The function is a stub: whoever it jumps to takes its place.
    Stub,
}

/// A calling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The calling context around it.
    pub parent: Node,
    /// The function.
    pub function: Function,
    /// The block that ends in the call, in its parent; `None` where no call led here.
    pub site: Option<u32>,
    /// How often it was entered from there.
    pub calls: u64,
}

/// A recursive call: into a node further out, from a node inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Back {
    /// Who calls.
    pub from: Node,
    /// From which block.
    pub site: Option<u32>,
    /// Who is called again.
    pub to: Node,
}

/// All contexts of a run.
#[derive(Clone, Debug)]
pub struct Contexts {
    nodes: Vec<Context>,
    children: ByNumber<(Node, Option<u32>, Function), Node>,
    /// Of each function in each context, the child that was made first.
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

    /// What to say when contexts may have found no room: their costs and calls then stand with
    /// their callers.
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
    /// By a call that returns to this address.
    Call(u64),
    /// By a jump: it ends when the frame below it ends.
    Jump,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    function: Function,
    node: Node,
    opened: Opened,
    /// The block that called.
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
    /// The next block of the thread; gives the context that it runs in.
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
        // `call` to the next instruction, to learn the own address, is none.
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

    /// No call: still in the same function, or in another one by a jump.
    fn stay(&mut self, step: &Step, contexts: &mut Contexts) {
        if self.frames.last().is_some_and(|top| top.function == step.function) {
            return;
        }
        let searched = self.frames.iter().rev().take(FRAMES_SEARCHED);
        let jumps = self.frames.iter().rev().take_while(|frame| frame.opened == Opened::Jump).count();
        // A tail call enters a function anew, however often that is open further out; but in one
        // chain of jumps each stands once.
        let reach = if step.entry == Entry::First { jumps + 1 } else { FRAMES_SEARCHED };
        let above = searched.take(reach).position(|frame| frame.function == step.function);
        match above {
            Some(above) => self.frames.truncate(self.frames.len() - above),
            None => self.jump(step, contexts),
        }
    }

    /// Into a new function, which takes the place of a stub.
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

    /// Blocks of 16 bytes; a function has 256, so that a block's number says all.
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
        // Recursion is still told apart.
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
