//! Householder reflectors of a panel, column after column.
//!
//! **Formula.** `H = I − τ·v·vᵀ` with `v[j] = 1` turns column `j` below its diagonal into zeros: `β
//! = −sign(α)·‖(α, x)‖`, `τ = (β − α)/β`, `v = x/(α − β)`. **The idea.** One pass over the panel
//! takes the products of `x` with all columns, itself included: the norm, what the reflector does
//! to the columns right of it, and its products with the reflectors left of it, from which the
//! matrix `T` of the compact form is made. A second pass divides `x` and updates the columns. If
//! the sum of squares leaves the range of safe numbers, `x` is scaled first.
//!
//! Source: LAPACK's `larfg` (the formulas); Schreiber and Van Loan 1989 (the compact form).

use super::lanes::{Float, Lanes};
use super::triangle::MOST_LANES;

/// The columns that one pass takes together.
const TOGETHER: usize = 8;

/// Makes the reflector of column `j` of a panel of `rows`×`cols`, whose columns lie `stride` apart,
/// and applies it to the columns right of it. `dots[i]` becomes the product of the reflectors of
/// columns `i` and `j`, for `i < j`. Returns τ.
///
/// # Safety
/// The processor has the instruction set; the panel is writable; `j < rows`, `j < cols` and `cols`
/// is at most `MOST_LANES`.
#[inline(always)]
pub(super) unsafe fn column<V: Lanes>(
    a: *mut V::Real,
    stride: isize,
    (rows, cols): (usize, usize),
    j: usize,
    dots: &mut [V::Real; MOST_LANES],
) -> V::Real {
    let at = |row: usize, col: usize| a.wrapping_offset(col as isize * stride).wrapping_add(row);
    // SAFETY: all rows and columns below lie in the panel.
    unsafe {
        let x = at(0, j);
        products::<V>(x, a, stride, (j + 1, rows), cols, dots);
        let (alpha, squares) = (*at(j, j), dots[j]);
        let is_safe =
            |value: V::Real| value > V::Real::SAFE_SQUARE && value < V::Real::ONE / V::Real::SAFE_SQUARE;
        let (beta, factor);
        if is_safe(squares) && is_safe(squares + alpha * alpha) {
            let norm = (squares + alpha * alpha).sqrt();
            beta = if alpha < V::Real::ZERO { norm } else { -norm };
            factor = V::Real::ONE / (alpha - beta);
        } else {
            // The column may be zero, tiny or huge: scale it, and take the products again.
            let Some(scaled) = scale(x, (j, rows)) else {
                dots.fill(V::Real::ZERO);
                (0..j).for_each(|c| dots[c] = *at(j, c));
                return V::Real::ZERO;
            };
            beta = scaled;
            factor = V::Real::ONE;
            products::<V>(x, a, stride, (j + 1, rows), cols, dots);
        }
        let tau = (beta - alpha) / beta;
        // Row j of the reflector is 1: its products are the rows themselves.
        for c in (0..cols).filter(|&c| c != j) {
            dots[c] = dots[c] * factor + *at(j, c);
        }
        *at(j, j) = beta;
        let mut factors = [V::Real::ZERO; MOST_LANES];
        for c in j + 1..cols {
            factors[c] = tau * dots[c];
            *at(j, c) = *at(j, c) - factors[c];
        }
        apply::<V>(x, stride, (j + 1, rows), factor, &factors[j + 1..cols]);
        tau
    }
}

/// Turns rows `j + 1..rows` of a column into `v` with slow, safe arithmetic, and returns β; nothing
/// if they are zero.
///
/// # Safety
/// The requirements of [`column`].
unsafe fn scale<R: Float>(x: *mut R, (j, rows): (usize, usize)) -> Option<R> {
    // SAFETY: the rows of the column.
    unsafe {
        let below = |row: usize| x.wrapping_add(row);
        let mut largest = R::ZERO;
        for row in j + 1..rows {
            let size = (*below(row)).abs();
            // NaN is passed on.
            largest = if size <= largest { largest } else { size };
        }
        if largest == R::ZERO {
            return None;
        }
        let alpha = *below(j);
        let unit = if alpha.abs() > largest { alpha.abs() } else { largest };
        let mut squares = (alpha / unit) * (alpha / unit);
        for row in j + 1..rows {
            let value = *below(row) / unit;
            squares = squares + value * value;
        }
        let norm = squares.sqrt();
        let sign = if alpha < R::ZERO { -R::ONE } else { R::ONE };
        // α − β in multiples of the unit.
        let distance = alpha / unit + sign * norm;
        for row in j + 1..rows {
            *below(row) = *below(row) / unit / distance;
        }
        Some(-sign * norm * unit)
    }
}

/// `dots[c]` becomes the product of rows `first..rows` of the column at `x` and of column `c`.
///
/// # Safety
/// The requirements of [`column`].
#[inline(always)]
unsafe fn products<V: Lanes>(
    x: *const V::Real,
    a: *const V::Real,
    stride: isize,
    rows: (usize, usize),
    cols: usize,
    dots: &mut [V::Real; MOST_LANES],
) {
    let mut done = 0;
    // SAFETY: the columns lie in the panel.
    unsafe {
        while done < cols {
            let to = a.wrapping_offset(done as isize * stride);
            if cols - done >= TOGETHER {
                group_products::<V, TOGETHER>(x, to, stride, rows, &mut dots[done..]);
                done += TOGETHER;
            } else {
                group_products::<V, 1>(x, to, stride, rows, &mut dots[done..]);
                done += 1;
            }
        }
    }
}

/// The products with `C` columns.
///
/// # Safety
/// The requirements of [`column`].
#[inline(always)]
unsafe fn group_products<V: Lanes, const C: usize>(
    x: *const V::Real,
    a: *const V::Real,
    stride: isize,
    (first, rows): (usize, usize),
    dots: &mut [V::Real],
) {
    // SAFETY: the lanes that are named are rows of the panel.
    unsafe {
        let mut sums = [V::splat(V::Real::ZERO); C];
        let mut top = first / V::COUNT * V::COUNT;
        while top < rows {
            let lanes = first.saturating_sub(top)..V::COUNT.min(rows - top);
            if lanes.len() == V::COUNT {
                let left = V::load(x.wrapping_add(top));
                for c in 0..C {
                    let right = V::load(a.wrapping_offset(c as isize * stride).wrapping_add(top));
                    sums[c] = sums[c].plus_product(left, right);
                }
            } else {
                let left = V::load_some(x.wrapping_add(top), lanes.clone());
                for c in 0..C {
                    let at = a.wrapping_offset(c as isize * stride).wrapping_add(top);
                    sums[c] = sums[c].plus_product(left, V::load_some(at, lanes.clone()));
                }
            }
            top += V::COUNT;
        }
        for c in 0..C {
            dots[c] = sums[c].sum();
        }
    }
}

/// Multiplies rows `first..rows` of the column at `x` by `factor`, and subtracts multiples of it
/// from the columns after it.
///
/// # Safety
/// The requirements of [`column`].
#[inline(always)]
unsafe fn apply<V: Lanes>(
    x: *mut V::Real,
    stride: isize,
    (first, rows): (usize, usize),
    factor: V::Real,
    factors: &[V::Real],
) {
    // SAFETY: the lanes that are named are rows of the panel.
    unsafe {
        let by = V::splat(factor);
        let mut top = first / V::COUNT * V::COUNT;
        while top < rows {
            let lanes = first.saturating_sub(top)..V::COUNT.min(rows - top);
            let whole = lanes.len() == V::COUNT;
            let at = x.wrapping_add(top);
            let v = if whole { V::load(at) } else { V::load_some(at, lanes.clone()) }.times(by);
            if whole {
                v.store(at);
            } else {
                v.store_some(at, lanes.clone());
            }
            for (c, &multiple) in factors.iter().enumerate() {
                let at = at.wrapping_offset((c + 1) as isize * stride);
                if whole {
                    V::load(at).minus_product(v, V::splat(multiple)).store(at);
                } else {
                    let value = V::load_some(at, lanes.clone()).minus_product(v, V::splat(multiple));
                    value.store_some(at, lanes.clone());
                }
            }
            top += V::COUNT;
        }
    }
}
