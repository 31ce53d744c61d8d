//! Solves and products with triangles of up to some hundred rows, a strip of columns at a time.
//!
//! **The problem.** Where the entries of a column of `B` are adjacent, a register holds rows of one
//! right-hand side; half of it is above the diagonal, and a number of it is spread by a
//! permutation. **The idea.** A strip of some columns is copied to scratch memory, transposed, so
//! that a register holds one row of many right-hand sides; see `kernel/factor/strips`. The triangle
//! is copied too, once for all strips. Where rows are adjacent already, strips are solved in place.
//!
//! **Leaves out** complex numbers, and pivots whose reciprocals are not normal numbers.

use super::block;
use super::shape::Diagonal;
use crate::buffer::Buffer;
use crate::kernel::factor::{panel_start, FactorKernels, HIGH};
use crate::kernel::Kernel;
use crate::strided::{Strided, StridedMut};
use crate::{Element, Error};

/// Rows of `B` further apart in memory are copied: they lie in pages of their own, and in few sets
/// of the first-level cache.
const FAR_BYTES: usize = 2048;

/// What is done with a triangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Solve,
    Multiply,
}

/// A triangle in panels, and memory for a strip.
struct Panels<'a, T: Element> {
    kernels: &'static FactorKernels<T::Real>,
    task: Task,
    size: usize,
    l: &'a mut [T],
    reciprocals: &'a mut [T],
    strip: &'a mut [T],
}

/// `B ← L⁻¹·B`. Returns whether that could be done; if not, `B` is as it was.
pub(super) fn solve<T: Element>(
    kernel: &'static Kernel,
    l: Strided<'_, T>,
    diagonal: Diagonal,
    b: StridedMut<'_, T>,
) -> Result<bool, Error> {
    apply(kernel, Task::Solve, l, diagonal, b)
}

/// `B ← L·B`. Returns whether that was done: not for complex numbers, nor for few rows or a few
/// behind whole vectors, and not by kernels whose strips are one vector wide: products of blocks
/// are faster there.
pub(super) fn multiply<T: Element>(
    kernel: &'static Kernel,
    l: Strided<'_, T>,
    diagonal: Diagonal,
    b: StridedMut<'_, T>,
) -> Result<bool, Error> {
    let kernels = block::kernels::<T>(kernel);
    let (rows, lanes) = (l.rows(), kernels.lanes);
    // Rows are transposed in blocks of a vector's height, the last of which should be half full.
    let is_small = rows <= lanes || rows.next_multiple_of(lanes) - rows > lanes / 2;
    if T::PARTS > 1 || is_small || kernels.strip_vectors == 1 || !block::is_adjacent(b.strides()) {
        return Ok(false);
    }
    apply(kernel, Task::Multiply, l, diagonal, b)
}

fn apply<T: Element>(
    kernel: &'static Kernel,
    task: Task,
    l: Strided<'_, T>,
    diagonal: Diagonal,
    b: StridedMut<'_, T>,
) -> Result<bool, Error> {
    debug_assert!(T::PARTS == 1);
    let kernels = block::kernels::<T>(kernel);
    let size = l.rows();
    let panels = size.div_ceil(HIGH);
    let wide = kernels.lanes * kernels.strip_vectors;
    let (triangle, padded) = (panel_start(panels), panels * HIGH);
    let mut scratch = Buffer::<T>::scratch(triangle + padded + padded * wide)?;
    let (memory, rest) = scratch.split_at_mut(triangle);
    let (reciprocals, strip) = rest.split_at_mut(padded);
    let mut panels = Panels { kernels, task, size, l: memory, reciprocals, strip };
    if !panels.read(l, diagonal)? {
        return Ok(false);
    }
    panels.apply(b)?;
    Ok(true)
}

impl<T: Element> Panels<'_, T> {
    /// The entries of a row of a strip in memory.
    fn wide(&self) -> usize {
        self.kernels.lanes * self.kernels.strip_vectors
    }

    /// Copies the triangle. Returns whether all reciprocals of its diagonal are usable.
    fn read(&mut self, l: Strided<'_, T>, diagonal: Diagonal) -> Result<bool, Error> {
        let (start, row, col) = l.raw();
        if row.abs() == 1 {
            let place = (start.cast::<T::Real>(), row, (col, self.size));
            let reciprocals = match self.task {
                Task::Solve => self.reciprocals.as_mut_ptr().cast::<T::Real>(),
                Task::Multiply => std::ptr::null_mut(),
            };
            let to = self.l.as_mut_ptr().cast::<T::Real>();
            // SAFETY: the view is readable, and its rows are adjacent; the memory has room for all
            // panels and reciprocals; a `Kernel` exists only if the processor has its features.
            unsafe { (self.kernels.pack)(place, diagonal == Diagonal::Unit, to, reciprocals) };
            let mut pivots = self.reciprocals[..self.size].iter();
            return Ok(self.task == Task::Multiply || pivots.all(|value| block::is_usable(value.re())));
        }
        let mut copy = Buffer::<T>::scratch(self.size * self.size)?;
        let mut square = StridedMut::col_major(&mut copy, self.size, self.size)?;
        // Reversed rows and columns are turned back, so that blocks are transposed in registers.
        if row > 0 || col > 0 {
            block::copy(l, square.reborrow());
            return self.read(square.as_ref(), diagonal);
        }
        block::copy(l.rows_reversed().cols_reversed(), square.reborrow());
        self.read(square.as_ref().rows_reversed().cols_reversed(), diagonal)
    }

    /// Solves or multiplies strip by strip.
    fn apply(&mut self, b: StridedMut<'_, T>) -> Result<(), Error> {
        let mut rest = if b.strides().1 == -1 { b.cols_reversed() } else { b };
        let (lanes, most) = (self.kernels.lanes, self.kernels.strip_vectors);
        let (row, col) = rest.strides();
        let in_place =
            col == 1 && self.size.is_multiple_of(HIGH) && row.unsigned_abs() * size_of::<T>() < FAR_BYTES;
        // Zeros in the rows that fill the last panel: anything else could be slow to compute with.
        let wide = self.wide();
        self.strip[self.size * wide..].fill(T::ZERO);
        while rest.cols() > 0 {
            let vectors = rest.cols().div_ceil(lanes);
            // Even strips: three vectors, or twice two in place of three and one.
            let vectors = vectors.div_ceil(vectors.div_ceil(most));
            let count = rest.cols().min(vectors * lanes);
            let (mut part, others) = rest.split_cols(count);
            rest = others;
            if in_place && count == vectors * lanes {
                let (start, row, _) = part.raw();
                self.run(start, row, vectors);
                continue;
            }
            self.apply_to_copy(part, vectors)?;
        }
        Ok(())
    }

    /// Solves or multiplies a copy of a strip.
    fn apply_to_copy(&mut self, part: StridedMut<'_, T>, vectors: usize) -> Result<(), Error> {
        let (size, cols, wide) = (self.size, part.cols(), self.wide());
        if cols < vectors * self.kernels.lanes {
            for row in self.strip.chunks_exact_mut(wide).take(size) {
                row[cols..vectors * self.kernels.lanes].fill(T::ZERO);
            }
        }
        // Blocks of rows in their order in memory are transposed in registers.
        let mut part = part;
        let is_reversed = part.strides().0 < 0;
        let strip = StridedMut::new(self.strip, size, cols, wide as isize, 1)?;
        block::copy(turned(part.reborrow(), is_reversed).as_ref(), turned(strip, is_reversed));
        let x = self.strip.as_mut_ptr();
        self.run(x, wide as isize, vectors);
        let strip = StridedMut::new(self.strip, size, cols, wide as isize, 1)?;
        block::copy(turned(strip, is_reversed).as_ref(), turned(part, is_reversed));
        Ok(())
    }

    /// Solves or multiplies whole vectors of whole panels of rows.
    fn run(&self, x: *mut T, stride: isize, vectors: usize) {
        let (l, x, panels) = (self.l.as_ptr().cast(), x.cast(), self.size.div_ceil(HIGH));
        let reciprocals = self.reciprocals.as_ptr().cast();
        // SAFETY: the panels were copied; all vectors are writable in each row of the panels; a
        // `Kernel` exists only if the processor has its features.
        unsafe {
            match self.task {
                Task::Solve => (self.kernels.solve_strip)((l, reciprocals, panels), x, stride, vectors),
                Task::Multiply => (self.kernels.multiply_strip)((l, panels), x, stride, vectors),
            }
        }
    }
}

/// The view, with its rows in the opposite order if they are reversed.
fn turned<T: Element>(view: StridedMut<'_, T>, is_reversed: bool) -> StridedMut<'_, T> {
    if is_reversed {
        view.rows_reversed()
    } else {
        view
    }
}
