//! Transposing copies: rows of an array ↔ columns of a panel.
//!
//! **Why this way.** A panel of `p` rows is filled in blocks of `p`×`p`: `p` pieces of `p` adjacent
//! elements are read, transposed in registers, and `p²` adjacent elements written, so that both
//! sides touch whole cache lines. With AVX-512 a block is 8 registers of 8-byte, 16 of 4-byte or 4
//! of 16-byte elements and is transposed by 24, 64 or 8 shuffles: 0.25 to 0.5 cycles for each
//! element. On other processors the loops are compiled as they are. Edges that are narrower than a
//! block are copied element by element.

/// Copies `panel` rows of `cols` adjacent elements to one panel.
///
/// # Safety
/// `cols` elements are readable at `from + i·row_stride` for `i < panel`; `panel·cols` are writable
/// at `to`; no overlap.
pub(crate) unsafe fn to_panel<T: Copy>(
    from: *const T,
    row_stride: isize,
    to: *mut T,
    panel: usize,
    cols: usize,
) {
    let transpose = BlockTranspose::<T>::of(panel);
    let mut col = 0;
    while col + panel <= cols {
        // SAFETY: columns `col..col + panel` of all rows are readable, and that part of the panel
        // is writable.
        unsafe {
            transpose.block(from.wrapping_add(col), row_stride, to.wrapping_add(col * panel), panel as isize)
        };
        col += panel;
    }
    for col in col..cols {
        for i in 0..panel {
            // SAFETY: row `i`, column `col` is readable, and that place of the panel writable.
            unsafe {
                *to.add(col * panel + i) = *from.wrapping_offset(i as isize * row_stride).wrapping_add(col)
            };
        }
    }
}

/// Copies one panel to `panel` rows of `cols` adjacent elements.
///
/// # Safety
/// `panel·cols` elements are readable at `from`; `cols` are writable at `to + i·row_stride` for
/// `i < panel`; no overlap.
pub(crate) unsafe fn from_panel<T: Copy>(
    from: *const T,
    to: *mut T,
    row_stride: isize,
    panel: usize,
    cols: usize,
) {
    let transpose = BlockTranspose::<T>::of(panel);
    let mut col = 0;
    while col + panel <= cols {
        // SAFETY: columns `col..col + panel` of all rows are writable, and that part of the panel
        // is readable.
        unsafe {
            transpose.block(from.wrapping_add(col * panel), panel as isize, to.wrapping_add(col), row_stride)
        };
        col += panel;
    }
    for col in col..cols {
        for i in 0..panel {
            // SAFETY: column `col` of row `i` is writable, and that place of the panel readable.
            unsafe {
                *to.wrapping_offset(i as isize * row_stride).wrapping_add(col) = *from.add(col * panel + i)
            };
        }
    }
}

/// How blocks of `panel` × `panel` are transposed; chosen once per panel or per matrix.
pub(crate) struct BlockTranspose<T> {
    panel: usize,
    method: Method,
    element: std::marker::PhantomData<T>,
}

#[derive(Clone, Copy)]
enum Method {
    /// Element by element, as compiled.
    Plain,
    /// 16 × 16 elements of 4 bytes.
    #[cfg(target_arch = "x86_64")]
    Four,
    /// 8 × 8 elements of 8 bytes.
    #[cfg(target_arch = "x86_64")]
    Eight,
    /// 4 × 4 elements of 16 bytes.
    #[cfg(target_arch = "x86_64")]
    Sixteen,
}

impl<T: Copy> BlockTranspose<T> {
    /// The fastest way on this processor.
    pub(crate) fn of(panel: usize) -> BlockTranspose<T> {
        let method = match (size_of::<T>(), panel) {
            #[cfg(target_arch = "x86_64")]
            (4, 16) if is_x86_feature_detected!("avx512f") => Method::Four,
            #[cfg(target_arch = "x86_64")]
            (8, 8) if is_x86_feature_detected!("avx512f") => Method::Eight,
            #[cfg(target_arch = "x86_64")]
            (16, 4) if is_x86_feature_detected!("avx512f") => Method::Sixteen,
            _ => Method::Plain,
        };
        BlockTranspose { panel, method, element: std::marker::PhantomData }
    }

    /// Transposes a block: row `i`, at `from + i·from_stride`, becomes column `i`, whose element
    /// `j` is at `to + j·to_stride + i`.
    ///
    /// # Safety
    /// `panel` elements are readable at each of `panel` rows of `from`, and writable at each of
    /// `to`; no overlap.
    #[inline]
    pub(crate) unsafe fn block(&self, from: *const T, from_stride: isize, to: *mut T, to_stride: isize) {
        // SAFETY: the caller's promise; `of` found the features, and sizes and panel fit the
        // method.
        unsafe {
            match self.method {
                Method::Plain => plain(from, from_stride, to, to_stride, self.panel),
                #[cfg(target_arch = "x86_64")]
                Method::Four => vector::four(from.cast(), from_stride, to.cast(), to_stride),
                #[cfg(target_arch = "x86_64")]
                Method::Eight => vector::eight(from.cast(), from_stride, to.cast(), to_stride),
                #[cfg(target_arch = "x86_64")]
                Method::Sixteen => vector::sixteen(from.cast(), 2 * from_stride, to.cast(), 2 * to_stride),
            }
        }
    }
}

/// # Safety
/// The requirements of [`BlockTranspose::block`].
unsafe fn plain<T: Copy>(from: *const T, from_stride: isize, to: *mut T, to_stride: isize, panel: usize) {
    for j in 0..panel {
        for i in 0..panel {
            let source = from.wrapping_offset(i as isize * from_stride).wrapping_add(j);
            // SAFETY: element `j` of row `i` is readable, and element `i` of the transposed row `j`
            // is writable.
            unsafe { *to.wrapping_offset(j as isize * to_stride).wrapping_add(i) = *source };
        }
    }
}

/// Blocks in 512-bit registers. Bits are moved, never interpreted: NaN payloads survive.
#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::*;

    /// Transposes 8 × 8 elements of 8 bytes; strides are in elements.
    ///
    /// # Safety
    /// The requirements of [`super::BlockTranspose::block`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn eight(from: *const i64, from_stride: isize, to: *mut i64, to_stride: isize) {
        let mut r = [_mm512_setzero_si512(); 8];
        for (i, r) in r.iter_mut().enumerate() {
            // SAFETY: row `i` has eight readable elements.
            *r = unsafe { _mm512_loadu_si512(from.wrapping_offset(i as isize * from_stride).cast()) };
        }
        // Joins pairs of rows, then quarters across them: 0 2 | 4 6 and so on.
        let mut s = r;
        for i in 0..4 {
            s[2 * i] = _mm512_unpacklo_epi64(r[2 * i], r[2 * i + 1]);
            s[2 * i + 1] = _mm512_unpackhi_epi64(r[2 * i], r[2 * i + 1]);
        }
        let mut t = s;
        for i in 0..2 {
            t[i] = _mm512_shuffle_i64x2::<0x88>(s[i], s[i + 2]);
            t[i + 2] = _mm512_shuffle_i64x2::<0xdd>(s[i], s[i + 2]);
            t[i + 4] = _mm512_shuffle_i64x2::<0x88>(s[i + 4], s[i + 6]);
            t[i + 6] = _mm512_shuffle_i64x2::<0xdd>(s[i + 4], s[i + 6]);
        }
        // `t[i]` has columns i and i + 4, `t[i + 2]` columns i + 2 and i + 6, each of rows 0 to 3
        // and then 4 to 7.
        for i in 0..4 {
            let low = _mm512_shuffle_i64x2::<0x88>(t[i], t[i + 4]);
            let high = _mm512_shuffle_i64x2::<0xdd>(t[i], t[i + 4]);
            // SAFETY: transposed rows `i` and `i + 4` have eight writable elements.
            unsafe {
                _mm512_storeu_si512(to.wrapping_offset(i as isize * to_stride).cast(), low);
                _mm512_storeu_si512(to.wrapping_offset((i + 4) as isize * to_stride).cast(), high);
            }
        }
    }

    /// Transposes 4 × 4 elements of 16 bytes; strides are in units of 8 bytes.
    ///
    /// # Safety
    /// The requirements of [`super::BlockTranspose::block`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn sixteen(from: *const i64, from_stride: isize, to: *mut i64, to_stride: isize) {
        let mut r = [_mm512_setzero_si512(); 4];
        for (i, r) in r.iter_mut().enumerate() {
            // SAFETY: row `i` has four readable elements.
            *r = unsafe { _mm512_loadu_si512(from.wrapping_offset(i as isize * from_stride).cast()) };
        }
        let even = [_mm512_shuffle_i64x2::<0x88>(r[0], r[1]), _mm512_shuffle_i64x2::<0x88>(r[2], r[3])];
        let odd = [_mm512_shuffle_i64x2::<0xdd>(r[0], r[1]), _mm512_shuffle_i64x2::<0xdd>(r[2], r[3])];
        let rows = [
            _mm512_shuffle_i64x2::<0x88>(even[0], even[1]),
            _mm512_shuffle_i64x2::<0x88>(odd[0], odd[1]),
            _mm512_shuffle_i64x2::<0xdd>(even[0], even[1]),
            _mm512_shuffle_i64x2::<0xdd>(odd[0], odd[1]),
        ];
        for (i, row) in rows.into_iter().enumerate() {
            // SAFETY: transposed row `i` has four writable elements.
            unsafe { _mm512_storeu_si512(to.wrapping_offset(i as isize * to_stride).cast(), row) };
        }
    }

    /// Transposes 16 × 16 elements of 4 bytes; strides are in elements.
    ///
    /// # Safety
    /// The requirements of [`super::BlockTranspose::block`].
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn four(from: *const i32, from_stride: isize, to: *mut i32, to_stride: isize) {
        let mut r = [_mm512_setzero_si512(); 16];
        for (i, r) in r.iter_mut().enumerate() {
            // SAFETY: row `i` has sixteen readable elements.
            *r = unsafe { _mm512_loadu_si512(from.wrapping_offset(i as isize * from_stride).cast()) };
        }
        // Within 128-bit lanes, rows are joined in groups of four: `c[4g + q]` holds columns q, q +
        // 4, q + 8 and q + 12.
        let mut c = r;
        for g in 0..4 {
            let rows = &r[4 * g..4 * g + 4];
            let (a, b) = (_mm512_unpacklo_epi32(rows[0], rows[1]), _mm512_unpackhi_epi32(rows[0], rows[1]));
            let (d, e) = (_mm512_unpacklo_epi32(rows[2], rows[3]), _mm512_unpackhi_epi32(rows[2], rows[3]));
            c[4 * g] = _mm512_unpacklo_epi64(a, d);
            c[4 * g + 1] = _mm512_unpackhi_epi64(a, d);
            c[4 * g + 2] = _mm512_unpacklo_epi64(b, e);
            c[4 * g + 3] = _mm512_unpackhi_epi64(b, e);
        }
        for q in 0..4 {
            let even = [
                _mm512_shuffle_i32x4::<0x88>(c[q], c[4 + q]),
                _mm512_shuffle_i32x4::<0x88>(c[8 + q], c[12 + q]),
            ];
            let odd = [
                _mm512_shuffle_i32x4::<0xdd>(c[q], c[4 + q]),
                _mm512_shuffle_i32x4::<0xdd>(c[8 + q], c[12 + q]),
            ];
            let columns = [
                _mm512_shuffle_i32x4::<0x88>(even[0], even[1]),
                _mm512_shuffle_i32x4::<0x88>(odd[0], odd[1]),
                _mm512_shuffle_i32x4::<0xdd>(even[0], even[1]),
                _mm512_shuffle_i32x4::<0xdd>(odd[0], odd[1]),
            ];
            for (i, column) in columns.into_iter().enumerate() {
                let row = (q + 4 * i) as isize;
                // SAFETY: the transposed row has sixteen writable elements.
                unsafe { _mm512_storeu_si512(to.wrapping_offset(row * to_stride).cast(), column) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy + PartialEq + std::fmt::Debug + From<u16>>(panel: usize) {
        for cols in [1, panel - 1, panel, 3 * panel + 2] {
            let stride = cols + 3;
            let rows: Vec<T> = (0..panel * stride).map(|v| T::from(v as u16)).collect();
            let mut transposed = vec![T::from(0); panel * cols];
            // SAFETY: `panel` rows of `stride` ≥ `cols` elements, and a panel of `cols` columns.
            unsafe { to_panel(rows.as_ptr(), stride as isize, transposed.as_mut_ptr(), panel, cols) };
            for i in 0..panel {
                for j in 0..cols {
                    assert_eq!(transposed[j * panel + i], rows[i * stride + j], "{panel} {cols} ({i}, {j})");
                }
            }
            let mut back = rows.clone();
            back.fill(T::from(0));
            // SAFETY: a panel of `cols` columns, and `panel` rows of `stride` ≥ `cols` elements.
            unsafe { from_panel(transposed.as_ptr(), back.as_mut_ptr(), stride as isize, panel, cols) };
            assert!((0..panel).all(|i| back[i * stride..][..cols] == rows[i * stride..][..cols]));
        }
    }

    #[test]
    fn panels_hold_the_rows_transposed() {
        for panel in [2, 4, 8, 16] {
            check::<f32>(panel);
            check::<f64>(panel);
            check::<u128>(panel);
        }
    }
}
