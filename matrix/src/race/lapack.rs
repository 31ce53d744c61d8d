//! LAPACK and BLAS of a shared library, by the symbols of Fortran.

use super::dynamic::libraries;
use libloading::Library;
use std::ffi::{c_char, c_int};

type Lu<T> = unsafe extern "C" fn(*const c_int, *const c_int, *mut T, *const c_int, *mut c_int, *mut c_int);
type Cholesky<T> = unsafe extern "C" fn(*const c_char, *const c_int, *mut T, *const c_int, *mut c_int);
type Qr<T> = unsafe extern "C" fn(
    *const c_int,
    *const c_int,
    *mut T,
    *const c_int,
    *mut T,
    *mut T,
    *const c_int,
    *mut c_int,
);
/// `trsm` and `trmm`.
type Triangular<T> = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_int,
    *const c_int,
    *const T,
    *const T,
    *const c_int,
    *mut T,
    *const c_int,
);
type RankUpdate<T> = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_int,
    *const c_int,
    *const T,
    *const T,
    *const c_int,
    *const T,
    *mut T,
    *const c_int,
);

type Symmetric<T> = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_int,
    *const c_int,
    *const T,
    *const T,
    *const c_int,
    *const T,
    *const c_int,
    *const T,
    *mut T,
    *const c_int,
);
type Inverse<T> =
    unsafe extern "C" fn(*const c_int, *mut T, *const c_int, *const c_int, *mut T, *const c_int, *mut c_int);

/// The functions of one library for one type.
#[derive(Clone, Copy, Debug)]
pub struct Lapack<T> {
    /// The library's name.
    pub name: &'static str,
    lu: Lu<T>,
    cholesky: Cholesky<T>,
    qr: Qr<T>,
    solve: Triangular<T>,
    multiply: Triangular<T>,
    update: RankUpdate<T>,
    symmetric: Symmetric<T>,
    inverse: Inverse<T>,
}

fn letter(letter: &u8) -> *const c_char {
    std::ptr::from_ref(letter).cast()
}

impl<T: Copy + 'static> Lapack<T> {
    /// The libraries that were found and have all functions; `prefix` is `d` or `s`.
    pub fn found(prefix: char, threads: usize) -> Vec<Lapack<T>> {
        libraries(threads)
            .into_iter()
            .filter_map(|(name, library)| Lapack::of(name, library, prefix))
            .collect()
    }

    fn of(name: &'static str, library: &'static Library, prefix: char) -> Option<Lapack<T>> {
        let symbol = |stem: &str| format!("{prefix}{stem}_\0");
        // SAFETY: the symbols have the types that LAPACK and BLAS give them, with 32-bit integers.
        unsafe {
            Some(Lapack {
                name,
                lu: *library.get(symbol("getrf").as_bytes()).ok()?,
                cholesky: *library.get(symbol("potrf").as_bytes()).ok()?,
                qr: *library.get(symbol("geqrf").as_bytes()).ok()?,
                solve: *library.get(symbol("trsm").as_bytes()).ok()?,
                multiply: *library.get(symbol("trmm").as_bytes()).ok()?,
                update: *library.get(symbol("syrk").as_bytes()).ok()?,
                symmetric: *library.get(symbol("symm").as_bytes()).ok()?,
                inverse: *library.get(symbol("getri").as_bytes()).ok()?,
            })
        }
    }

    /// `getrf` of an n×n array by columns; pivots are counted from 1.
    pub fn lu(&self, n: usize, a: &mut [T], pivots: &mut [c_int]) {
        assert!(a.len() >= n * n && pivots.len() >= n);
        let (size, mut info) = (n as c_int, 0);
        // SAFETY: the lengths were checked.
        unsafe { (self.lu)(&size, &size, a.as_mut_ptr(), &size, pivots.as_mut_ptr(), &mut info) }
    }

    /// `potrf` of the lower triangle.
    pub fn cholesky(&self, n: usize, a: &mut [T]) {
        assert!(a.len() >= n * n);
        let (size, mut info) = (n as c_int, 0);
        // SAFETY: the length was checked.
        unsafe { (self.cholesky)(letter(&b'L'), &size, a.as_mut_ptr(), &size, &mut info) }
    }

    /// `geqrf` with τ and scratch memory of 64 n numbers.
    pub fn qr(&self, n: usize, a: &mut [T], tau: &mut [T], work: &mut [T]) {
        assert!(a.len() >= n * n && tau.len() >= n && work.len() >= n);
        let (size, length, mut info) = (n as c_int, work.len() as c_int, 0);
        let (a, tau, work) = (a.as_mut_ptr(), tau.as_mut_ptr(), work.as_mut_ptr());
        // SAFETY: the lengths were checked.
        unsafe { (self.qr)(&size, &size, a, &size, tau, work, &length, &mut info) }
    }

    /// `trsm` from the left with a lower triangle.
    pub fn solve(&self, n: usize, one: T, a: &[T], b: &mut [T]) {
        self.triangular(self.solve, n, one, a, b);
    }

    /// `trmm` from the left with a lower triangle.
    pub fn multiply(&self, n: usize, one: T, a: &[T], b: &mut [T]) {
        self.triangular(self.multiply, n, one, a, b);
    }

    fn triangular(&self, function: Triangular<T>, n: usize, one: T, a: &[T], b: &mut [T]) {
        assert!(a.len() >= n * n && b.len() >= n * n);
        let size = n as c_int;
        let [side, triangle, op, diagonal] = [b"L", b"L", b"N", b"N"].map(|word| letter(&word[0]));
        let (a, b) = (a.as_ptr(), b.as_mut_ptr());
        // SAFETY: the lengths were checked.
        unsafe { function(side, triangle, op, diagonal, &size, &size, &one, a, &size, b, &size) }
    }

    /// `symm` from the left with a lower triangle, `C ← A·B`; the factors are 1 and 0.
    pub fn symmetric(&self, n: usize, (one, zero): (T, T), (a, b): (&[T], &[T]), c: &mut [T]) {
        assert!(a.len() >= n * n && b.len() >= n * n && c.len() >= n * n);
        let size = n as c_int;
        let (side, triangle) = (letter(&b'L'), letter(&b'L'));
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        // SAFETY: the lengths were checked.
        unsafe {
            (self.symmetric)(side, triangle, &size, &size, &one, a, &size, b, &size, &zero, c, &size);
        }
    }

    /// `getrf` and `getri` with scratch memory of 64 n numbers.
    pub fn inverse(&self, n: usize, a: &mut [T], pivots: &mut [c_int], work: &mut [T]) {
        assert!(work.len() >= n);
        self.lu(n, a, pivots);
        let (size, length, mut info) = (n as c_int, work.len() as c_int, 0);
        let (a, pivots, work) = (a.as_mut_ptr(), pivots.as_ptr(), work.as_mut_ptr());
        // SAFETY: `lu` checked the lengths of the array and of the pivots.
        unsafe { (self.inverse)(&size, a, &size, pivots, work, &length, &mut info) }
    }

    /// `syrk` of the lower triangle, `C ← A·Aᵀ`.
    pub fn update(&self, n: usize, one: T, zero: T, a: &[T], c: &mut [T]) {
        assert!(a.len() >= n * n && c.len() >= n * n);
        let size = n as c_int;
        let (a, c) = (a.as_ptr(), c.as_mut_ptr());
        // SAFETY: the lengths were checked.
        unsafe {
            (self.update)(letter(&b'L'), letter(&b'N'), &size, &size, &one, a, &size, &zero, c, &size);
        }
    }
}
