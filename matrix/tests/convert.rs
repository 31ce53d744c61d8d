//! Conversions are exact inverses, for random shapes, tiles and strides, and for foreign views.

mod support;

use lightfoot_matrix::{BlockedMatrix, Kernel, Strided, StridedMut};
use num_complex::Complex;
use proptest::prelude::*;
use support::Number;

/// Row and column stride that keep entries apart, with signs, and the length that they span.
fn layout(rows: usize, cols: usize, fine: usize, gap: usize, order: u8) -> (isize, isize, usize, usize) {
    let (fine, coarse) = (fine, fine * if order & 1 == 0 { rows } else { cols } + gap);
    let (row, col) = if order & 1 == 0 { (fine, coarse) } else { (coarse, fine) };
    let (high, wide) = ((rows - 1) * row, (cols - 1) * col);
    let origin = if order & 2 != 0 { high } else { 0 } + if order & 4 != 0 { wide } else { 0 };
    let sign = |bit: u8| if order & bit != 0 { -1 } else { 1 };
    (row as isize * sign(2), col as isize * sign(4), origin, high + wide + 1)
}

fn round_trip<T: Number>(
    shape: (usize, usize),
    tile: usize,
    fine: usize,
    gap: usize,
    order: u8,
    kernel: usize,
) {
    let (rows, cols) = shape;
    let (row, col, origin, len) = layout(rows, cols, fine, gap, order);
    let data: Vec<T> = (0..len).map(|i| T::from_parts(i as f64 + 1.0, -(i as f64))).collect();
    let kernels: Vec<_> = Kernel::available().collect();
    let mut matrix = BlockedMatrix::<T>::with(kernels[kernel % kernels.len()], rows, cols, tile).unwrap();
    let source = Strided::with_origin(&data, origin, rows, cols, row, col).unwrap();
    matrix.copy_from(source).unwrap();
    assert!((0..rows).all(|i| (0..cols).all(|j| matrix.get(i, j) == source.get(i, j))));
    let mut back = vec![T::from_parts(-5.0, -5.0); len];
    let mut target = StridedMut::with_origin(&mut back, origin, rows, cols, row, col).unwrap();
    matrix.copy_to(&mut target).unwrap();
    let untouched = back.iter().filter(|&&v| v == T::from_parts(-5.0, -5.0)).count();
    assert_eq!(untouched, len - rows * cols, "gaps were written");
    assert!(back.iter().zip(&data).all(|(b, d)| b == d || *b == T::from_parts(-5.0, -5.0)));
    let turned = matrix.transposed().unwrap();
    assert!((0..rows).all(|i| (0..cols).all(|j| turned.get(j, i) == matrix.get(i, j))));
    assert!(turned.transposed().unwrap() == matrix);
    assert_eq!(matrix.iter().count(), rows * cols);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn conversions_are_exact_inverses(
        rows in 1usize..70, cols in 1usize..70, tile in 1usize..80, fine in 1usize..4, gap in 0usize..9,
        order in 0u8..8, kernel in 0usize..4,
    ) {
        round_trip::<f64>((rows, cols), tile, fine, gap, order, kernel);
        round_trip::<f32>((rows, cols), tile, fine, gap, order, kernel);
        round_trip::<Complex<f64>>((rows, cols), tile, fine, gap, order, kernel);
        round_trip::<Complex<f32>>((rows, cols), tile, fine, gap, order, kernel);
    }
}

#[test]
fn tiles_and_iteration_cover_the_matrix_in_storage_order() {
    let matrix = BlockedMatrix::<f64>::with(Kernel::best(), 50, 37, 16).unwrap();
    let offsets: Vec<_> = matrix.iter().map(|(i, j, _)| matrix.layout().offset(i, j)).collect();
    assert!(offsets.windows(2).all(|w| w[0] < w[1]));
    let entries: usize = matrix.iter_tiles().map(|(_, _, tile)| tile.rows() * tile.cols()).sum();
    assert_eq!(entries, 50 * 37);
    assert!(matrix.tile(9, 0).is_err());
}

#[test]
fn shapes_of_copies_must_match() {
    let mut matrix = BlockedMatrix::<f32>::zeros(3, 4).unwrap();
    let error = matrix.copy_from(Strided::row_major(&[0.0; 12], 4, 3).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the shapes of the two matrices differ: 3×4 against 4×3");
}

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_views_arrive_as_they_are() {
    use ndarray::{s, Array2, Axis};
    let array = Array2::from_shape_fn((9, 14), |(i, j)| (100 * i + j) as f64);
    let mut view = array.slice(s![1..;2, ..;3]);
    view.invert_axis(Axis(1));
    for view in [array.view(), array.t(), view] {
        let matrix = BlockedMatrix::from_strided(lightfoot_matrix::interop::from_ndarray(&view)).unwrap();
        assert_eq!(matrix.to_ndarray(), view);
    }
}

#[cfg(feature = "faer")]
#[test]
fn faer_views_arrive_as_they_are() {
    let mut array = faer::Mat::from_fn(9, 14, |i, j| (100 * i + j) as f64);
    let view = array.as_ref();
    for view in [view, view.transpose(), view.reverse_rows(), view.submatrix(2, 3, 4, 5)] {
        let matrix = BlockedMatrix::from_strided(lightfoot_matrix::interop::from_faer(view)).unwrap();
        assert!((0..view.nrows()).all(|i| (0..view.ncols()).all(|j| matrix.get(i, j) == view[(i, j)])));
    }
    let matrix = BlockedMatrix::from_fn(9, 14, |i, j| (i * j) as f64).unwrap();
    let mut plain = vec![0.0; 9 * 14];
    let target = faer::MatMut::from_column_major_slice_mut(&mut plain, 9, 14);
    matrix.copy_to(&mut lightfoot_matrix::interop::from_faer_mut(target)).unwrap();
    assert_eq!(plain, matrix.to_col_major());
    let part = array.as_mut().submatrix_mut(2, 3, 4, 5);
    let small = BlockedMatrix::from_fn(4, 5, |_, _| -1.0).unwrap();
    small.copy_to(&mut lightfoot_matrix::interop::from_faer_mut(part)).unwrap();
    assert_eq!((array[(2, 3)], array[(5, 7)], array[(6, 3)], array[(2, 8)]), (-1.0, -1.0, 603.0, 208.0));
}
