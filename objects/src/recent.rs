//! What each instruction touched last.
//!
//! **Why.** To find the object at an address takes several look-ups that wait for memory, and for
//! variables in frames a search of debug information. Where every reference is wanted, that is most
//! of a run's time. **The idea.** An instruction touches one object again and again, so what it
//! touched last is kept beside its site with all that tells whether it still lies there: a block
//! that still lives, a variable that no block can cover, or the frame of a function whose caller
//! and call are the same. What is found so equals what a search would find.
//!
//! **Leaves out** memory that no object has, which is looked up each time.

use crate::place::{ObjectKey, Place, STACK_ALIGN};
use heap::{Found, StackFrame, StackPlace};

/// What was found last.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Last {
    Nothing,
    /// A block, and the number of its place of allocation in the run.
    Block(Found, u32),
    /// A variable in whose bytes no block may lie.
    Variable(Place),
    /// Memory of a frame.
    Frame(Framed),
}

/// Memory of a frame, and what told it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framed {
    /// The variable, or the whole frame.
    pub(crate) place: Place,
    /// The whole frame.
    pub(crate) whole: Place,
    /// The number of what was in scope.
    pub(crate) scope: Option<u32>,
    frame: StackFrame,
    call: Option<u32>,
    /// How far the address lay from the stack pointers around it.
    from: Distances,
    /// How far the address lay behind the beginning of the variable.
    behind: u64,
}

/// How far an address lies from the stack pointers around it, and from what stacks are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Distances {
    stack: Option<u64>,
    canonical: Option<u64>,
    aligned: u64,
}

#[inline(always)]
fn distances(around: &StackPlace, address: u64) -> Distances {
    let from = |base: u64| address.wrapping_sub(base);
    let aligned = address % STACK_ALIGN;
    Distances { stack: around.stack.map(from), canonical: around.canonical.map(from), aligned }
}

impl Framed {
    /// Notes the place that was found at an address of a frame: `whole` is that of the frame.
    pub(crate) fn new(
        (whole, scope): (Place, Option<u32>),
        around: &StackPlace,
        address: u64,
        place: Place,
    ) -> Framed {
        let StackPlace { frame, call, .. } = *around;
        let from = distances(around, address);
        Framed { place, whole, scope, frame, call, from, behind: address.wrapping_sub(place.start) }
    }

    /// Whether a frame is one of the same function, at the same call: equal variables are in scope.
    #[inline(always)]
    pub(crate) fn is_of(&self, around: &StackPlace) -> bool {
        (self.frame, self.call) == (around.frame, around.call)
    }

    /// Where the place begins in another frame of the same function, if the address lies where it
    /// lay in the former one.
    #[inline(always)]
    pub(crate) fn start_of(&self, around: &StackPlace, address: u64) -> Option<u64> {
        let start = if self.place.start == 0 { 0 } else { address.wrapping_sub(self.behind) };
        (self.from == distances(around, address)).then_some(start)
    }
}

/// What each instruction touched last, with a number of the caller's for its object.
#[derive(Default)]
pub(crate) struct Recent {
    sites: Vec<(Option<(ObjectKey, u32)>, Last)>,
}

/// Sites beyond this are looked up each time: 100 MB of notes are enough.
const SITES_MAX: usize = 1 << 20;

impl Recent {
    /// What the instruction of a site touched last, and the number noted with it.
    #[inline(always)]
    pub(crate) fn of(&self, site: usize) -> Option<(&Last, Option<(ObjectKey, u32)>)> {
        self.sites.get(site).map(|(number, last)| (last, *number))
    }

    /// Notes what the instruction of a site has touched.
    pub(crate) fn note(&mut self, site: usize, last: Last, number: (ObjectKey, u32)) {
        if site >= SITES_MAX {
            return;
        }
        if self.sites.len() <= site {
            self.sites.resize((site + 1).next_power_of_two(), (None, Last::Nothing));
        }
        self.sites[site] = (Some(number), last);
    }
}
