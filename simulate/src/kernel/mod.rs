//! The innermost operations, in a version per instruction set.
//!
//! **What.** [`TouchRow`] finds a tag among a row's lanes and puts it in front; [`Vectors`] treats
//! sixteen touches at once. Loops over them ([`RowWork`], [`Pass`]) are generic over the kernel,
//! and compiled once for each: the loop and its kernel are inlined into one function that has the
//! kernel's instructions.
//!
//! **Why this way.** The [`Kernel`] is chosen once. A value of a kernel's type proves that the
//! processor has the instructions; crate `pulp` guarantees that, so this crate needs no `unsafe`.
//!
//! **Shapes.** 8 or 16 lanes of 8 bytes, or 16 of 4; logical ways are the first lanes, the others
//! stay empty.

mod avx2;
mod avx512;
mod portable;
mod row;
mod tag;
mod touch_row;
mod vectors;

pub(crate) use row::{Row, EMPTY};
pub(crate) use tag::Tag;
pub(crate) use touch_row::{Enters, EntersWhole, Fill, MayEnter, TouchRow};
pub(crate) use vectors::{Located, Vectors};

use pulp::x86::{V3, V4};
use pulp::NullaryFnOnce;
use std::marker::PhantomData;

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
    Avx512(V4),
    Avx2(V3),
    Portable,
}

impl Kernel {
    /// The kernels that this processor can run, fastest first.
    pub(crate) fn all() -> impl Iterator<Item = Kernel> {
        let avx512 = V4::try_new().map(Kernel::Avx512);
        let avx2 = V3::try_new().map(Kernel::Avx2);
        avx512.into_iter().chain(avx2).chain([Kernel::Portable])
    }

    /// The fastest kernel that this processor can run.
    pub(crate) fn fastest() -> Kernel {
        Kernel::all().next().unwrap_or(Kernel::Portable)
    }

    /// Runs `work`, compiled for this kernel.
    pub(crate) fn run<T, const LANES: usize, W: RowWork<T, LANES>>(self, work: W) -> W::Output
    where
        V4: TouchRow<T, LANES>,
        V3: TouchRow<T, LANES>,
        portable::Portable: TouchRow<T, LANES>,
    {
        let tags = PhantomData;
        match self {
            Kernel::Avx512(avx512) => avx512.vectorize(CompiledWork { kernel: avx512, work, tags }),
            Kernel::Avx2(avx2) => avx2.vectorize(CompiledWork { kernel: avx2, work, tags }),
            Kernel::Portable => work.run(portable::Portable),
        }
    }

    /// Runs `pass`, compiled for this kernel.
    pub(crate) fn pass<P: Pass>(self, pass: P) -> P::Output {
        match self {
            Kernel::Avx512(avx512) => avx512.vectorize(CompiledPass { kernel: avx512, pass }),
            Kernel::Avx2(avx2) => avx2.vectorize(CompiledPass { kernel: avx2, pass }),
            Kernel::Portable => pass.run(portable::Portable),
        }
    }
}

/// `pass` on `kernel`, inlined into a function that has the kernel's instructions.
struct CompiledPass<K, P> {
    kernel: K,
    pass: P,
}

impl<K: Vectors, P: Pass> NullaryFnOnce for CompiledPass<K, P> {
    type Output = P::Output;

    #[inline(always)]
    fn call(self) -> P::Output {
        self.pass.run(self.kernel)
    }
}

/// `work` on `kernel`, inlined into a function that has the kernel's instructions.
struct CompiledWork<K, W, T, const LANES: usize> {
    kernel: K,
    work: W,
    tags: PhantomData<[T; LANES]>,
}

impl<T, K, W, const LANES: usize> NullaryFnOnce for CompiledWork<K, W, T, LANES>
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
