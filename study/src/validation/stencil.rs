//! Stencils over a cube: each element of `b` from neighbours of an element of `a`.
//!
//! Loops k, j, i, with i inside and contiguous; `a` and coefficients are only read, `b` is only
//! written. A piece is a plane of k, a row a row of i. Coefficients that vary are arrays
//! `W[p][k][j][i]` of one allocation.

use super::kernel::{bases, steps, Kernel, Touches, ELEMENT_BYTES};
use present::order::SortRows;

/// A reference to a row of elements around `i`: which array, which row, and from where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reference {
    array: Array,
    /// Planes and rows from the updated element's.
    plane: i64,
    row: i64,
    /// First and last element from `i`.
    left: i64,
    right: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Array {
    /// The array that is read.
    A,
    /// A coefficient.
    W(u64),
}

/// How coefficients vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weights {
    /// They are constants.
    Constant,
    /// One array for all points.
    One,
    /// One array for each distance.
    ByDistance,
    /// One array for each point.
    ByPoint,
}

/// Which neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Along the axes.
    Star,
    /// All of the cube around.
    Box,
}

/// A stencil by its name in the table of points.
struct Form {
    name: &'static str,
    radius: i64,
    shape: Shape,
    weights: Weights,
}

const FORMS: &[Form] = &[
    Form {
        name: "3D/r1/homogeneous/star/constant",
        radius: 1,
        shape: Shape::Star,
        weights: Weights::Constant,
    },
    Form {
        name: "3D/r3/homogeneous/star/constant",
        radius: 3,
        shape: Shape::Star,
        weights: Weights::Constant,
    },
    Form {
        name: "3D/r1/heterogeneous/star/variable",
        radius: 1,
        shape: Shape::Star,
        weights: Weights::ByPoint,
    },
    Form {
        name: "3D/r2/isotropic/star/variable",
        radius: 2,
        shape: Shape::Star,
        weights: Weights::ByDistance,
    },
    Form { name: "3D/r1/homogeneous/box/variable", radius: 1, shape: Shape::Box, weights: Weights::One },
    Form {
        name: "3D/r1/heterogeneous/box/constant",
        radius: 1,
        shape: Shape::Box,
        weights: Weights::Constant,
    },
];

/// A stencil of one size.
pub(super) struct Stencil {
    n: u64,
    radius: u64,
    vector: u64,
    references: Vec<Reference>,
    weights: u64,
    base_a: u64,
    base_b: u64,
    base_w: u64,
}

impl Stencil {
    /// The stencil of that name over a cube of `n` elements a side, if there is one and it has an
    /// inside; a vector has `vector` elements.
    pub(super) fn named(name: &str, n: usize, vector: u64, apart_bytes: u64) -> Option<Stencil> {
        let form = FORMS.iter().find(|form| form.name == name)?;
        let (n, radius) = (n as u64, form.radius as u64);
        (n > 2 * radius).then(|| {
            let weights = match form.weights {
                Weights::Constant => 0,
                Weights::One => 1,
                Weights::ByDistance => radius + 1,
                Weights::ByPoint => 1 + 6 * radius,
            };
            let cube = n.pow(3) * ELEMENT_BYTES;
            let bases = bases(&[cube, cube, weights * cube], apart_bytes);
            let (base_a, base_b, base_w) = (bases[0], bases[1], bases[2]);
            Stencil { n, radius, vector, references: references(form), weights, base_a, base_b, base_w }
        })
    }

    /// The sizes of a cube up to which a cache keeps rows, and planes, from one use to the next.
    ///
    /// Between two uses of a row the loop goes over one row of every reference; between two uses of
    /// a plane, over as many planes of `a` as the stencil is thick, and over one of `b` and of each
    /// coefficient.
    pub(super) fn layers(&self, cache_bytes: u64) -> (f64, f64) {
        let mut rows: Vec<(Array, i64, i64)> =
            self.references.iter().map(|one| (one.array, one.plane, one.row)).collect();
        rows.sort_rows(Ord::cmp);
        rows.dedup();
        let planes = 2 * self.radius + 2 + self.weights;
        let elements = cache_bytes as f64 / ELEMENT_BYTES as f64;
        (elements / (rows.len() + 1) as f64, (elements / planes as f64).sqrt())
    }

    /// The byte of an element of the array that begins at `base`.
    fn at(&self, base: u64, plane: u64, row: u64, column: i64) -> u64 {
        base.wrapping_add_signed(((plane * self.n + row) * self.n) as i64 * 8 + column * 8)
    }
}

/// The references of an update, in the order of its sum.
fn references(form: &Form) -> Vec<Reference> {
    let mut all = Vec::new();
    match form.shape {
        Shape::Star => {
            let centre = Reference { array: Array::A, plane: 0, row: 0, left: 0, right: 0 };
            weigh(&mut all, form.weights, 0, 0);
            all.push(centre);
            let mut number = 1;
            for distance in 1..=form.radius {
                // Neighbours along i, j and k; those along i lie in the centre's line or beside it.
                for (plane, row, column) in [(0, 0, 1), (0, 1, 0), (1, 0, 0)] {
                    for sign in [-1, 1] {
                        weigh(&mut all, form.weights, number, distance as u64);
                        let column = sign * column * distance;
                        let [plane, row] = [plane, row].map(|along| sign * along * distance);
                        all.push(Reference { plane, row, left: column, right: column, ..centre });
                        number += 1;
                    }
                }
            }
        }
        Shape::Box => {
            weigh(&mut all, form.weights, 0, 0);
            for (plane, row) in (-1..=1).flat_map(|plane| (-1..=1).map(move |row| (plane, row))) {
                all.push(Reference { array: Array::A, plane, row, left: -1, right: 1 });
            }
        }
    }
    all
}

/// Adds the coefficient of the point of that number and distance, unless it was read already.
fn weigh(all: &mut Vec<Reference>, weights: Weights, number: u64, distance: u64) {
    let array = match weights {
        Weights::Constant => return,
        Weights::One => Array::W(0),
        Weights::ByDistance => Array::W(distance),
        Weights::ByPoint => Array::W(number),
    };
    if all.iter().all(|reference| reference.array != array) {
        all.push(Reference { array, plane: 0, row: 0, left: 0, right: 0 });
    }
}

impl Kernel for Stencil {
    fn pieces(&self) -> usize {
        (self.n - 2 * self.radius) as usize
    }

    fn rows(&self) -> usize {
        self.pieces()
    }

    fn push(&self, piece: usize, row: usize, touches: &mut Touches) {
        let (plane, row) = (piece as u64 + self.radius, row as u64 + self.radius);
        // The first byte of each reference's row, and of the row that is stored.
        let starts: Vec<(u32, u64, u64)> = (0..)
            .zip(&self.references)
            .map(|(site, reference)| {
                let base = match reference.array {
                    Array::A => self.base_a,
                    Array::W(p) => self.base_w + p * self.n.pow(3) * ELEMENT_BYTES,
                };
                let (plane, row) =
                    (plane.wrapping_add_signed(reference.plane), row.wrapping_add_signed(reference.row));
                let first = self.at(base, plane, row, reference.left);
                (site, first, (reference.right - reference.left) as u64 * ELEMENT_BYTES)
            })
            .collect();
        let stored = self.at(self.base_b, plane, row, 0);
        let site = self.references.len() as u32;
        for (column, end) in steps(self.radius, self.n - self.radius, stored, self.vector) {
            let (from, to) = (column * ELEMENT_BYTES, end * ELEMENT_BYTES - 1);
            for &(site, first, wider) in &starts {
                touches.load(site, first + from, first + to + wider);
            }
            touches.store(site, stored + from, stored + to);
        }
    }

    fn updates(&self) -> u64 {
        (self.n - 2 * self.radius).pow(2)
    }

    fn piece_bytes(&self) -> u64 {
        (2 + self.weights) * self.n.pow(2) * ELEMENT_BYTES
    }

    fn reach(&self) -> usize {
        2 * self.radius as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::tests::shown;
    use super::*;

    #[test]
    fn every_stencil_has_the_references_of_its_name() {
        let counts = |name: &str| {
            let stencil = Stencil::named(name, 10, 4, 0).unwrap();
            let arrays = |of: fn(&Reference) -> bool| stencil.references.iter().filter(|r| of(r)).count();
            (arrays(|r| r.array == Array::A), arrays(|r| r.array != Array::A), stencil.weights)
        };
        assert_eq!(counts("3D/r1/homogeneous/star/constant"), (7, 0, 0));
        assert_eq!(counts("3D/r3/homogeneous/star/constant"), (19, 0, 0));
        assert_eq!(counts("3D/r1/heterogeneous/star/variable"), (7, 7, 7));
        assert_eq!(counts("3D/r2/isotropic/star/variable"), (13, 3, 3));
        // A reference of a box is three neighbours in a row.
        assert_eq!(counts("3D/r1/homogeneous/box/variable"), (9, 1, 1));
        assert_eq!(counts("3D/r1/heterogeneous/box/constant"), (9, 0, 0));
        assert!(Stencil::named("3D/r1/homogeneous/star/constant", 2, 4, 0).is_none());
        assert!(Stencil::named("2D", 10, 4, 0).is_none());
    }

    #[test]
    fn layers_of_a_star_are_six_rows_and_four_planes() {
        let star = Stencil::named("3D/r1/homogeneous/star/constant", 10, 4, 0).unwrap();
        let (rows, planes) = star.layers(48 << 10);
        assert!((rows - 1024.0).abs() < 1e-9, "{rows}");
        assert!((star.layers(32 << 20).1 - 1024.0).abs() < 1e-9, "{planes}");
        let boxed = Stencil::named("3D/r1/homogeneous/box/variable", 10, 4, 0).unwrap();
        assert!(
            (boxed.layers(88 << 10).0 - 1024.0).abs() < 1e-9,
            "nine rows, a coefficient's and the stored"
        );
    }

    #[test]
    fn a_step_touches_the_seven_points_and_the_stored_line() {
        // Rows of 64 elements are eight lines; arrays begin in the middle of a line.
        let stencil = Stencil::named("3D/r1/homogeneous/star/constant", 64, 4, 0).unwrap();
        let mut touches = Touches::default();
        stencil.push(0, 0, &mut touches);
        // Elements 1 to 3, the first step, lie in the line's second half, as their neighbours 0 and
        // 2 do; neighbour 4 lies in the next line.
        let line = |plane: u64, row: u64| stencil.base_a / 64 + (plane * 64 + row) * 8;
        let (centre, stored) = (line(1, 1), stencil.base_b / 64 + (64 + 1) * 8);
        let expected = [
            (centre, false),
            (centre, false),
            (centre, false),
            (centre + 1, false),
            (line(1, 0), false),
            (line(1, 2), false),
            (line(0, 1), false),
            (line(2, 1), false),
            (stored, true),
        ];
        assert_eq!(shown(&touches)[..9], expected);
        let stores = shown(&touches).iter().filter(|(_, stored)| *stored).count();
        assert_eq!(stores, 16, "62 elements from the second on, in vectors of four");
    }
}
