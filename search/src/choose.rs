//! The choice of a kernel: one layout's search on one instruction set, as two function pointers.
//!
//! [`Kernel::choose`] runs when an index is built or opened; queries never check the layout or the
//! instruction set again. This file is above both families, so that neither depends on the other's
//! members.
//!
//! This is one of the few files with `unsafe`, for the calls through the chosen pointers.

use crate::kernel::{functions, Isa, Many, One};
use crate::lane::Lane;
use crate::layout::{Member, Shape, Visitor};
use crate::line::Line;

/// The chosen pair of functions for one layout on one instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel<L: Lane> {
    isa: Isa,
    one: One<L>,
    many: Many<L>,
}

/// Gets the functions of a layout on an instruction set.
struct Functions {
    isa: Isa,
}

impl<L: Lane> Visitor<L> for Functions {
    type Output = (One<L>, Many<L>);

    fn visit<M: Member<L>>(self) -> (One<L>, Many<L>) {
        functions::<L, M>(self.isa)
    }
}

impl<L: Lane> Kernel<L> {
    /// Chooses the functions for the layout of `shape` on `isa`; `None` if this machine cannot run
    /// them.
    pub(crate) fn choose(shape: &Shape<L>, isa: Isa) -> Option<Kernel<L>> {
        if !isa.is_available() {
            return None;
        }
        let (one, many) = shape.visit(Functions { isa });
        Some(Kernel { isa, one, many })
    }

    /// The instruction set.
    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    /// The rank of `query`.
    #[inline(always)]
    pub(crate) fn rank(&self, shape: &Shape<L>, lines: &[Line], query: L) -> usize {
        // SAFETY: `choose` saw that this processor has the instruction set of the pointers it
        // keeps.
        unsafe { (self.one)(shape, lines, query) }
    }

    /// The ranks of `queries` into `out`, which is as long.
    #[inline]
    pub(crate) fn ranks(&self, shape: &Shape<L>, lines: &[Line], queries: &[L], out: &mut [usize]) {
        assert_eq!(queries.len(), out.len(), "as many answers as queries");
        // SAFETY: `choose` saw that this processor has the instruction set of the pointers it
        // keeps.
        unsafe { (self.many)(shape, lines, queries, out) }
    }
}
