//! Proofs that the processor has instructions, and the instructions as safe methods of the proofs.
//!
//! **Problem.** An intrinsic may only run on a processor that has its instruction, so calling it is
//! unsafe wherever the compiler does not know the processor.
//!
//! **Idea.** A token is a value without bytes. Its only constructor, `new`, asks the processor, so
//! whoever has a token has the instructions, and may call them as methods. `run` compiles work for
//! them: it calls the work in a function that has the instructions enabled, and into which the
//! work and all intrinsics are inlined.
//!
//! **Invariant.** A method calls an intrinsic whose instruction is among the token's features. The
//! compiler does not check that; the list of features stands above the list of methods.
//!
//! Beside this file only `row` holds `unsafe`: the statement that a row of zeros is a row.

use std::arch::x86_64::{
    __m256, __m256d, __m256i, __m512i, __mmask16, __mmask8, _mm_prefetch, _MM_HINT_T0, _MM_HINT_T1,
};

/// Work that is compiled once for each token; `call` must be inlined.
pub(super) trait Work {
    type Output;
    fn call(self) -> Self::Output;
}

/// Defines a token: its features, and its intrinsics under their own names, each with the types of
/// its operands.
macro_rules! token {
    (
        $(#[doc = $doc:literal])*
        $token:ident has $($feature:tt),+;
        $(fn $name:ident $(<const $number:ident: $kind:ty>)? ($($operand:ident: $type:ty),*) -> $out:ty;)*
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $token(());

        impl $token {
            /// The token, if this processor has the instructions.
            pub(super) fn new() -> Option<$token> {
                let has = $(std::arch::is_x86_feature_detected!($feature))&&+;
                has.then_some($token(()))
            }

            /// Calls `work`, compiled for these instructions.
            #[inline(always)]
            pub(super) fn run<W: Work>(self, work: W) -> W::Output {
                $(#[target_feature(enable = $feature)])+
                #[inline]
                fn compiled<W: Work>(work: W) -> W::Output {
                    work.call()
                }
                // SAFETY: the token proves that the processor has the instructions.
                unsafe { compiled(work) }
            }

            /// Prefetches the host's cache line that holds `item`.
            #[inline(always)]
            pub(super) fn prefetch_item<T>(self, item: &T) {
                // SAFETY: the token proves that the processor has the instruction, and it never
                // faults.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) }
            }

            /// Prefetches the host's cache line at `address` into the second level.
            #[inline(always)]
            pub(super) fn prefetch_line(self, address: usize) {
                // SAFETY: the token proves that the processor has the instruction, and it never
                // faults, whatever lies at the address.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::without_provenance(address)) }
            }

            $(
                #[inline(always)]
                pub(super) fn $name $(<const $number: $kind>)? (self, $($operand: $type),*) -> $out {
                    // SAFETY: the token proves that the processor has the instruction.
                    unsafe { std::arch::x86_64::$name $(::<$number>)? ($($operand),*) }
                }
            )*
        }
    };
}

token! {
    /// Proof that the processor has AVX2 and what came with it (x86-64-v3).
    Avx2 has "avx2", "bmi1", "bmi2", "fma", "lzcnt", "popcnt";
    fn _mm256_and_si256(lanes: __m256i, others: __m256i) -> __m256i;
    fn _mm256_blend_epi32<const MASK: i32>(lanes: __m256i, others: __m256i) -> __m256i;
    fn _mm256_blendv_epi8(lanes: __m256i, others: __m256i, mask: __m256i) -> __m256i;
    fn _mm256_cmpeq_epi32(lanes: __m256i, others: __m256i) -> __m256i;
    fn _mm256_cmpeq_epi64(lanes: __m256i, others: __m256i) -> __m256i;
    fn _mm256_cmpgt_epi32(lanes: __m256i, others: __m256i) -> __m256i;
    fn _mm256_cmpgt_epi64(lanes: __m256i, others: __m256i) -> __m256i;
    fn _mm256_movemask_pd(lanes: __m256d) -> i32;
    fn _mm256_movemask_ps(lanes: __m256) -> i32;
    fn _mm256_permute4x64_epi64<const ORDER: i32>(lanes: __m256i) -> __m256i;
    fn _mm256_permutevar8x32_epi32(lanes: __m256i, order: __m256i) -> __m256i;
    fn _mm256_set1_epi32(number: i32) -> __m256i;
    fn _mm256_set1_epi64x(number: i64) -> __m256i;
}

token! {
    /// Proof that the processor has AVX-512 F, BW, CD, DQ and VL, and what x86-64-v3 has.
    Avx512 has "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl",
        "avx2", "bmi1", "bmi2", "fma", "lzcnt", "popcnt";
    fn _kadd_mask16(mask: __mmask16, other: __mmask16) -> __mmask16;
    fn _kadd_mask8(mask: __mmask8, other: __mmask8) -> __mmask8;
    fn _kxor_mask16(mask: __mmask16, other: __mmask16) -> __mmask16;
    fn _kxor_mask8(mask: __mmask8, other: __mmask8) -> __mmask8;
    fn _mm512_add_epi32(lanes: __m512i, others: __m512i) -> __m512i;
    fn _mm512_add_epi64(lanes: __m512i, others: __m512i) -> __m512i;
    fn _mm512_alignr_epi32<const LANES: i32>(upper: __m512i, lower: __m512i) -> __m512i;
    fn _mm512_alignr_epi64<const LANES: i32>(upper: __m512i, lower: __m512i) -> __m512i;
    fn _mm512_and_si512(lanes: __m512i, others: __m512i) -> __m512i;
    fn _mm512_cmpeq_epi32_mask(lanes: __m512i, others: __m512i) -> __mmask16;
    fn _mm512_cmpeq_epi64_mask(lanes: __m512i, others: __m512i) -> __mmask8;
    fn _mm512_cmple_epi32_mask(lanes: __m512i, others: __m512i) -> __mmask16;
    fn _mm512_cmpneq_epi32_mask(lanes: __m512i, others: __m512i) -> __mmask16;
    fn _mm512_cmpneq_epi64_mask(lanes: __m512i, others: __m512i) -> __mmask8;
    fn _mm512_mask_blend_epi32(mask: __mmask16, lanes: __m512i, others: __m512i) -> __m512i;
    fn _mm512_mask_blend_epi64(mask: __mmask8, lanes: __m512i, others: __m512i) -> __m512i;
    fn _mm512_maskz_compress_epi32(mask: __mmask16, lanes: __m512i) -> __m512i;
    fn _mm512_maskz_compress_epi64(mask: __mmask8, lanes: __m512i) -> __m512i;
    fn _mm512_or_si512(lanes: __m512i, others: __m512i) -> __m512i;
    fn _mm512_xor_si512(lanes: __m512i, others: __m512i) -> __m512i;
    fn _mm512_permutex2var_epi32(lanes: __m512i, order: __m512i, others: __m512i) -> __m512i;
    fn _mm512_permutex2var_epi64(lanes: __m512i, order: __m512i, others: __m512i) -> __m512i;
    fn _mm512_permutexvar_epi32(order: __m512i, lanes: __m512i) -> __m512i;
    fn _mm512_set1_epi32(number: i32) -> __m512i;
    fn _mm512_set1_epi64(number: i64) -> __m512i;
    fn _mm512_srli_epi32<const BITS: u32>(lanes: __m512i) -> __m512i;
    fn _mm512_srlv_epi64(lanes: __m512i, bits: __m512i) -> __m512i;
}
