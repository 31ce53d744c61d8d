//! Vector sums of columns, for transposed matrix–vector products: each column of a panel times the
//! panel's part of `x` is added to a vector that belongs to the column.
//!
//! **Why intrinsics.** The compiler takes the parts of `x` apart into numbers of their own and
//! computes entry by entry, at a quarter of the speed. Products and sums are not fused, so the bits
//! are those of [`plainly`], which is the slow twin. **Leaves out** complex numbers and panels that
//! are no vector register, which are added plainly.

use crate::Element;

/// The number of panels that are read side by side.
pub(crate) const PANELS: usize = 4;

/// Adds to `sums` the products of the columns of four panels with their parts of `x`: column `j` of
/// panel `i` is `panels[i][j]`, and belongs to `sums[j]`. All slices of columns have equal lengths.
#[inline]
pub(crate) fn add<T: Element, const P: usize>(
    sums: &mut [[T; P]],
    panels: [&[[T; P]]; PANELS],
    x: &[[T; P]; PANELS],
) {
    assert!(panels.iter().all(|columns| columns.len() == sums.len()));
    #[cfg(target_arch = "x86_64")]
    if T::PARTS == 1 {
        let (len, sums) = (sums.len(), sums.as_mut_ptr());
        let (panels, x) = (panels.map(|columns| columns.as_ptr()), x.as_ptr());
        // SAFETY: all pointers are to `len` columns of `P` numbers, and `x` is to four times `P`;
        // a real element of 8 or 4 bytes is `f64` or `f32`. The processor has the features.
        unsafe {
            match (size_of::<T>(), P) {
                (8, 8) if is_x86_feature_detected!("avx512f") => {
                    return x86::eight_f64(len, sums.cast(), panels.map(<*const [T; P]>::cast), x.cast())
                }
                (4, 16) if is_x86_feature_detected!("avx512f") => {
                    return x86::sixteen_f32(len, sums.cast(), panels.map(<*const [T; P]>::cast), x.cast())
                }
                (8, 4) if is_x86_feature_detected!("avx2") => {
                    return x86::four_f64(len, sums.cast(), panels.map(<*const [T; P]>::cast), x.cast())
                }
                (4, 8) if is_x86_feature_detected!("avx2") => {
                    return x86::eight_f32(len, sums.cast(), panels.map(<*const [T; P]>::cast), x.cast())
                }
                _ => {}
            }
        }
    }
    plainly(sums, panels, x);
}

/// The formula of [`add`], entry by entry.
fn plainly<T: Element, const P: usize>(
    sums: &mut [[T; P]],
    panels: [&[[T; P]]; PANELS],
    x: &[[T; P]; PANELS],
) {
    for (j, sums) in sums.iter_mut().enumerate() {
        for (columns, x) in panels.iter().zip(x) {
            for row in 0..P {
                sums[row] = sums[row] + columns[j][row] * x[row];
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    macro_rules! add {
        ($name:ident, $feature:literal, $real:ty, $lanes:literal, $load:ident, $store:ident, $mul:ident, $add:ident) => {
            /// # Safety
            /// `len` columns are readable in each panel and writable at `sums`, and four columns
            /// are readable at `x`; the sums overlap nothing else. The processor has the feature.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn $name(
                len: usize,
                sums: *mut $real,
                panels: [*const $real; super::PANELS],
                x: *const $real,
            ) {
                // SAFETY: the caller's promise; column `j` starts `j` registers after column 0.
                unsafe {
                    let x = [0, 1, 2, 3].map(|i| $load(x.add(i * $lanes)));
                    for j in 0..len {
                        let mut sum = $load(sums.add(j * $lanes));
                        for i in 0..super::PANELS {
                            sum = $add(sum, $mul($load(panels[i].add(j * $lanes)), x[i]));
                        }
                        $store(sums.add(j * $lanes), sum);
                    }
                }
            }
        };
    }

    add!(eight_f64, "avx512f", f64, 8, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_mul_pd, _mm512_add_pd);
    add!(sixteen_f32, "avx512f", f32, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_mul_ps, _mm512_add_ps);
    add!(four_f64, "avx2", f64, 4, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_mul_pd, _mm256_add_pd);
    add!(eight_f32, "avx2", f32, 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_mul_ps, _mm256_add_ps);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Element, const P: usize>(number: impl Fn(usize) -> T) {
        for len in [0, 1, 7, 33] {
            let columns = |seed: usize| -> Vec<[T; P]> {
                (0..len).map(|j| std::array::from_fn(|row| number(seed + j * P + row))).collect()
            };
            let data = [1, 500, 900, 1300].map(columns);
            let x = [3, 70, 11, 200].map(|seed| std::array::from_fn(|row| number(seed + row)));
            let panels = [0, 1, 2, 3].map(|i| &data[i][..]);
            let (mut fast, mut slow) = (columns(77), columns(77));
            add(&mut fast, panels, &x);
            plainly(&mut slow, panels, &x);
            assert_eq!(fast, slow, "{} in panels of {P}", T::NAME);
        }
    }

    #[test]
    fn vectors_add_the_bits_of_the_formula() {
        let f64_ = |at: usize| 1.0 / (at as f64 + 0.3);
        let f32_ = |at: usize| 1.0 / (at as f32 + 0.3);
        check::<f64, 4>(f64_);
        check::<f64, 8>(f64_);
        check::<f64, 16>(f64_);
        check::<f32, 4>(f32_);
        check::<f32, 8>(f32_);
        check::<f32, 16>(f32_);
        check::<num_complex::Complex<f64>, 4>(|at| num_complex::Complex::new(f64_(at), f64_(at + 9)));
    }
}
