//! The common part of all vector kernels, as a macro that a kernel's file calls once.
//!
//! A macro, because an attribute (`#[target_feature]`) cannot take a generic parameter.

/// Defines a vector kernel's entry functions, which carry the instruction set so that everything
/// generic is inlined under it, and its [`Simd`](crate::simd::Simd), which forwards to the file's
/// own functions.
macro_rules! define_kernel {
    ($token:ident, $features:literal, { $($own:tt)* }) => {
        /// One query of the layout whose shape type is `M`.
        ///
        /// # Safety
        /// The processor must have what the token proves.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn one<L: $crate::lane::Lane, M: $crate::layout::Member<L>>(
            shape: &$crate::layout::Shape<L>,
            lines: &[$crate::line::Line],
            query: L,
        ) -> usize {
            M::of(shape).rank($token(()), lines, query)
        }

        /// Many queries of the layout whose shape type is `M`.
        ///
        /// # Safety
        /// The processor must have what the token proves.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn many<L: $crate::lane::Lane, M: $crate::layout::Member<L>>(
            shape: &$crate::layout::Shape<L>,
            lines: &[$crate::line::Line],
            queries: &[L],
            out: &mut [usize],
        ) {
            M::of(shape).ranks($token(()), lines, queries, out);
        }

        /// A task that is not a query.
        ///
        /// # Safety
        /// The processor must have what the token proves.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn run<T: $crate::simd::Task>(task: T) -> T::Output {
            task.run($token(()))
        }

        impl $crate::simd::Simd for $token {
            #[inline(always)]
            fn less_u8<const SKIP: usize>(self, lanes: &[u8; 64], query: u8) -> usize {
                // SAFETY: the token proves the instructions.
                unsafe { less_u8::<SKIP>(lanes, query) }
            }

            #[inline(always)]
            fn less_u16<const SKIP: usize>(self, lanes: &[u16; 32], query: u16) -> usize {
                // SAFETY: the token proves the instructions.
                unsafe { less_u16::<SKIP>(lanes, query) }
            }

            #[inline(always)]
            fn less_u32<const SKIP: usize>(self, lanes: &[u32; 16], query: u32) -> usize {
                // SAFETY: the token proves the instructions.
                unsafe { less_u32::<SKIP>(lanes, query) }
            }

            #[inline(always)]
            fn less_u64<const SKIP: usize>(self, lanes: &[u64; 8], query: u64) -> usize {
                // SAFETY: the token proves the instructions.
                unsafe { less_u64::<SKIP>(lanes, query) }
            }

            #[inline(always)]
            fn mask_less_u16(self, lanes: &[u16; 32], query: u16) -> u32 {
                // SAFETY: the token proves the instructions.
                unsafe { mask_less_u16(lanes, query) }
            }

            $($own)*
        }
    };
}
