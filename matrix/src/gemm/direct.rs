//! Small products of plain arrays: direct kernels on the caller's memory, without copies.
//!
//! **The problem.** A product of 4×4×4 takes 4 ns. A job, scratch memory and its pool took 90.
//!
//! **The idea.** If the rows of `A` and of `C` are adjacent, a kernel whose last panel overlaps the
//! one before needs no packing, so all that is left of a plan is a cut of `C` into register tiles:
//!
//! ```text
//!            columns in groups of nearly equal width
//!           +-------+-------+------+
//!  4 panels |       |       |      |   panels in groups of nearly equal height; a product of
//!           +-------+-------+------+   one tile is one call of its kernel
//!  3 panels |       |       |      |
//!           +-------+-------+------+   the last panel begins earlier, so that it is whole
//! ```
//!
//! **Leaves out** complex numbers, arrays whose rows are not adjacent, and depths and sizes beyond
//! [`MOST`], for which packing pays. Entries have the same bits either way.

use crate::kernel::{
    row_mask, DirectKernel, DirectKernels, DirectTile, RealKernel, ThinKernel, Update, THIN,
};
use crate::{Element, Real};

/// The most rows, columns and steps of `k` of a direct product.
const MOST: usize = 128;
/// The most multiply-adds of a direct product whose panels are all whole: beyond that, the loops
/// around the other kernels pay. If the last panel is incomplete, they would copy it.
const MOST_WORK: usize = 80 * 80 * 80;
/// Columns of `A` and `B` that are further apart than this lie in pages of their own, and more than
/// [`FEW`] of them are packed.
const FAR_BYTES: usize = 4096;
/// A product of more panels and more columns has few last rows computed by a kernel of their own.
const THIN_PANELS: usize = 2;
/// See [`THIN_PANELS`].
const THIN_COLS: usize = 12;
/// The number of columns that may each lie in a page of its own.
const FEW: usize = 32;

/// `len` cut into `count` pieces, of which the first `longer` have one more than `len / count`.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    count: usize,
    longer: usize,
    short: usize,
}

impl Cut {
    /// As few pieces as possible of at most `most`, as equal as possible.
    #[inline]
    fn even(len: usize, most: usize) -> Cut {
        if len <= most {
            return Cut { count: 1, longer: 0, short: len };
        }
        let (len, most) = (len as u32, most as u32);
        let count = len.div_ceil(most);
        let short = len / count;
        Cut { count: count as usize, longer: (len - short * count) as usize, short: short as usize }
    }

    #[inline]
    fn piece(&self, index: usize) -> usize {
        self.short + usize::from(index < self.longer)
    }
}

/// A small product whose tiles are chosen: everything but the three addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<R: 'static> {
    /// The kernel, if one tile is the whole product.
    single: Option<DirectKernel<R>>,
    /// A tile with the last panel.
    last: DirectTile<R>,
    /// The rows of a whole panel.
    panel: usize,
    kernels: DirectKernels<R>,
    /// The kernel of the last panel, if it has few rows. It is not one of `panels` then.
    thin: Option<ThinKernel<R>>,
    panels: Cut,
    n: usize,
}

/// Whether several threads would not compute the product faster than direct kernels on one.
pub(super) fn is_for_one_thread((m, n, k): Shape) -> bool {
    m.saturating_mul(n).saturating_mul(k) <= MOST_WORK
}

/// The shape of a product: rows and columns of `C`, and the depth.
pub(super) type Shape = (usize, usize, usize);

/// Row stride and column stride.
pub(super) type Strides = (isize, isize);

/// What a product with these factors does to `C`.
#[inline]
pub(super) fn update<T: Element>(alpha: T, beta: T) -> Update {
    match beta == T::ZERO {
        true if alpha == T::ONE => Update::Set,
        true => Update::Scale,
        false => Update::Add,
    }
}

/// The operand that is used as the left one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Roles {
    /// `A`.
    Kept,
    /// `Bᵀ`, because the columns of `C` are adjacent.
    Exchanged,
}

/// The roles for a result with these strides. Panels need adjacent rows in `C`.
#[inline]
pub(super) fn roles(strides: Strides) -> Roles {
    match strides {
        (row, 1) if row != 1 => Roles::Exchanged,
        _ => Roles::Kept,
    }
}

/// The shape and the strides of the product that direct kernels compute: `C`, or `Cᵀ = Bᵀ·Aᵀ` if
/// the columns of `C` are adjacent.
#[inline(always)]
pub(super) fn form((m, n, k): Shape, [a, b, c]: [Strides; 3]) -> (Shape, [Strides; 3], Roles) {
    let exchanged = |strides: Strides| (strides.1, strides.0);
    match roles(c) {
        Roles::Kept => ((m, n, k), [a, b, c], Roles::Kept),
        Roles::Exchanged => ((n, m, k), [exchanged(b), exchanged(a), exchanged(c)], Roles::Exchanged),
    }
}

/// The tile of the last panels and the number of panels, unless packing pays or a stride is
/// unsuitable. No number of the shape may be zero, nor α.
#[inline(always)]
fn tile<T: Element>(
    kernel: &'static RealKernel<T::Real>,
    (m, n, k): Shape,
    (alpha, beta): (T, T),
    [a, b, c]: [Strides; 3],
) -> Option<(DirectTile<T::Real>, usize)> {
    let adjacent = a.0 == 1 && c.0 == 1 && T::PARTS == 1 && !kernel.direct.is_empty();
    if !adjacent || m > MOST || n > MOST || k > MOST {
        return None;
    }
    if m * n * k > MOST_WORK && m & (kernel.panel - 1) == 0 {
        return None;
    }
    let far = |stride: isize| stride.unsigned_abs() >= FAR_BYTES / size_of::<T>();
    if n.max(k) > FEW && (far(a.1) || far(b.0) || far(b.1)) {
        return None;
    }
    let (bytes, panel) = (size_of::<T>() as isize, kernel.panel);
    // Panels are powers of two.
    let panels = (m + panel - 1) >> panel.trailing_zeros();
    let rows = m - (panels - 1) * panel;
    let shared = if panels > 1 { panel - rows } else { 0 };
    let tile = DirectTile {
        k,
        a_panel: panel as isize * bytes,
        a_step: a.1 * bytes,
        b_column: b.1 * bytes,
        b_step: b.0 * bytes,
        b_far: 8 * b.1 * bytes,
        c_panel: panel as isize * bytes,
        c_column: c.1 * bytes,
        mask: row_mask(rows) << shared,
        back: shared as isize * bytes,
        update: update(alpha, beta),
        alpha: alpha.re(),
        beta: beta.re(),
    };
    Some((tile, panels))
}

/// Whether no number of the shape is zero, all are small, no stride is negative or so large that a
/// place overflows, and rows or columns of `C` follow each other.
#[inline(always)]
pub(super) fn are_usual((m, n, k): Shape, [a, b, c]: [Strides; 3]) -> bool {
    let strides = (a.0 | a.1 | b.0 | b.1 | c.0 | c.1) as usize;
    // A zero wraps around and is too large.
    let sizes = m.wrapping_sub(1) | n.wrapping_sub(1) | k.wrapping_sub(1);
    let follow = c.0 == 1 && c.1 as usize >= m || c.1 == 1 && c.0 as usize >= n;
    sizes < MOST && strides < 1 << 40 && follow
}

/// Computes `C ← α·A·B + β·C` if it is a product for direct kernels, and returns whether it did.
///
/// # Safety
/// The requirements of [`Plan::run`], for these shapes and strides.
#[inline(always)]
pub(super) unsafe fn attempt<T: Element>(
    kernel: &'static RealKernel<T::Real>,
    shape: Shape,
    factors: (T, T),
    strides: [Strides; 3],
    (a, b, c): (*const T, *const T, *mut T),
) -> bool {
    let Some((tile, panels)) = tile(kernel, shape, factors, strides) else { return false };
    let (a, b, c) = (a.cast(), b.cast(), c.cast());
    // SAFETY: the caller's promise; a single tile covers the whole product.
    unsafe {
        match kernel.direct.get(panels - 1).and_then(|widths| widths.get(shape.1 - 1)) {
            Some(single) => single(&tile, a, b, c),
            None => Plan::with(kernel, tile, panels, shape.1).run_tiles(a, b, c),
        }
    }
    true
}

impl<R: Real> Plan<R> {
    /// The plan of `C ← α·A·B + β·C`, unless packing pays, or a stride is unsuitable. No number of
    /// `shape` may be zero, nor α.
    pub(super) fn new<T: Element<Real = R>>(
        kernel: &'static RealKernel<R>,
        shape: Shape,
        factors: (T, T),
        strides: [Strides; 3],
    ) -> Option<Plan<R>> {
        let (tile, panels) = tile(kernel, shape, factors, strides)?;
        Some(Plan::with(kernel, tile, panels, shape.1))
    }

    /// The plan with this tile, so many panels and `n` columns.
    #[inline]
    fn with(kernel: &'static RealKernel<R>, last: DirectTile<R>, panels: usize, n: usize) -> Plan<R> {
        let (kernels, panel) = (kernel.direct, kernel.panel);
        let is_thin = panels > THIN_PANELS
            && last.mask.count_ones() as usize <= THIN
            && n > THIN_COLS
            && last.b_step == size_of::<R>() as isize;
        let thin = kernel.thin.filter(|_| is_thin);
        let panels = Cut::even(panels - usize::from(thin.is_some()), kernels.len());
        let widths = kernels[panels.short - 1];
        let is_single = thin.is_none() && panels.count == 1 && n <= widths.len();
        let single = is_single.then(|| widths[n - 1]);
        Plan { single, last, panel, kernels, thin, panels, n }
    }

    /// Computes the product.
    ///
    /// # Safety
    /// The addresses are those of entry (0, 0) of arrays with the shape and the strides of the
    /// plan. `A` and `B` are readable, `C` is writable by this thread alone, and initialised unless
    /// β is 0. The processor has the kernel's features.
    #[inline]
    pub(super) unsafe fn run(&self, a: *const R, b: *const R, c: *mut R) {
        // SAFETY: the caller's promise; a single tile covers the whole product.
        unsafe {
            match self.single {
                Some(kernel) => kernel(&self.last, a, b, c),
                None => self.run_tiles(a, b, c),
            }
        }
    }

    /// Computes the product tile by tile.
    ///
    /// # Safety
    /// The requirements of [`Self::run`].
    unsafe fn run_tiles(&self, a: *const R, b: *const R, c: *mut R) {
        let (mut a, mut c) = (a, c);
        let before = self.panels.count - usize::from(self.thin.is_none());
        // Kernels take three panels and more, so no group of several is a single panel, which could
        // not begin earlier.
        debug_assert!(before == 0 || self.thin.is_some() || self.panels.piece(before) > 1);
        // SAFETY: the tiles lie in the product; the last panel of the last group, or the thin one
        // behind it, is the last one of the product, and there are whole panels before a thin one.
        unsafe {
            if before > 0 {
                let whole = DirectTile { mask: row_mask(self.panel), back: 0, ..self.last };
                for group in 0..before {
                    let panels = self.panels.piece(group);
                    self.run_group(&whole, panels, a, b, c);
                    a = a.wrapping_byte_offset(panels as isize * whole.a_panel);
                    c = c.wrapping_byte_offset(panels as isize * whole.c_panel);
                }
            }
            match self.thin {
                Some(thin) => thin(&self.last, self.n, a, b, c),
                None => self.run_group(&self.last, self.panels.piece(before), a, b, c),
            }
        }
    }

    /// Computes all columns of a group of panels.
    ///
    /// # Safety
    /// The requirements of [`Self::run`], for addresses of the group's first row.
    #[inline(always)]
    unsafe fn run_group(&self, tile: &DirectTile<R>, panels: usize, a: *const R, b: *const R, c: *mut R) {
        let kernels = self.kernels[panels - 1];
        let widths = Cut::even(self.n, kernels.len());
        let (mut b, mut c) = (b, c);
        for index in 0..widths.count {
            let width = widths.piece(index);
            // SAFETY: the caller's promise; these columns lie in the product.
            unsafe { kernels[width - 1](tile, a, b, c) };
            b = b.wrapping_byte_offset(width as isize * tile.b_column);
            c = c.wrapping_byte_offset(width as isize * tile.c_column);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cut;

    #[test]
    fn cuts_are_even_and_cover_everything() {
        for len in 1..=128 {
            for most in 1..=12 {
                let cut = Cut::even(len, most);
                let pieces: Vec<_> = (0..cut.count).map(|index| cut.piece(index)).collect();
                assert_eq!(pieces.iter().sum::<usize>(), len);
                assert!(pieces.iter().all(|&piece| piece <= most && piece + 1 >= pieces[0]));
                assert_eq!(pieces.len(), len.div_ceil(most));
            }
        }
    }
}
