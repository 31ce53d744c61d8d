//! Kernels: how one line is searched on each instruction set, and the choice among them.
//!
//! A layout's search is written once, generic over a [`Simd`] token. An instruction set is a token type whose only safe constructor
//! asks the processor, so holding a token proves that its instructions exist; the token's two entry functions carry
//! `#[target_feature]`, and everything generic is inlined into them. [`Kernel::choose`] runs when an index is built or opened and keeps two
//! function pointers; no query ever asks again.
//!
//! The three vector files and this one hold `unsafe`: vector loads, prefetches, and the calls through the chosen pointers.
//! What this deliberately leaves out: no per-query dispatch, no global state, no assembly.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::key::{Exact, Lane};
use crate::layout::{Filled, Layout, Method, Part, Refusal, Shape, Split};
use crate::line::Line;

/// An instruction set that searches a line: a zero-sized proof that the processor has it.
///
/// Every `less_*` counts the lanes from `SKIP` on that are less than `q`, unsigned. Cost: one line read.
pub(crate) trait Simd: Copy {
    /// Lanes of 8 bits.
    fn less_u8<const SKIP: usize>(self, lanes: &[u8; 64], q: u8) -> usize;
    /// Lanes of 16 bits.
    fn less_u16<const SKIP: usize>(self, lanes: &[u16; 32], q: u16) -> usize;
    /// Lanes of 32 bits; the slice may be unaligned.
    fn less_u32<const SKIP: usize>(self, lanes: &[u32; 16], q: u32) -> usize;
    /// Lanes of 64 bits; the slice may be unaligned.
    fn less_u64<const SKIP: usize>(self, lanes: &[u64; 8], q: u64) -> usize;
    /// Which lanes are less than `q`, the first lane's answer lowest.
    fn mask_less_u16(self, lanes: &[u16; 32], q: u16) -> u32;
    /// Which of the words share a bit with `mask`, the first word's answer lowest.
    #[inline(always)]
    fn marked(self, words: &[usize; MARKS], mask: u32) -> u64 {
        words.iter().rev().fold(0, |marks, &word| marks << 1 | u64::from(word as u32 & mask != 0))
    }
    /// Which of the numbers of `a` are others in `b`, the first number's answer lowest.
    #[inline(always)]
    fn differs(self, a: &[u32; DIFFERS], b: &[u32; DIFFERS]) -> u64 {
        a.iter().zip(b).rev().fold(0, |bits, (a, b)| bits << 1 | u64::from(a != b))
    }
    /// Asks for line `index` early. Any index is allowed: a prefetch never faults.
    fn prefetch(self, lines: &[Line], index: usize);
}

/// Defines what every vector kernel has alike: its entry functions, which carry the instruction set so that everything generic is inlined under it, and its [`Simd`], which
/// forwards to the file's own functions. A macro, because an attribute cannot take a generic parameter.
macro_rules! define_kernel {
    ($token:ident, $features:literal, { $($own:tt)* }) => {
        /// One query with method `M`.
        ///
        /// # Safety
        /// The processor must have what the token proves.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn one<L: $crate::key::Lane, M: $crate::layout::Method<L>>(
            shape: &$crate::layout::Shape<L>,
            lines: &[$crate::line::Line],
            q: L,
        ) -> usize {
            M::of(shape).rank($token(()), lines, q)
        }

        /// Many queries with method `M`.
        ///
        /// # Safety
        /// The processor must have what the token proves.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn many<L: $crate::key::Lane, M: $crate::layout::Method<L>>(
            shape: &$crate::layout::Shape<L>,
            lines: &[$crate::line::Line],
            qs: &[L],
            out: &mut [usize],
        ) {
            M::of(shape).ranks($token(()), lines, qs, out);
        }

        /// Fills a part of a split layout.
        ///
        /// # Safety
        /// The processor must have what the token proves.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn fill_part<L: $crate::key::Lane, K: $crate::key::Exact<As = L>>(
            plan: &$crate::layout::Split<L>,
            keys: &[K],
            part: $crate::layout::Part<'_>,
        ) -> Result<$crate::layout::Filled, $crate::layout::Refusal> {
            plan.fill_part($token(()), keys, part)
        }

        impl $crate::kernel::Simd for $token {
            #[inline(always)]
            fn less_u8<const SKIP: usize>(self, lanes: &[u8; 64], q: u8) -> usize {
                // SAFETY: the token proves the instructions.
                unsafe { less_u8::<SKIP>(lanes, q) }
            }

            #[inline(always)]
            fn less_u16<const SKIP: usize>(self, lanes: &[u16; 32], q: u16) -> usize {
                // SAFETY: the token proves the instructions.
                unsafe { less_u16::<SKIP>(lanes, q) }
            }

            #[inline(always)]
            fn less_u32<const SKIP: usize>(self, lanes: &[u32; 16], q: u32) -> usize {
                // SAFETY: the token proves the instructions.
                unsafe { less_u32::<SKIP>(lanes, q) }
            }

            #[inline(always)]
            fn less_u64<const SKIP: usize>(self, lanes: &[u64; 8], q: u64) -> usize {
                // SAFETY: the token proves the instructions.
                unsafe { less_u64::<SKIP>(lanes, q) }
            }

            #[inline(always)]
            fn mask_less_u16(self, lanes: &[u16; 32], q: u16) -> u32 {
                // SAFETY: the token proves the instructions.
                unsafe { mask_less_u16(lanes, q) }
            }

            $($own)*
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use define_kernel;

/// Words that [`Simd::marked`] looks at.
pub(crate) const MARKS: usize = 32;

/// Numbers that [`Simd::differs`] compares.
pub(crate) const DIFFERS: usize = 64;

/// Instruction sets that kernels are written for, fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isa {
    /// One 512-bit unsigned compare per line (x86-64 with AVX-512 F, BW, VL and DQ).
    Avx512,
    /// Two 256-bit compares per line.
    Avx2,
    /// Four 128-bit compares per line (AArch64).
    Neon,
    /// Plain Rust, on any machine.
    Scalar,
}

/// Every kernel, fastest first; not all of them run on one machine.
pub const KERNELS: &[Isa] = &[Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Scalar];

impl Isa {
    /// The name that `explain` prints and that selects it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Neon => "neon",
            Isa::Scalar => "scalar",
        }
    }

    /// The instruction set called `name`.
    pub fn from_name(name: &str) -> Option<Isa> {
        KERNELS.iter().copied().find(|isa| isa.name() == name)
    }

    /// True when this machine, under this build, can run it.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::Avx512::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::Avx2::new().is_some(),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::Neon::new().is_some(),
            Isa::Scalar => true,
            #[allow(unreachable_patterns, reason = "which sets are foreign depends on the target")]
            _ => false,
        }
    }

    /// The fastest one that this machine can run.
    pub fn detect() -> Isa {
        KERNELS.iter().copied().find(|isa| isa.is_available()).unwrap_or(Isa::Scalar)
    }
}

/// Fills a part of a split layout with the vectors of `isa`: placing keys is arithmetic that a compiler turns into them.
///
/// # Errors
/// As [`Split::fill`].
pub(crate) fn fill_part<L: Lane, K: Exact<As = L>>(
    isa: Isa,
    plan: &Split<L>,
    keys: &[K],
    part: Part<'_>,
) -> Result<Filled, Refusal> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this arm is taken only when the processor has the instructions.
        Isa::Avx512 if isa.is_available() => unsafe { avx512::fill_part(plan, keys, part) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this arm is taken only when the processor has the instructions.
        Isa::Avx2 if isa.is_available() => unsafe { avx2::fill_part(plan, keys, part) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: this arm is taken only when the processor has the instructions.
        Isa::Neon if isa.is_available() => unsafe { neon::fill_part(plan, keys, part) },
        _ => plan.fill_part(scalar::Scalar, keys, part),
    }
}

/// Asks for line `index` of `lines` where the target has an instruction for it.
#[cfg(feature = "std")]
#[inline(always)]
pub(crate) fn prefetch(lines: &[Line], index: usize) {
    #[cfg(target_arch = "x86_64")]
    avx2::prefetch(lines, index);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (lines, index);
}

/// One query: the rank of `q` among the keys that `shape` describes in the lines.
type One<L> = unsafe fn(&Shape<L>, &[Line], L) -> usize;
/// Many queries: `out[i]` becomes the rank of the i-th query.
type Many<L> = unsafe fn(&Shape<L>, &[Line], &[L], &mut [usize]);

/// The chosen pair of functions for one layout on one instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel<L: Lane> {
    isa: Isa,
    one: One<L>,
    many: Many<L>,
}

impl<L: Lane> Kernel<L> {
    /// The functions for `layout` on `isa`, or `None` when this machine cannot run them.
    pub(crate) fn choose(layout: Layout, isa: Isa) -> Option<Kernel<L>> {
        use crate::layout::*;
        if !isa.is_available() {
            return None;
        }
        Some(match layout {
            Layout::Sorted => Self::of::<Sorted>(isa),
            Layout::BranchFree => Self::of::<BranchFree>(isa),
            Layout::Eytzinger => Self::of::<Eytzinger>(isa),
            Layout::Kary => Self::of::<Kary>(isa),
            Layout::Tree => Self::of::<Tree>(isa),
            Layout::VanEmdeBoas => Self::of::<VanEmdeBoas>(isa),
            Layout::Window => Self::of::<Window<L>>(isa),
            Layout::Split => Self::of::<Split<L>>(isa),
            Layout::Packed => Self::of::<Packed<L>>(isa),
        })
    }

    /// The functions of method `M`; `isa` was checked by `choose`.
    fn of<M: Method<L>>(isa: Isa) -> Kernel<L> {
        let (one, many): (One<L>, Many<L>) = match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => (avx512::one::<L, M>, avx512::many::<L, M>),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => (avx2::one::<L, M>, avx2::many::<L, M>),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => (neon::one::<L, M>, neon::many::<L, M>),
            _ => (scalar::one::<L, M>, scalar::many::<L, M>),
        };
        Kernel { isa, one, many }
    }

    /// The instruction set.
    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    /// The rank of `q`.
    #[inline(always)]
    pub(crate) fn rank(&self, shape: &Shape<L>, lines: &[Line], q: L) -> usize {
        // SAFETY: `choose` saw that this processor has the instruction set of the pointers it keeps.
        unsafe { (self.one)(shape, lines, q) }
    }

    /// The ranks of `qs` into `out`, which is as long.
    #[inline]
    pub(crate) fn ranks(&self, shape: &Shape<L>, lines: &[Line], qs: &[L], out: &mut [usize]) {
        assert_eq!(qs.len(), out.len(), "as many answers as queries");
        // SAFETY: as in `rank`.
        unsafe { (self.many)(shape, lines, qs, out) }
    }
}
