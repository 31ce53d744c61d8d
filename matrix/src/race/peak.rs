//! Measures the processor's peak: a loop of independent fused multiply-adds in registers, on normal
//! numbers, with the widest unit warmed up.

use std::time::Instant;

/// FMA instructions per call and register; about 0.1 ms in all.
const STEPS: usize = 20_000;

/// GFLOP/s of double precision; single is twice that.
pub fn f64_gflops() -> f64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has the feature.
        return unsafe { sample(|steps| avx512(steps), 16 * 8 * 2) };
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the feature.
        return unsafe { sample(|steps| avx2(steps), 12 * 4 * 2) };
    }
    f64::NAN
}

/// GFLOP/s of `loop_` with `flops` per step: the better of two samples after a warm-up.
unsafe fn sample(loop_: impl Fn(usize), flops: usize) -> f64 {
    loop_(STEPS / 4);
    let time = || {
        let start = Instant::now();
        loop_(STEPS);
        start.elapsed().as_secs_f64()
    };
    (STEPS * flops) as f64 / time().min(time()) / 1e9
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(steps: usize) {
    // SAFETY: the instructions use registers only.
    unsafe {
        std::arch::asm!(
            "vpxorq zmm16, zmm16, zmm16", "vpxorq zmm17, zmm17, zmm17",
            "vpxorq zmm0, zmm0, zmm0", "vpxorq zmm1, zmm1, zmm1", "vpxorq zmm2, zmm2, zmm2", "vpxorq zmm3, zmm3, zmm3",
            "vpxorq zmm4, zmm4, zmm4", "vpxorq zmm5, zmm5, zmm5", "vpxorq zmm6, zmm6, zmm6", "vpxorq zmm7, zmm7, zmm7",
            "vpxorq zmm8, zmm8, zmm8", "vpxorq zmm9, zmm9, zmm9", "vpxorq zmm10, zmm10, zmm10",
            "vpxorq zmm11, zmm11, zmm11", "vpxorq zmm12, zmm12, zmm12", "vpxorq zmm13, zmm13, zmm13",
            "vpxorq zmm14, zmm14, zmm14", "vpxorq zmm15, zmm15, zmm15",
            "2:",
            "vfmadd231pd zmm0, zmm16, zmm17", "vfmadd231pd zmm1, zmm16, zmm17", "vfmadd231pd zmm2, zmm16, zmm17",
            "vfmadd231pd zmm3, zmm16, zmm17", "vfmadd231pd zmm4, zmm16, zmm17", "vfmadd231pd zmm5, zmm16, zmm17",
            "vfmadd231pd zmm6, zmm16, zmm17", "vfmadd231pd zmm7, zmm16, zmm17", "vfmadd231pd zmm8, zmm16, zmm17",
            "vfmadd231pd zmm9, zmm16, zmm17", "vfmadd231pd zmm10, zmm16, zmm17", "vfmadd231pd zmm11, zmm16, zmm17",
            "vfmadd231pd zmm12, zmm16, zmm17", "vfmadd231pd zmm13, zmm16, zmm17", "vfmadd231pd zmm14, zmm16, zmm17",
            "vfmadd231pd zmm15, zmm16, zmm17",
            "dec {n}", "jnz 2b",
            n = inout(reg) steps => _,
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _, out("zmm6") _,
            out("zmm7") _, out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _, out("zmm12") _,
            out("zmm13") _, out("zmm14") _, out("zmm15") _, out("zmm16") _, out("zmm17") _,
            options(nostack, nomem),
        );
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(steps: usize) {
    use std::arch::x86_64::*;
    let (a, b) = (_mm256_set1_pd(1.0), _mm256_set1_pd(1e-9));
    let mut sums = [_mm256_setzero_pd(); 12];
    for _ in 0..steps {
        for sum in &mut sums {
            *sum = _mm256_fmadd_pd(std::hint::black_box(a), b, *sum);
        }
    }
    std::hint::black_box(sums);
}
