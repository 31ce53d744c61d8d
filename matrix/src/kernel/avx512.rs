//! AVX-512: 24×8 in double precision, 48×8 in single; three panels of one 512-bit register each.
//!
//! **Shapes.** 3 × 8 accumulators, two sets of three registers of `A`, two broadcasts of `B`: 32 registers.
//! **Cost.** 24 FMA, 3 vector loads and 8 broadcasts per step of `k`: 12 cycles on two FMA ports. Broadcasts
//! are separate instructions: folded into the FMA each would take a load slot of its own, three times over.
//! **Why assembly.** The loop over `k` is written out so that registers of `A` and `B` alternate and the order
//! of the multiplications stays as it is (1 to 2 % over what the compiler makes of intrinsics); what surrounds it is
//! intrinsics. A single panel is bound by loads either way and has no assembly.
//! **Prefetch.** The tile of `C` at entry; one line of what comes next (`next`) per four steps.

use super::{Kernel, Micro, Reach, RealKernel};
use std::arch::asm;
use std::arch::x86_64::*;

pub(super) const KERNEL: Kernel = Kernel {
    name: "avx512",
    is_available: || is_x86_feature_detected!("avx512f"),
    f32: RealKernel {
        panel: 16,
        columns: 8,
        run: &[single::tile1, single::tile2, single::tile3],
        half: &[single::half::<1>, single::half::<2>, single::half::<3>],
    },
    f64: RealKernel {
        panel: 8,
        columns: 8,
        run: &[double::tile1, double::tile2, double::tile3],
        half: &[double::half::<1>, double::half::<2>, double::half::<3>],
    },
};

/// A fused multiply-add: accumulator `c` += `a` · `b`.
macro_rules! fma {
    ($p:literal, $c:literal, $a:literal, $b:literal) => {
        concat!("vfmadd231", $p, " zmm", $c, ", zmm", $a, ", zmm", $b, "\n")
    };
}

/// Broadcast of entry (k + `u`, `j`) of `B`.
macro_rules! broadcast {
    ($s:literal, $e:literal, $u:literal, $j:literal, $b:literal) => {
        concat!("vbroadcast", $s, " zmm", $b, ", [{b} + 64*", $u, " + ", $e, "*", $j, "]\n")
    };
}

/// Load of column k + `u` of a panel of `A`.
macro_rules! load {
    ($p:literal, $a:literal, $panel:literal, $u:literal) => {
        concat!("vmovu", $p, " zmm", $a, ", [", $panel, " + 64*", $u, "]\n")
    };
}

/// Column `j` of `C` with three panels.
macro_rules! column3 {
    ($p:literal $s:literal $e:literal, $u:literal, $j:literal, $b:literal, $c0:literal $c1:literal $c2:literal,
     $a0:literal $a1:literal $a2:literal) => {
        concat!(
            broadcast!($s, $e, $u, $j, $b),
            fma!($p, $c0, $a0, $b),
            fma!($p, $c1, $a1, $b),
            fma!($p, $c2, $a2, $b)
        )
    };
}

/// Column `j` of `C` with two panels.
macro_rules! column2 {
    ($p:literal $s:literal $e:literal, $u:literal, $j:literal, $b:literal, $c0:literal $c1:literal,
     $a0:literal $a1:literal) => {
        concat!(broadcast!($s, $e, $u, $j, $b), fma!($p, $c0, $a0, $b), fma!($p, $c1, $a1, $b))
    };
}

/// One step of `k` with three panels, by way of registers `a0`, `a1`, `a2`.
macro_rules! step3 {
    ($p:literal $s:literal $e:literal, $u:literal, $a0:literal $a1:literal $a2:literal) => {
        concat!(
            load!($p, $a0, "{a}", $u),
            load!($p, $a1, "{a} + {stride}", $u),
            load!($p, $a2, "{a} + 2*{stride}", $u),
            column3!($p $s $e, $u, "0", "6", "8" "9" "10", $a0 $a1 $a2),
            column3!($p $s $e, $u, "1", "7", "11" "12" "13", $a0 $a1 $a2),
            column3!($p $s $e, $u, "2", "6", "14" "15" "16", $a0 $a1 $a2),
            column3!($p $s $e, $u, "3", "7", "17" "18" "19", $a0 $a1 $a2),
            column3!($p $s $e, $u, "4", "6", "20" "21" "22", $a0 $a1 $a2),
            column3!($p $s $e, $u, "5", "7", "23" "24" "25", $a0 $a1 $a2),
            column3!($p $s $e, $u, "6", "6", "26" "27" "28", $a0 $a1 $a2),
            column3!($p $s $e, $u, "7", "7", "29" "30" "31", $a0 $a1 $a2)
        )
    };
}

/// One step of `k` with two panels.
macro_rules! step2 {
    ($p:literal $s:literal $e:literal, $u:literal, $a0:literal $a1:literal) => {
        concat!(
            load!($p, $a0, "{a}", $u),
            load!($p, $a1, "{a} + {stride}", $u),
            column2!($p $s $e, $u, "0", "6", "8" "9", $a0 $a1),
            column2!($p $s $e, $u, "1", "7", "10" "11", $a0 $a1),
            column2!($p $s $e, $u, "2", "6", "12" "13", $a0 $a1),
            column2!($p $s $e, $u, "3", "7", "14" "15", $a0 $a1),
            column2!($p $s $e, $u, "4", "6", "16" "17", $a0 $a1),
            column2!($p $s $e, $u, "5", "7", "18" "19", $a0 $a1),
            column2!($p $s $e, $u, "6", "6", "20" "21", $a0 $a1),
            column2!($p $s $e, $u, "7", "7", "22" "23", $a0 $a1)
        )
    };
}

/// Four steps per turn, `{turns}` turns.
macro_rules! turns {
    ($s0:expr, $s1:expr, $s2:expr, $s3:expr) => {
        concat!(
            ".p2align 6\n2:\n",
            $s0,
            $s1,
            $s2,
            $s3,
            "prefetcht1 [{next}]\nadd {next}, {ahead}\nadd {a}, 256\nadd {b}, 256\ndec {turns}\njnz 2b"
        )
    };
}

macro_rules! real {
    ($module:ident, $real:ty, $vector:ty, $panel:literal, $p:literal $s:literal $e:literal,
     $load:ident, $store:ident, $set:ident, $zero:ident, $fma:ident, $mul:ident) => {
        mod $module {
            use super::*;

            /// Accumulators of a register tile of P panels and C columns: column, panel.
            type Tile<const P: usize, const C: usize> = [[$vector; P]; C];

            /// # Safety
            /// As for [`super::super::MicroKernel`], with one panel.
            #[target_feature(enable = "avx512f")]
            pub(super) unsafe fn tile1(m: &Micro<$real>) {
                // SAFETY: the caller's promise, handed on.
                unsafe {
                    let mut tile = [[$zero(); 1]; 8];
                    let _ = fetch::<1, 8>(m);
                    steps::<1, 8>(m, 0, &mut tile);
                    store::<1, 8>(m, &tile);
                }
            }

            /// # Safety
            /// As for [`super::super::MicroKernel`], with `P` panels and half a column group.
            #[target_feature(enable = "avx512f")]
            pub(super) unsafe fn half<const P: usize>(m: &Micro<$real>) {
                // SAFETY: the caller's promise, handed on.
                unsafe {
                    let mut tile = [[$zero(); P]; 4];
                    let _ = fetch::<P, 4>(m);
                    steps::<P, 4>(m, 0, &mut tile);
                    store::<P, 4>(m, &tile);
                }
            }

            /// # Safety
            /// As for [`super::super::MicroKernel`], with two panels.
            #[target_feature(enable = "avx512f")]
            pub(super) unsafe fn tile2(m: &Micro<$real>) {
                let mut c = [[$zero(); 2]; 8];
                let turns = m.k / 4;
                // SAFETY: the caller's promise; the loop reads the first 4·turns ≤ k columns.
                unsafe {
                    let (next, ahead) = fetch::<2, 8>(m);
                    if turns > 0 {
                        asm!(
                            turns!(
                                step2!($p $s $e, "0", "0" "1"),
                                step2!($p $s $e, "1", "3" "4"),
                                step2!($p $s $e, "2", "0" "1"),
                                step2!($p $s $e, "3", "3" "4")
                            ),
                            turns = inout(reg) turns => _, a = inout(reg) m.a => _, b = inout(reg) m.b => _,
                            next = inout(reg) next => _, ahead = in(reg) ahead, stride = in(reg) m.a_panel * size_of::<$real>(),
                            out("zmm0") _, out("zmm1") _, out("zmm3") _, out("zmm4") _, out("zmm6") _, out("zmm7") _,
                            inout("zmm8") c[0][0], inout("zmm9") c[0][1], inout("zmm10") c[1][0],
                            inout("zmm11") c[1][1], inout("zmm12") c[2][0], inout("zmm13") c[2][1],
                            inout("zmm14") c[3][0], inout("zmm15") c[3][1], inout("zmm16") c[4][0],
                            inout("zmm17") c[4][1], inout("zmm18") c[5][0], inout("zmm19") c[5][1],
                            inout("zmm20") c[6][0], inout("zmm21") c[6][1], inout("zmm22") c[7][0],
                            inout("zmm23") c[7][1],
                            options(nostack, readonly),
                        );
                    }
                    steps::<2, 8>(m, 4 * turns, &mut c);
                    store::<2, 8>(m, &c);
                }
            }

            /// # Safety
            /// As for [`super::super::MicroKernel`], with three panels.
            #[target_feature(enable = "avx512f")]
            pub(super) unsafe fn tile3(m: &Micro<$real>) {
                let mut c = [[$zero(); 3]; 8];
                let turns = m.k / 4;
                // SAFETY: the caller's promise; the loop reads the first 4·turns ≤ k columns.
                unsafe {
                    let (next, ahead) = fetch::<3, 8>(m);
                    if turns > 0 {
                        asm!(
                            turns!(
                                step3!($p $s $e, "0", "0" "1" "2"),
                                step3!($p $s $e, "1", "3" "4" "5"),
                                step3!($p $s $e, "2", "0" "1" "2"),
                                step3!($p $s $e, "3", "3" "4" "5")
                            ),
                            turns = inout(reg) turns => _, a = inout(reg) m.a => _, b = inout(reg) m.b => _,
                            next = inout(reg) next => _, ahead = in(reg) ahead, stride = in(reg) m.a_panel * size_of::<$real>(),
                            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _,
                            out("zmm6") _, out("zmm7") _,
                            inout("zmm8") c[0][0], inout("zmm9") c[0][1], inout("zmm10") c[0][2],
                            inout("zmm11") c[1][0], inout("zmm12") c[1][1], inout("zmm13") c[1][2],
                            inout("zmm14") c[2][0], inout("zmm15") c[2][1], inout("zmm16") c[2][2],
                            inout("zmm17") c[3][0], inout("zmm18") c[3][1], inout("zmm19") c[3][2],
                            inout("zmm20") c[4][0], inout("zmm21") c[4][1], inout("zmm22") c[4][2],
                            inout("zmm23") c[5][0], inout("zmm24") c[5][1], inout("zmm25") c[5][2],
                            inout("zmm26") c[6][0], inout("zmm27") c[6][1], inout("zmm28") c[6][2],
                            inout("zmm29") c[7][0], inout("zmm30") c[7][1], inout("zmm31") c[7][2],
                            options(nostack, readonly),
                        );
                    }
                    steps::<3, 8>(m, 4 * turns, &mut c);
                    store::<3, 8>(m, &c);
                }
            }

            /// Fetches the tile of `C`; what the loop is to fetch, and how far apart, in bytes. Near operands are
            /// not fetched: the loop then touches a line that it has anyway.
            #[target_feature(enable = "avx512f")]
            #[inline]
            fn fetch<const P: usize, const C: usize>(m: &Micro<$real>) -> (*const $real, usize) {
                if m.reach == Reach::Near {
                    return (m.b, 0);
                }
                for j in 0..C {
                    for p in 0..P {
                        let c = m.c.wrapping_add(p * m.c_panel + j * m.c_column);
                        _mm_prefetch::<_MM_HINT_T0>(c.cast());
                    }
                }
                (m.next, 64)
            }

            /// Steps `first..k`.
            ///
            /// # Safety
            /// As for the kernel.
            #[target_feature(enable = "avx512f")]
            #[inline]
            unsafe fn steps<const P: usize, const C: usize>(m: &Micro<$real>, first: usize, tile: &mut Tile<P, C>) {
                let mut c = *tile;
                for k in first..m.k {
                    let mut a = [$zero(); P];
                    for (p, a) in a.iter_mut().enumerate() {
                        // SAFETY: column `k` of panel `p`.
                        *a = unsafe { $load(m.a.add(p * m.a_panel + k * $panel)) };
                    }
                    for (j, c) in c.iter_mut().enumerate() {
                        // SAFETY: entry `j` of row `k` of the group.
                        let b = $set(unsafe { *m.b.add(k * $panel + j) });
                        for (c, &a) in c.iter_mut().zip(&a) {
                            *c = $fma(a, b, *c);
                        }
                    }
                }
                *tile = c;
            }

            /// `C ← β·C + α·tile`.
            ///
            /// # Safety
            /// As for the kernel.
            #[target_feature(enable = "avx512f")]
            #[inline]
            unsafe fn store<const P: usize, const C: usize>(m: &Micro<$real>, tile: &Tile<P, C>) {
                let (alpha, beta) = ($set(m.alpha), $set(m.beta));
                for (j, column) in tile.iter().enumerate() {
                    for (p, &sum) in column.iter().enumerate() {
                        // SAFETY: `panel` numbers are writable, and initialised unless `beta` is zero.
                        unsafe {
                            let c = m.c.add(p * m.c_panel + j * m.c_column);
                            let value = if m.beta != 0.0 {
                                $fma(alpha, sum, $mul(beta, $load(c)))
                            } else if m.alpha == 1.0 {
                                sum
                            } else {
                                $mul(alpha, sum)
                            };
                            $store(c, value);
                        }
                    }
                }
            }
        }
    };
}

real!(
    double, f64, __m512d, 8, "pd" "sd" "8",
    _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_setzero_pd, _mm512_fmadd_pd, _mm512_mul_pd
);
real!(
    single, f32, __m512, 16, "ps" "ss" "4",
    _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_fmadd_ps, _mm512_mul_ps
);
