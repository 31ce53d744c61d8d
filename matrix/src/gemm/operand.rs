//! Operands of a multiplication on blocked matrices: a view, plain or transposed.

use super::source::Source;
use crate::view::View;
use crate::Element;

/// The operator that is applied to an operand before the multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Op {
    /// No operator.
    #[default]
    Plain,
    /// Transposition.
    Transposed,
}

impl Op {
    #[inline]
    pub(crate) fn shape(self, (rows, cols): (usize, usize)) -> (usize, usize) {
        match self {
            Op::Plain => (rows, cols),
            Op::Transposed => (cols, rows),
        }
    }
}

/// An operand of a multiplication on blocked matrices.
#[derive(Clone, Copy)]
pub struct Operand<'a, T: Element> {
    pub(super) view: View<'a, T>,
    pub(super) op: Op,
}

impl<'a, T: Element> Operand<'a, T> {
    /// A matrix, or a view of one, with operator `op`.
    #[inline]
    pub fn new(view: impl Into<View<'a, T>>, op: Op) -> Self {
        Operand { view: view.into(), op }
    }

    /// The shape after `op` is applied.
    #[inline]
    pub fn shape(&self) -> (usize, usize) {
        self.op.shape((self.view.rows(), self.view.cols()))
    }

    /// The operand as a source of panels if its rows run along the panels: its shape is (rows, k).
    #[inline]
    pub(super) fn source(&self) -> Source<T> {
        let (storage, part) = (self.view.storage.as_ptr(), self.view.part);
        match self.op {
            Op::Plain => Source::Stored { storage, part },
            Op::Transposed => Source::Transposed { storage, part },
        }
    }
}

impl<'a, T: Element, V: Into<View<'a, T>>> From<V> for Operand<'a, T> {
    #[inline]
    fn from(view: V) -> Self {
        Operand::new(view, Op::Plain)
    }
}
