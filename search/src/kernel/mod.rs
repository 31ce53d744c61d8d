//! Kernels: how one line is searched on each instruction set.
//!
//! A layout's search is written once, generic over a [`Simd`](crate::simd::Simd) token. An
//! instruction set is a token type that only its file can make, inside the entry functions, which
//! carry `#[target_feature]`; everything generic is inlined into them. So the compiler uses the
//! instructions in the whole search, and no query asks the processor what it can do.
//!
//! A kernel consists of one file (its token, its comparisons, its entry functions) and one entry in
//! the table of this file. `choose` takes a layout's functions from the table; names, detection,
//! tests and races use it too. `backwards` shows that this suffices: a kernel of the tests that has
//! only its file and its entry.
//!
//! The vector files and this one hold `unsafe`: vector loads, prefetches, and the calls of entry
//! functions. Left out: dispatch per query, global state, assembly.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[macro_use]
mod define;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod backwards;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::lane::Lane;
use crate::layout::{Member, Shape};
use crate::line::Line;
use crate::simd::{Task, Vectors};

/// One query: the rank of `query` among the keys that `shape` describes in the lines.
pub(crate) type One<L> = unsafe fn(&Shape<L>, &[Line], L) -> usize;

/// Many queries: `out[i]` becomes the rank of the i-th query.
pub(crate) type Many<L> = unsafe fn(&Shape<L>, &[Line], &[L], &mut [usize]);

/// Makes the family from its table: [`Isa`], [`KERNELS`], and what leads to a kernel's functions.
/// `where` says on which targets the kernel's file is compiled; elsewhere it is never available.
macro_rules! define_kernels {
    ($(
        $(#[doc = $doc:literal])*
        $(#[cfg($present:meta)])?
        $isa:ident = $module:ident, $name:literal where $target:meta;
    )*) => {
        /// Instruction sets that kernels are written for, fastest first.
        ///
        /// ```
        /// use lightfoot_search::{Index, Isa, Options};
        /// let options = Options { isa: Some(Isa::Scalar), ..Options::default() };
        /// let index = Index::build_with(&[1u64, 2, 3], &options)?;
        /// assert!(index.explain().contains("scalar"));
        /// assert!(Isa::detect() <= Isa::Scalar, "the plain kernel is the last resort");
        /// # Ok::<(), lightfoot_search::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Isa {
            $( $(#[doc = $doc])* $(#[cfg($present)])? $isa, )*
        }

        /// Every kernel, fastest first; not all of them run on one machine.
        ///
        /// ```
        /// use lightfoot_search::KERNELS;
        /// let here: Vec<&str> =
        ///     KERNELS.iter().filter(|isa| isa.is_available()).map(|isa| isa.name()).collect();
        /// assert!(here.contains(&"scalar"));
        /// ```
        pub const KERNELS: &[Isa] = &[$( $(#[cfg($present)])? Isa::$isa, )*];

        impl Isa {
            /// The name that `explain` prints and that selects the instruction set.
            pub fn name(self) -> &'static str {
                match self {
                    $( $(#[cfg($present)])? Isa::$isa => $name, )*
                }
            }

            /// True when this machine, under this build, can run it.
            pub fn is_available(self) -> bool {
                match self {
                    $( #[cfg($target)] Isa::$isa => $module::is_available(), )*
                    #[allow(unreachable_patterns, reason = "which sets are foreign depends on the target")]
                    _ => false,
                }
            }
        }

        impl Vectors for Isa {
            fn is_third_level_far(self) -> bool {
                #[cfg(target_arch = "x86_64")]
                return Isa::Avx512.is_available() && avx512::is_third_level_far();
                #[cfg(not(target_arch = "x86_64"))]
                false
            }

            fn run<T: Task>(self, task: T) -> T::Output {
                let isa = if T::IS_WIDE { self } else { self.max(Isa::Avx2) };
                match isa {
                    $( #[cfg($target)]
                    #[allow(unused_unsafe, reason = "the plain kernels' functions are safe")]
                    // SAFETY: this arm is taken only when the processor has the instructions.
                    Isa::$isa if isa.is_available() => unsafe { $module::run(task) }, )*
                    _ => scalar::run(task),
                }
            }
        }

        /// The query functions of the layout whose shape type is `M`; calling them needs `isa`.
        pub(crate) fn functions<L: Lane, M: Member<L>>(isa: Isa) -> (One<L>, Many<L>) {
            match isa {
                $( #[cfg($target)] Isa::$isa => ($module::one::<L, M>, $module::many::<L, M>), )*
                #[allow(unreachable_patterns, reason = "which sets are foreign depends on the target")]
                _ => (scalar::one::<L, M>, scalar::many::<L, M>),
            }
        }
    };
}

define_kernels! {
    /// One 512-bit unsigned compare per line (x86-64 with AVX-512 F, BW, VL and DQ).
    Avx512 = avx512, "avx512" where target_arch = "x86_64";
    /// Two 256-bit compares per line.
    Avx2 = avx2, "avx2" where target_arch = "x86_64";
    /// Four 128-bit compares per line (AArch64).
    Neon = neon, "neon" where target_arch = "aarch64";
    /// Plain Rust, on any machine.
    Scalar = scalar, "scalar" where all();
    /// Plain Rust that counts from the last lane to the first: the family's dummy member.
    #[cfg(test)]
    Backwards = backwards, "backwards" where test;
}

impl Isa {
    /// The instruction set called `name`.
    pub fn from_name(name: &str) -> Option<Isa> {
        KERNELS.iter().copied().find(|isa| isa.name() == name)
    }

    /// The fastest one that this machine can run.
    pub fn detect() -> Isa {
        KERNELS.iter().copied().find(|isa| isa.is_available()).unwrap_or(Isa::Scalar)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_once_and_lead_back() {
        for isa in KERNELS {
            assert_eq!(Isa::from_name(isa.name()), Some(*isa));
        }
        assert!(KERNELS.is_sorted(), "fastest first, as the order of the type says");
        assert!(Isa::detect().is_available());
    }
}
