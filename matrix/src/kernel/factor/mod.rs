//! Register kernels of factorisations: triangular solves of a vector's height, panels of LU and
//! QR, and Cholesky factors of a block that fits into registers.
//!
//! **What.** Everything larger is a product, which [`super`] computes at the processor's limit.
//! What is left are blocks of [`FactorKernels::lanes`] rows or columns with divisions and searches
//! in them. **Why this way.** Matrices with N = 32 … 128 spend most of their time here, so these
//! blocks stay in registers and use whole vectors: columns are vectors, a number of a column is
//! broadcast by a permutation. The code is written once over [`Lanes`](lanes::Lanes).
//!
//! **Leaves out** complex numbers, for which [`crate::factor`] has plain loops.

#![allow(clippy::needless_range_loop, reason = "loops over rows and columns name them by their index")]

mod array;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod cholesky;
mod lanes;
mod lu;
mod reflect;
mod solve;
mod strips;
mod triangle;

pub(crate) use strips::{panel_start, HIGH};
pub(crate) use triangle::SmallTriangle;
pub(crate) use triangle::{Order, Place, MOST_LANES};

/// A panel of LU: the address of its first entry, the distance from one column to the next, rows,
/// columns, and a place for each pivot, counted from the first row. Returns the first column
/// without a pivot, or the number of columns.
pub(crate) type LuPanel<T> = unsafe fn(*mut T, isize, usize, usize, &mut [usize]) -> usize;

/// Column `j` of a QR panel: the address of the panel's first entry, the distance from one column
/// to the next, rows, columns, `j`; `dots[i]` becomes the product of column `i`'s reflector with
/// this one for `i < j`. Returns τ.
pub(crate) type ReflectColumn<T> = unsafe fn(*mut T, isize, usize, usize, usize, &mut [T; MOST_LANES]) -> T;

/// A triangle in memory: its first entry, the distances from one row to the next, which is 1 or −1,
/// and from one column to the next, and the number of rows.
pub(crate) type Reached<T> = (*const T, isize, (isize, usize));

/// The kernels for one real type. Functions need the instruction set, and valid addresses.
#[derive(Debug)]
pub(crate) struct FactorKernels<T: 'static> {
    /// Rows and columns of the largest [`SmallTriangle`], and of a panel.
    pub(crate) lanes: usize,
    /// `B ← L⁻¹·B` where the entries of a row of `B` are adjacent: `B`, the distance from one row
    /// to the next, and the number of columns.
    pub(crate) solve_across: unsafe fn(&SmallTriangle<T>, *mut T, isize, usize),
    /// `B ← L⁻¹·B` where the entries of a column of `B` are adjacent: `B`, the distance from one
    /// column to the next, and the number of columns.
    pub(crate) solve_down: unsafe fn(&SmallTriangle<T>, *mut T, isize, usize),
    /// The vectors of the widest strip.
    pub(crate) strip_vectors: usize,
    /// Copies a triangle for strips; see `strips::pack`.
    pub(crate) pack: unsafe fn(Reached<T>, bool, *mut T, *mut T),
    /// Solves a strip of right-hand sides; see `strips::solve`.
    pub(crate) solve_strip: unsafe fn((*const T, *const T, usize), *mut T, isize, usize),
    /// Multiplies a strip by a triangle; see `strips::multiply`.
    pub(crate) multiply_strip: unsafe fn((*const T, usize), *mut T, isize, usize),
    /// Reads a triangle for the solves; see `triangle::read`.
    pub(crate) read: unsafe fn(&mut SmallTriangle<T>, Place<*const T>, bool),
    /// Reads a triangle for `cholesky`; see `triangle::load`.
    pub(crate) load: unsafe fn(&mut SmallTriangle<T>, Place<*const T>),
    /// Writes columns of a triangle; see `triangle::save`.
    pub(crate) save: unsafe fn(&SmallTriangle<T>, Place<*mut T>),
    /// The lower triangle of `C ← S + β·C`; see `triangle::merge`.
    pub(crate) merge: unsafe fn((*const T, isize), Place<*mut T>, T),
    /// Factorises a small positive definite matrix in place and returns the first column whose
    /// pivot is not positive, or the number of columns.
    pub(crate) cholesky: unsafe fn(&mut SmallTriangle<T>) -> usize,
    /// Factorises a panel whose columns' entries are adjacent.
    pub(crate) lu_panel: LuPanel<T>,
    /// Makes the reflector of a column and applies it to the columns right of it.
    pub(crate) reflect: ReflectColumn<T>,
}

/// The kernels of one instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactorSet {
    /// AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2 with FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// NEON.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Plain Rust.
    Scalar,
}

/// The function that finds a set's kernels for one type.
macro_rules! find {
    ($find:ident, $real:ty, $avx512:ident, $avx2:ident, $neon:ident, $scalar:ident) => {
        impl FactorSet {
            /// The set's kernels for this type.
            #[inline]
            pub(crate) fn $find(self) -> &'static FactorKernels<$real> {
                match self {
                    #[cfg(target_arch = "x86_64")]
                    FactorSet::Avx512 => &$avx512,
                    #[cfg(target_arch = "x86_64")]
                    FactorSet::Avx2 => &$avx2,
                    #[cfg(target_arch = "aarch64")]
                    FactorSet::Neon => &$neon,
                    FactorSet::Scalar => &$scalar,
                }
            }
        }
    };
}

find!(f32, f32, AVX512_F32, AVX2_F32, NEON_F32, SCALAR_F32);
find!(f64, f64, AVX512_F64, AVX2_F64, NEON_F64, SCALAR_F64);

/// The kernels of a vector type, inside of functions with its features.
macro_rules! kernels {
    ($name:ident, $module:ident, $lanes:ident, $real:ty $(, $feature:literal)?) => {
        mod $module {
            use super::{cholesky, lu, reflect, solve, strips, triangle, Place, Reached, SmallTriangle, MOST_LANES};

            /// # Safety
            /// The requirements of [`solve::across`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn solve_across(t: &SmallTriangle<$real>, b: *mut $real, stride: isize, cols: usize) {
                // SAFETY: the caller's promise.
                unsafe { solve::across::<super::$lanes>(t, b, stride, cols) }
            }
            /// # Safety
            /// The requirements of [`solve::down`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn solve_down(t: &SmallTriangle<$real>, b: *mut $real, stride: isize, cols: usize) {
                // SAFETY: the caller's promise.
                unsafe { solve::down::<super::$lanes>(t, b, stride, cols) }
            }
            /// # Safety
            /// The requirements of [`strips::pack`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn pack(l: Reached<$real>, is_unit: bool, to: *mut $real, reciprocals: *mut $real) {
                // SAFETY: the caller's promise.
                unsafe { strips::pack::<super::$lanes>(l, is_unit, to, reciprocals) }
            }
            /// # Safety
            /// The requirements of [`strips::solve`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn solve_strip(
                l: (*const $real, *const $real, usize),
                x: *mut $real,
                stride: isize,
                vectors: usize,
            ) {
                // SAFETY: the caller's promise.
                unsafe { strips::solve::<super::$lanes>(l, x, stride, vectors) }
            }
            /// # Safety
            /// The requirements of [`strips::multiply`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn multiply_strip(
                l: (*const $real, usize),
                x: *mut $real,
                stride: isize,
                vectors: usize,
            ) {
                // SAFETY: the caller's promise.
                unsafe { strips::multiply::<super::$lanes>(l, x, stride, vectors) }
            }
            /// # Safety
            /// The requirements of [`triangle::read`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn read(t: &mut SmallTriangle<$real>, place: Place<*const $real>, is_unit: bool) {
                // SAFETY: the caller's promise.
                unsafe { triangle::read::<super::$lanes>(t, place, is_unit) }
            }
            /// # Safety
            /// The requirements of [`triangle::load`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn load(t: &mut SmallTriangle<$real>, place: Place<*const $real>) {
                // SAFETY: the caller's promise.
                unsafe { triangle::load::<super::$lanes>(t, place) }
            }
            /// # Safety
            /// The requirements of [`triangle::save`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn save(t: &SmallTriangle<$real>, place: Place<*mut $real>) {
                // SAFETY: the caller's promise.
                unsafe { triangle::save::<super::$lanes>(t, place) }
            }
            /// # Safety
            /// The requirements of [`triangle::merge`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn merge(square: (*const $real, isize), c: Place<*mut $real>, beta: $real) {
                // SAFETY: the caller's promise.
                unsafe { triangle::merge::<super::$lanes>(square, c, beta) }
            }
            /// # Safety
            /// The processor has the features.
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn factorise(t: &mut SmallTriangle<$real>) -> usize {
                // SAFETY: the caller's promise.
                unsafe { cholesky::factorise::<super::$lanes>(t) }
            }
            /// # Safety
            /// The requirements of [`lu::panel`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn lu_panel(
                a: *mut $real,
                stride: isize,
                rows: usize,
                cols: usize,
                pivots: &mut [usize],
            ) -> usize {
                // SAFETY: the caller's promise.
                unsafe { lu::panel::<super::$lanes>(a, stride, (rows, cols), pivots) }
            }
            /// # Safety
            /// The requirements of [`reflect::column`].
            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe fn reflect(
                a: *mut $real,
                stride: isize,
                rows: usize,
                cols: usize,
                column: usize,
                dots: &mut [$real; MOST_LANES],
            ) -> $real {
                // SAFETY: the caller's promise.
                unsafe { reflect::column::<super::$lanes>(a, stride, (rows, cols), column, dots) }
            }
        }

        static $name: FactorKernels<$real> = FactorKernels {
            lanes: <$lanes as lanes::Lanes>::COUNT,
            solve_across: $module::solve_across,
            solve_down: $module::solve_down,
            strip_vectors: <$lanes as lanes::Lanes>::STRIP,
            pack: $module::pack,
            solve_strip: $module::solve_strip,
            multiply_strip: $module::multiply_strip,
            read: $module::read,
            load: $module::load,
            save: $module::save,
            merge: $module::merge,
            cholesky: $module::factorise,
            lu_panel: $module::lu_panel,
            reflect: $module::reflect,
        };
    };
}

#[cfg(target_arch = "x86_64")]
type Avx512F64 = avx512::Double;
#[cfg(target_arch = "x86_64")]
kernels!(AVX512_F64, avx512_f64, Avx512F64, f64, "avx512f");
#[cfg(target_arch = "x86_64")]
type Avx512F32 = avx512::Single;
#[cfg(target_arch = "x86_64")]
kernels!(AVX512_F32, avx512_f32, Avx512F32, f32, "avx512f");
#[cfg(target_arch = "x86_64")]
type Avx2F64 = array::Array<f64, 4, true>;
#[cfg(target_arch = "x86_64")]
kernels!(AVX2_F64, avx2_f64, Avx2F64, f64, "avx2,fma");
#[cfg(target_arch = "x86_64")]
type Avx2F32 = array::Array<f32, 8, true>;
#[cfg(target_arch = "x86_64")]
kernels!(AVX2_F32, avx2_f32, Avx2F32, f32, "avx2,fma");
#[cfg(target_arch = "aarch64")]
type NeonF64 = array::Array<f64, 4, true>;
#[cfg(target_arch = "aarch64")]
kernels!(NEON_F64, neon_f64, NeonF64, f64, "neon");
#[cfg(target_arch = "aarch64")]
type NeonF32 = array::Array<f32, 8, true>;
#[cfg(target_arch = "aarch64")]
kernels!(NEON_F32, neon_f32, NeonF32, f32, "neon");
type ScalarF64 = array::Array<f64, 4, false>;
kernels!(SCALAR_F64, scalar_f64, ScalarF64, f64);
type ScalarF32 = array::Array<f32, 4, false>;
kernels!(SCALAR_F32, scalar_f32, ScalarF32, f32);
