//! The innermost operations, in a version per instruction set.
//!
//! **What.** [`TouchRow`] finds a tag among a row's lanes and puts it in front; [`Vectors`] treats
//! sixteen touches at once. Loops over them ([`RowWork`], [`Pass`]) are generic over the kernel,
//! and compiled once for each: the loop and its kernel are inlined into one function that has the
//! kernel's instructions.
//!
//! **Why this way.** The [`Kernel`] is chosen once. A value of a kernel's type proves that the
//! processor has the instructions, so the kernels need no `unsafe`: the calls of instructions are
//! in one file, `token.rs`.
//!
//! **Shapes.** 8 or 16 lanes of 8 bytes, or 16 of 4; logical ways are the first lanes, the others
//! stay empty.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
mod row;
mod tag;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "calls of intrinsics, for which a token is the proof")]
mod token;
mod touch_row;
mod vectors;

pub(crate) use row::{Row, RowVec, EMPTY};
pub(crate) use tag::Tag;
pub(crate) use touch_row::{Enters, EntersWhole, Fill, MayEnter, TouchRow};
pub(crate) use vectors::{Located, Vectors};

#[cfg(target_arch = "x86_64")]
use std::marker::PhantomData;
#[cfg(target_arch = "x86_64")]
use token::{Avx2, Avx512, Work};

/// A loop over rows, generic over the kernel that it is compiled for.
pub(crate) trait RowWork<T, const LANES: usize> {
    type Output;
    fn run<K: TouchRow<T, LANES>>(self, kernel: K) -> Self::Output;
}

/// A loop over touches, generic over the kernel that it is compiled for.
pub(crate) trait Pass {
    type Output;
    fn run<K: Vectors>(self, kernel: K) -> Self::Output;
}

/// The kernel in use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    Portable,
}

impl Kernel {
    /// The kernels that this processor can run, fastest first.
    pub(crate) fn all() -> impl Iterator<Item = Kernel> {
        let vectors = std::iter::empty();
        #[cfg(target_arch = "x86_64")]
        let vectors = vectors.chain(Avx512::new().map(Kernel::Avx512)).chain(Avx2::new().map(Kernel::Avx2));
        vectors.chain([Kernel::Portable])
    }

    /// The fastest kernel that this processor can run.
    pub(crate) fn fastest() -> Kernel {
        Kernel::all().next().unwrap_or(Kernel::Portable)
    }

    /// Runs `work`, compiled for this kernel.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn run<T, const LANES: usize, W: RowWork<T, LANES>>(self, work: W) -> W::Output
    where
        Avx512: TouchRow<T, LANES>,
        Avx2: TouchRow<T, LANES>,
        portable::Portable: TouchRow<T, LANES>,
    {
        let tags = PhantomData;
        match self {
            Kernel::Avx512(avx512) => avx512.run(CompiledWork { kernel: avx512, work, tags }),
            Kernel::Avx2(avx2) => avx2.run(CompiledWork { kernel: avx2, work, tags }),
            Kernel::Portable => work.run(portable::Portable),
        }
    }

    /// Runs `work` on the one kernel of other processors.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn run<T, const LANES: usize, W: RowWork<T, LANES>>(self, work: W) -> W::Output
    where
        portable::Portable: TouchRow<T, LANES>,
    {
        work.run(portable::Portable)
    }

    /// Runs `pass`, compiled for this kernel.
    pub(crate) fn pass<P: Pass>(self, pass: P) -> P::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512(avx512) => avx512.run(CompiledPass { kernel: avx512, pass }),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(avx2) => avx2.run(CompiledPass { kernel: avx2, pass }),
            Kernel::Portable => pass.run(portable::Portable),
        }
    }
}

/// `pass` on `kernel`, inlined into a function that has the kernel's instructions.
#[cfg(target_arch = "x86_64")]
struct CompiledPass<K, P> {
    kernel: K,
    pass: P,
}

#[cfg(target_arch = "x86_64")]
impl<K: Vectors, P: Pass> Work for CompiledPass<K, P> {
    type Output = P::Output;

    #[inline(always)]
    fn call(self) -> P::Output {
        self.pass.run(self.kernel)
    }
}

/// `work` on `kernel`, inlined into a function that has the kernel's instructions.
#[cfg(target_arch = "x86_64")]
struct CompiledWork<K, W, T, const LANES: usize> {
    kernel: K,
    work: W,
    tags: PhantomData<[T; LANES]>,
}

#[cfg(target_arch = "x86_64")]
impl<T, K, W, const LANES: usize> Work for CompiledWork<K, W, T, LANES>
where
    K: TouchRow<T, LANES>,
    W: RowWork<T, LANES>,
{
    type Output = W::Output;

    #[inline(always)]
    fn call(self) -> W::Output {
        self.work.run(self.kernel)
    }
}
