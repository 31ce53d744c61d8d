//! AVX-512: 24×8 in double precision, 48×8 in single; three panels of one 512-bit register each.
//!
//! **Shapes.** 3 × 8 accumulators, two sets of three registers of `A`, two broadcasts of `B`: 32
//! registers. **Cost.** 24 FMA, 3 vector loads and 8 broadcasts per step of `k`: 12 cycles on two
//! FMA ports. Broadcasts are separate instructions: as operands of FMA instructions each would take
//! three load slots. **Why assembly.** The loop over `k` is written out so that registers of `A`
//! and `B` alternate and the order of the multiplications is fixed, which is 1 to 2 % faster than
//! compiled intrinsics. The code around it uses intrinsics, and so do tiles of fewer columns and of
//! a single panel, which are bound by loads anyway. Those loops count indices: iterators over
//! register arrays were not always inlined, and an edge then cost more than the rest of the
//! product. **Prefetch.** The tile of `C` at the start, and one line of the next panels (`next`)
//! per four steps.

use super::direct_avx512;
use super::factor::FactorSet;
use super::instruction_set::{Kernel, RealKernel};
use super::microkernel::{MicroKernel, MicrokernelArguments, Reach};
use super::thin_avx512;
use std::arch::asm;
use std::arch::x86_64::*;

pub(super) const KERNEL: Kernel = Kernel {
    name: "avx512",
    is_available: || is_x86_feature_detected!("avx512f"),
    factor: FactorSet::Avx512,
    f32: RealKernel {
        panel: 16,
        columns: 8,
        run: &[single::ONE, single::TWO, single::THREE],
        tall: single::TALL,
        direct: direct_avx512::single::KERNELS,
        thin: Some(thin_avx512::rows),
    },
    f64: RealKernel {
        panel: 8,
        columns: 8,
        run: &[double::ONE, double::TWO, double::THREE],
        tall: double::TALL,
        direct: direct_avx512::double::KERNELS,
        thin: None,
    },
};

/// A fused multiply-add: accumulator `c` += `a` · `b`.
macro_rules! fma {
    ($p:literal, $c:literal, $a:literal, $b:literal) => {
        concat!("vfmadd231", $p, " zmm", $c, ", zmm", $a, ", zmm", $b, "\n")
    };
}

/// Broadcast of a number of `B`; column 4 lies at `{b4}`.
macro_rules! broadcast {
    ($s:literal, $at:expr, $b:literal) => {
        concat!("vbroadcast", $s, " zmm", $b, ", [", $at, "]\n")
    };
}

/// Loads a column of a panel of `A`.
macro_rules! load {
    ($p:literal, $a:literal, $at:expr) => {
        concat!("vmovu", $p, " zmm", $a, ", [", $at, "]\n")
    };
}

/// Column `j` of `C` with three panels.
macro_rules! column3 {
    ($p:literal $s:literal, $at:expr, $b:literal, $c0:literal $c1:literal $c2:literal,
     $a0:literal $a1:literal $a2:literal) => {
        concat!(
            broadcast!($s, $at, $b),
            fma!($p, $c0, $a0, $b),
            fma!($p, $c1, $a1, $b),
            fma!($p, $c2, $a2, $b)
        )
    };
}

/// Column `j` of `C` with two panels.
macro_rules! column2 {
    ($p:literal $s:literal, $at:expr, $b:literal, $c0:literal $c1:literal, $a0:literal $a1:literal) => {
        concat!(broadcast!($s, $at, $b), fma!($p, $c0, $a0, $b), fma!($p, $c1, $a1, $b))
    };
}

/// One step of `k` with three panels, through registers `a0`, `a1`, `a2`.
macro_rules! step3 {
    ($p:literal $s:literal, $a0:literal $a1:literal $a2:literal) => {
        concat!(
            load!($p, $a0, "{a}"),
            load!($p, $a1, "{a} + {panel}"),
            load!($p, $a2, "{a} + 2*{panel}"),
            "add {a}, {a_step}\n",
            column3!($p $s, "{b}", "6", "8" "9" "10", $a0 $a1 $a2),
            column3!($p $s, "{b} + {column}", "7", "11" "12" "13", $a0 $a1 $a2),
            column3!($p $s, "{b} + 2*{column}", "6", "14" "15" "16", $a0 $a1 $a2),
            column3!($p $s, "{b} + {column3}", "7", "17" "18" "19", $a0 $a1 $a2),
            "add {b}, {b_step}\n",
            "prefetcht0 [{b} + 4*{b_step}]\n",
            column3!($p $s, "{b4}", "6", "20" "21" "22", $a0 $a1 $a2),
            column3!($p $s, "{b4} + {column}", "7", "23" "24" "25", $a0 $a1 $a2),
            column3!($p $s, "{b4} + 2*{column}", "6", "26" "27" "28", $a0 $a1 $a2),
            column3!($p $s, "{b4} + {column3}", "7", "29" "30" "31", $a0 $a1 $a2),
            "add {b4}, {b_step}\n"
        )
    };
}

/// One step of `k` with two panels.
macro_rules! step2 {
    ($p:literal $s:literal, $a0:literal $a1:literal) => {
        concat!(
            load!($p, $a0, "{a}"),
            load!($p, $a1, "{a} + {panel}"),
            "add {a}, {a_step}\n",
            column2!($p $s, "{b}", "6", "8" "9", $a0 $a1),
            column2!($p $s, "{b} + {column}", "7", "10" "11", $a0 $a1),
            column2!($p $s, "{b} + 2*{column}", "6", "12" "13", $a0 $a1),
            column2!($p $s, "{b} + {column3}", "7", "14" "15", $a0 $a1),
            "add {b}, {b_step}\n",
            "prefetcht0 [{b} + 4*{b_step}]\n",
            column2!($p $s, "{b4}", "6", "16" "17", $a0 $a1),
            column2!($p $s, "{b4} + {column}", "7", "18" "19", $a0 $a1),
            column2!($p $s, "{b4} + 2*{column}", "6", "20" "21", $a0 $a1),
            column2!($p $s, "{b4} + {column3}", "7", "22" "23", $a0 $a1),
            "add {b4}, {b_step}\n"
        )
    };
}

/// Step `$k` of an iteration with three panels, both operands in panels: columns one register
/// apart, numbers of `B` `$bytes` apart.
macro_rules! packed3 {
    ($p:literal $s:literal $bytes:literal, $k:literal, $a0:literal $a1:literal $a2:literal) => {
        concat!(
            load!($p, $a0, concat!("{a} + 64*", $k)),
            load!($p, $a1, concat!("{a} + {panel} + 64*", $k)),
            load!($p, $a2, concat!("{a} + 2*{panel} + 64*", $k)),
            column3!($p $s, concat!("{b} + 64*", $k), "6", "8" "9" "10", $a0 $a1 $a2),
            column3!($p $s, concat!("{b} + 64*", $k, " + ", $bytes), "7", "11" "12" "13", $a0 $a1 $a2),
            column3!($p $s, concat!("{b} + 64*", $k, " + 2*", $bytes), "6", "14" "15" "16", $a0 $a1 $a2),
            column3!($p $s, concat!("{b} + 64*", $k, " + 3*", $bytes), "7", "17" "18" "19", $a0 $a1 $a2),
            column3!($p $s, concat!("{b} + 64*", $k, " + 4*", $bytes), "6", "20" "21" "22", $a0 $a1 $a2),
            column3!($p $s, concat!("{b} + 64*", $k, " + 5*", $bytes), "7", "23" "24" "25", $a0 $a1 $a2),
            column3!($p $s, concat!("{b} + 64*", $k, " + 6*", $bytes), "6", "26" "27" "28", $a0 $a1 $a2),
            column3!($p $s, concat!("{b} + 64*", $k, " + 7*", $bytes), "7", "29" "30" "31", $a0 $a1 $a2),
        )
    };
}

/// Step `$k` of an iteration with two panels, both operands in panels.
macro_rules! packed2 {
    ($p:literal $s:literal $bytes:literal, $k:literal, $a0:literal $a1:literal) => {
        concat!(
            load!($p, $a0, concat!("{a} + 64*", $k)),
            load!($p, $a1, concat!("{a} + {panel} + 64*", $k)),
            column2!($p $s, concat!("{b} + 64*", $k), "6", "8" "9", $a0 $a1),
            column2!($p $s, concat!("{b} + 64*", $k, " + ", $bytes), "7", "10" "11", $a0 $a1),
            column2!($p $s, concat!("{b} + 64*", $k, " + 2*", $bytes), "6", "12" "13", $a0 $a1),
            column2!($p $s, concat!("{b} + 64*", $k, " + 3*", $bytes), "7", "14" "15", $a0 $a1),
            column2!($p $s, concat!("{b} + 64*", $k, " + 4*", $bytes), "6", "16" "17", $a0 $a1),
            column2!($p $s, concat!("{b} + 64*", $k, " + 5*", $bytes), "7", "18" "19", $a0 $a1),
            column2!($p $s, concat!("{b} + 64*", $k, " + 6*", $bytes), "6", "20" "21", $a0 $a1),
            column2!($p $s, concat!("{b} + 64*", $k, " + 7*", $bytes), "7", "22" "23", $a0 $a1),
        )
    };
}

/// `{iterations}` iterations of four steps.
macro_rules! iterations {
    ($($step:expr),*) => {
        concat!(
            ".p2align 6\n2:\n",
            $($step,)*
            "prefetcht1 [{next}]\nadd {next}, {ahead}\ndec {iterations}\njnz 2b"
        )
    };
}

/// A loop with two panels: its text and its own operands.
macro_rules! loop2 {
    ($micro:ident, $c:ident, $iterations:ident, $text:expr, $($own:tt)*) => {{
        let (next, ahead) = ($micro.next_line(), $micro.ahead_bytes());
        asm!(
            $text,
            iterations = inout(reg) $iterations => _, next = inout(reg) next => _, ahead = in(reg) ahead,
            a = inout(reg) $micro.a => _, panel = in(reg) $micro.a_panel * BYTES, b = inout(reg) $micro.b => _, $($own)*
            out("zmm0") _, out("zmm1") _, out("zmm3") _, out("zmm4") _, out("zmm6") _, out("zmm7") _,
            inout("zmm8") $c[0][0], inout("zmm9") $c[0][1], inout("zmm10") $c[1][0],
            inout("zmm11") $c[1][1], inout("zmm12") $c[2][0], inout("zmm13") $c[2][1],
            inout("zmm14") $c[3][0], inout("zmm15") $c[3][1], inout("zmm16") $c[4][0],
            inout("zmm17") $c[4][1], inout("zmm18") $c[5][0], inout("zmm19") $c[5][1],
            inout("zmm20") $c[6][0], inout("zmm21") $c[6][1], inout("zmm22") $c[7][0],
            inout("zmm23") $c[7][1],
            options(nostack, readonly),
        )
    }};
}

/// A loop with three panels.
macro_rules! loop3 {
    ($micro:ident, $c:ident, $iterations:ident, $text:expr, $($own:tt)*) => {{
        let (next, ahead) = ($micro.next_line(), $micro.ahead_bytes());
        asm!(
            $text,
            iterations = inout(reg) $iterations => _, next = inout(reg) next => _, ahead = in(reg) ahead,
            a = inout(reg) $micro.a => _, panel = in(reg) $micro.a_panel * BYTES, b = inout(reg) $micro.b => _, $($own)*
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _,
            out("zmm6") _, out("zmm7") _,
            inout("zmm8") $c[0][0], inout("zmm9") $c[0][1], inout("zmm10") $c[0][2],
            inout("zmm11") $c[1][0], inout("zmm12") $c[1][1], inout("zmm13") $c[1][2],
            inout("zmm14") $c[2][0], inout("zmm15") $c[2][1], inout("zmm16") $c[2][2],
            inout("zmm17") $c[3][0], inout("zmm18") $c[3][1], inout("zmm19") $c[3][2],
            inout("zmm20") $c[4][0], inout("zmm21") $c[4][1], inout("zmm22") $c[4][2],
            inout("zmm23") $c[5][0], inout("zmm24") $c[5][1], inout("zmm25") $c[5][2],
            inout("zmm26") $c[6][0], inout("zmm27") $c[6][1], inout("zmm28") $c[6][2],
            inout("zmm29") $c[7][0], inout("zmm30") $c[7][1], inout("zmm31") $c[7][2],
            options(nostack, readonly),
        )
    }};
}

impl<T> MicrokernelArguments<T> {
    /// The line that the loop over `k` prefetches. If the operands are near, it is one that is in
    /// the cache already.
    #[inline(always)]
    fn next_line(&self) -> *const T {
        if self.reach == Reach::Near {
            self.b
        } else {
            self.next
        }
    }

    /// Bytes from one prefetched line to the next.
    #[inline(always)]
    fn ahead_bytes(&self) -> isize {
        if self.reach == Reach::Near {
            0
        } else {
            self.ahead
        }
    }
}

macro_rules! real {
    ($module:ident, $real:ty, $vector:ty, $panel:literal, $p:literal $s:literal $bytes:literal,
     $load:ident, $store:ident, $set:ident, $zero:ident, $fma:ident, $mul:ident, $mask:ty, $masked_load:ident, $masked_store:ident) => {
        mod $module {
            use super::*;

            type Call = MicroKernel<$real>;
            pub(super) const ONE: &[Call] = &[
                edge::<1, 1>, edge::<1, 2>, edge::<1, 3>, edge::<1, 4>, edge::<1, 5>, edge::<1, 6>, edge::<1, 7>, edge::<1, 8>,
            ];
            pub(super) const TWO: &[Call] =
                &[edge::<2, 1>, edge::<2, 2>, edge::<2, 3>, edge::<2, 4>, edge::<2, 5>, edge::<2, 6>, edge::<2, 7>, two];
            pub(super) const THREE: &[Call] =
                &[edge::<3, 1>, edge::<3, 2>, edge::<3, 3>, edge::<3, 4>, edge::<3, 5>, edge::<3, 6>, edge::<3, 7>, three];

            pub(super) const TALL: &[Call] = &[
                edge::<1, 1>, edge::<2, 1>, edge::<3, 1>, edge::<4, 1>, edge::<5, 1>, edge::<6, 1>, edge::<7, 1>, edge::<8, 1>,
            ];

            /// Accumulators of a register tile of P panels and C columns: column, panel.
            type Tile<const P: usize, const C: usize> = [[$vector; P]; C];
            const BYTES: isize = size_of::<$real>() as isize;

            /// # Safety
            /// The requirements of [`MicroKernel`], with `P` panels and `C` columns.
            #[target_feature(enable = "avx512f")]
            unsafe fn edge<const P: usize, const C: usize>(micro: &MicrokernelArguments<$real>) {
                // SAFETY: the caller's promise.
                unsafe {
                    let mut tile = [[$zero(); P]; C];
                    fetch::<P, C>(micro);
                    steps::<P, C>(micro, 0, &mut tile);
                    store::<P, C>(micro, &tile);
                }
            }

            /// # Safety
            /// The requirements of [`MicroKernel`], with two panels and eight columns.
            #[target_feature(enable = "avx512f")]
            unsafe fn two(micro: &MicrokernelArguments<$real>) {
                // The product is summed in registers from zero. C is touched once, at the end.
                let mut c = [[$zero(); 2]; 8];
                let iterations = micro.k / 4;
                fetch::<2, 8>(micro);
                // SAFETY: the caller's promise; the loops read the first 4·iterations ≤ k columns.
                unsafe {
                    // If both operands are in panels, all offsets are constants and two pointers
                    // advance.
                    if iterations > 0 && is_packed(micro) {
                        loop2!(
                            micro, c, iterations,
                            iterations!(
                                packed2!($p $s $bytes, "0", "0" "1"), packed2!($p $s $bytes, "1", "3" "4"),
                                packed2!($p $s $bytes, "2", "0" "1"), packed2!($p $s $bytes, "3", "3" "4"),
                                "add {a}, 256\nadd {b}, 256\n"
                            ),
                        );
                    // Strides of any size: columns 0 to 3 are reached from `b`, columns 4 to 7 from
                    // `b4`.
                    } else if iterations > 0 {
                        loop2!(
                            micro, c, iterations,
                            iterations!(
                                step2!($p $s, "0" "1"), step2!($p $s, "3" "4"),
                                step2!($p $s, "0" "1"), step2!($p $s, "3" "4")
                            ),
                            b4 = inout(reg) micro.b.wrapping_offset(4 * micro.b_column) => _,
                            a_step = in(reg) micro.a_step * BYTES, b_step = in(reg) micro.b_step * BYTES,
                            column = in(reg) micro.b_column * BYTES, column3 = in(reg) 3 * micro.b_column * BYTES,
                        );
                    }
                    // The steps that are left after iterations of four.
                    steps::<2, 8>(micro, 4 * iterations, &mut c);
                    store::<2, 8>(micro, &c);
                }
            }

            /// # Safety
            /// The requirements of [`MicroKernel`], with three panels and eight columns.
            #[target_feature(enable = "avx512f")]
            unsafe fn three(micro: &MicrokernelArguments<$real>) {
                // The product is summed in registers from zero. C is touched once, at the end.
                let mut c = [[$zero(); 3]; 8];
                let iterations = micro.k / 4;
                fetch::<3, 8>(micro);
                // SAFETY: the caller's promise; the loops read the first 4·iterations ≤ k columns.
                unsafe {
                    if iterations > 0 && is_packed(micro) {
                        loop3!(
                            micro, c, iterations,
                            iterations!(
                                packed3!($p $s $bytes, "0", "0" "1" "2"), packed3!($p $s $bytes, "1", "3" "4" "5"),
                                packed3!($p $s $bytes, "2", "0" "1" "2"), packed3!($p $s $bytes, "3", "3" "4" "5"),
                                "add {a}, 256\nadd {b}, 256\n"
                            ),
                        );
                    } else if iterations > 0 {
                        loop3!(
                            micro, c, iterations,
                            iterations!(
                                step3!($p $s, "0" "1" "2"), step3!($p $s, "3" "4" "5"),
                                step3!($p $s, "0" "1" "2"), step3!($p $s, "3" "4" "5")
                            ),
                            b4 = inout(reg) micro.b.wrapping_offset(4 * micro.b_column) => _,
                            a_step = in(reg) micro.a_step * BYTES, b_step = in(reg) micro.b_step * BYTES,
                            column = in(reg) micro.b_column * BYTES, column3 = in(reg) 3 * micro.b_column * BYTES,
                        );
                    }
                    // The steps that are left after iterations of four.
                    steps::<3, 8>(micro, 4 * iterations, &mut c);
                    store::<3, 8>(micro, &c);
                }
            }

            /// Whether both operands are in panels.
            #[inline(always)]
            fn is_packed(micro: &MicrokernelArguments<$real>) -> bool {
                (micro.a_step, micro.b_step, micro.b_column) == ($panel, $panel, 1)
            }

            /// Prefetches the tile of `C` if it is far.
            #[target_feature(enable = "avx512f")]
            #[inline]
            fn fetch<const P: usize, const C: usize>(micro: &MicrokernelArguments<$real>) {
                if micro.reach == Reach::Near {
                    return;
                }
                for j in 0..C {
                    for p in 0..P {
                        _mm_prefetch::<_MM_HINT_T0>(micro.c_at(p, j).cast_const().cast());
                    }
                }
            }

            /// Computes the steps `first..k`.
            ///
            /// # Safety
            /// The requirements of [`MicroKernel`].
            #[target_feature(enable = "avx512f")]
            #[inline]
            unsafe fn steps<const P: usize, const C: usize>(micro: &MicrokernelArguments<$real>, first: usize, tile: &mut Tile<P, C>) {
                // A local copy, which the compiler keeps in registers.
                let mut c = *tile;
                let mut a_at = micro.a.wrapping_offset(first as isize * micro.a_step);
                let mut b_at = micro.b.wrapping_offset(first as isize * micro.b_step);
                for _ in first..micro.k {
                    // One column of each panel is loaded, then each number of B once, for all
                    // panels.
                    let mut a = [$zero(); P];
                    for p in 0..P {
                        // SAFETY: column `k` of panel `p`.
                        a[p] = unsafe { $load(a_at.wrapping_offset(p as isize * micro.a_panel)) };
                    }
                    for j in 0..C {
                        // SAFETY: entry `j` of row `k` of the group.
                        let b = $set(unsafe { *b_at.wrapping_offset(j as isize * micro.b_column) });
                        for p in 0..P {
                            c[j][p] = $fma(a[p], b, c[j][p]);
                        }
                    }
                    a_at = a_at.wrapping_offset(micro.a_step);
                    b_at = b_at.wrapping_offset(micro.b_step);
                }
                *tile = c;
            }

            /// Computes `C ← β·C + α·tile`, for those rows of the last panel that exist.
            ///
            /// # Safety
            /// The requirements of [`MicroKernel`].
            #[target_feature(enable = "avx512f")]
            #[inline]
            unsafe fn store<const P: usize, const C: usize>(micro: &MicrokernelArguments<$real>, tile: &Tile<P, C>) {
                let (alpha, beta) = ($set(micro.alpha), $set(micro.beta));
                // The last panel has only `last_rows` rows: its columns are written under a mask.
                let (whole, mask) = (micro.last_rows == $panel, ((1u32 << micro.last_rows) - 1) as $mask);
                for j in 0..C {
                    for p in 0..P {
                        let (at, sum) = (micro.c_at(p, j), tile[j][p]);
                        // SAFETY: the numbers that `mask` leaves are writable, and initialised
                        // unless `beta` is zero.
                        unsafe {
                            if p + 1 < P || whole {
                                // β = 0 does not read C: NaN in it must not survive.
                                let value = if micro.beta != 0.0 {
                                    $fma(alpha, sum, $mul(beta, $load(at)))
                                } else if micro.alpha == 1.0 {
                                    sum
                                } else {
                                    $mul(alpha, sum)
                                };
                                $store(at, value);
                            } else {
                                let value = if micro.beta != 0.0 {
                                    $fma(alpha, sum, $mul(beta, $masked_load(mask, at)))
                                } else {
                                    $mul(alpha, sum)
                                };
                                $masked_store(at, mask, value);
                            }
                        }
                    }
                }
            }
        }
    };
}

real!(
    double, f64, __m512d, 8, "pd" "sd" "8",
    _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_setzero_pd, _mm512_fmadd_pd, _mm512_mul_pd,
    __mmask8, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd
);
real!(
    single, f32, __m512, 16, "ps" "ss" "4",
    _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_fmadd_ps, _mm512_mul_ps,
    __mmask16, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps
);
