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

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_views_lead_back_and_are_written_through() {
    use lightfoot_matrix::interop::{from_ndarray_mut, to_ndarray, to_ndarray_mut};
    use ndarray::{s, Array2};
    let data: Vec<f64> = (0..60).map(f64::from).collect();
    let view = Strided::new(&data, 5, 4, 2, 11).unwrap();
    let theirs = to_ndarray(view).expect("strides without sign");
    assert!((0..5).all(|i| (0..4).all(|j| theirs[(i, j)] == view.get(i, j))));
    assert!(to_ndarray(Strided::with_origin(&data, 8, 5, 4, -2, 11).unwrap()).is_none());
    let mut array = Array2::<f64>::zeros((9, 14));
    let small = BlockedMatrix::from_fn(4, 7, |i, j| (1 + i * 7 + j) as f64).unwrap();
    small.copy_to(&mut from_ndarray_mut(array.slice_mut(s![1..;2, ..;-2]))).unwrap();
    assert_eq!((array[(1, 13)], array[(3, 11)], array[(1, 12)], array[(0, 13)]), (1.0, 9.0, 0.0, 0.0));
    let mut plain = vec![0.0; 12];
    let mut theirs = to_ndarray_mut(StridedMut::row_major(&mut plain, 3, 4).unwrap()).expect("a view");
    theirs[(1, 2)] = 5.0;
    assert_eq!(plain[6], 5.0);
}

#[cfg(feature = "nalgebra")]
#[test]
fn nalgebra_views_arrive_lead_back_and_are_written_through() {
    use lightfoot_matrix::interop::{from_nalgebra, from_nalgebra_mut, to_nalgebra, to_nalgebra_mut};
    use lightfoot_matrix::Factor;
    use nalgebra::{DMatrix, Matrix3, SMatrix, Vector3};
    let mut array = DMatrix::from_fn(9, 14, |i, j| (100 * i + j) as f64);
    let part = array.view_with_steps((1, 2), (4, 3), (1, 2));
    let matrix = BlockedMatrix::from_strided(from_nalgebra(&part)).unwrap();
    assert_eq!(matrix.to_nalgebra(), part);
    let fixed = SMatrix::<f32, 2, 3>::new(1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    let strided = from_nalgebra(&fixed);
    assert_eq!((strided.rows(), strided.cols(), strided.get(1, 0)), (2, 3, 4.0));
    assert_eq!(to_nalgebra(strided).expect("strides without sign"), fixed);
    let data = [0.0; 9];
    assert!(to_nalgebra(Strided::with_origin(&data, 6, 3, 3, 1, -3).unwrap()).is_none());
    let small = BlockedMatrix::from_fn(4, 3, |_, _| -1.0).unwrap();
    small.copy_to(&mut from_nalgebra_mut(&mut array.view_with_steps_mut((1, 2), (4, 3), (1, 2)))).unwrap();
    assert_eq!((array[(1, 2)], array[(3, 5)], array[(2, 2)], array[(7, 8)]), (-1.0, -1.0, 202.0, -1.0));
    let mut plain = vec![0.0; 12];
    let mut theirs = to_nalgebra_mut(StridedMut::row_major(&mut plain, 3, 4).unwrap()).expect("a view");
    theirs[(1, 2)] = 5.0;
    assert_eq!(plain[6], 5.0);
    // A system in a matrix of theirs, solved in place.
    let mut a = Matrix3::new(4.0, 1.0, 0.0, 1.0, 3.0, 1.0, 0.0, 1.0, 2.0);
    let x = Vector3::new(1.0, -2.0, 3.0);
    let mut b = a * x;
    Factor::new().lu(from_nalgebra_mut(&mut a)).unwrap().solve(from_nalgebra_mut(&mut b)).unwrap();
    assert!((b - x).norm() < 1e-14);
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
    for view in [view, view.transpose(), view.reverse_rows(), view.submatrix(2, 3, 4, 5)] {
        assert_eq!(lightfoot_matrix::interop::to_faer(lightfoot_matrix::interop::from_faer(view)), view);
    }
    let matrix = BlockedMatrix::from_fn(9, 14, |i, j| (i * j) as f64).unwrap();
    assert_eq!(matrix.to_faer()[(3, 5)], 15.0);
    let mut plain = vec![0.0; 9 * 14];
    let mut theirs =
        lightfoot_matrix::interop::to_faer_mut(StridedMut::row_major(&mut plain, 9, 14).unwrap());
    theirs[(1, 2)] = 5.0;
    assert_eq!(plain[16], 5.0);
    let target = faer::MatMut::from_column_major_slice_mut(&mut plain, 9, 14);
    matrix.copy_to(&mut lightfoot_matrix::interop::from_faer_mut(target)).unwrap();
    assert_eq!(plain, matrix.to_col_major());
    let part = array.as_mut().submatrix_mut(2, 3, 4, 5);
    let small = BlockedMatrix::from_fn(4, 5, |_, _| -1.0).unwrap();
    small.copy_to(&mut lightfoot_matrix::interop::from_faer_mut(part)).unwrap();
    assert_eq!((array[(2, 3)], array[(5, 7)], array[(6, 3)], array[(2, 8)]), (-1.0, -1.0, 603.0, 208.0));
}

/// Large matrices are unpacked many panels at a time, and these have an incomplete last panel.
#[test]
fn large_matrices_come_back() {
    fn check<T: Number>(rows: usize, cols: usize) {
        let data: Vec<T> = (0..rows * cols).map(|i| T::from_parts(i as f64, -1.0)).collect();
        let matrix = BlockedMatrix::from_strided(Strided::col_major(&data, rows, cols).unwrap()).unwrap();
        assert!(matrix.to_col_major() == data);
    }
    check::<f32>(4003, 1031);
    check::<f64>(4003, 541);
}
