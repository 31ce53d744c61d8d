//! Arguments of BLAS routines as types, and the checks of the reference implementation.

use matrix::{Element, Strided, StridedMut};
use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

pub(crate) use matrix::{Side, Triangle};

/// The order of a matrix's entries in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Rows,
    Columns,
}

/// What becomes of an operand before it is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Transposed,
    Adjoint,
}

/// The position of the parameter that is not allowed, from 1.
pub(crate) type Checked<V> = Result<V, c_int>;

impl Order {
    /// `CBLAS_LAYOUT`.
    pub(crate) fn of(value: c_int) -> Checked<Order> {
        match value {
            101 => Ok(Order::Rows),
            102 => Ok(Order::Columns),
            _ => Err(1),
        }
    }
}

/// A parameter that has a number in C and a letter in Fortran.
pub(crate) trait Coded: Sized {
    /// The value of a number of C's enumeration.
    fn number(value: c_int) -> Option<Self>;
    /// The value of a letter, in upper case.
    fn letter(letter: u8) -> Option<Self>;

    /// The value of either, which stands at `position`.
    fn at(position: c_int, code: Code) -> Checked<Self> {
        let value = match code {
            Code::Number(number) => Self::number(number),
            Code::Letter(letter) => Self::letter(letter.to_ascii_uppercase()),
        };
        value.ok_or(position)
    }
}

/// How a parameter was given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Code {
    Number(c_int),
    Letter(u8),
}

impl Code {
    /// The letter at an address of Fortran.
    ///
    /// # Safety
    /// The address is readable.
    pub(crate) unsafe fn letter(address: *const c_char) -> Code {
        // SAFETY: the caller's promise.
        Code::Letter(unsafe { *address } as u8)
    }
}

macro_rules! coded {
    ($type:ty: $($number:literal $letter:literal => $value:expr),*) => {
        impl Coded for $type {
            fn number(value: c_int) -> Option<Self> {
                match value {
                    $($number => Some($value),)*
                    _ => None,
                }
            }
            fn letter(letter: u8) -> Option<Self> {
                match letter {
                    $($letter => Some($value),)*
                    _ => None,
                }
            }
        }
    };
}
coded!(Form: 111 b'N' => Form::Plain, 112 b'T' => Form::Transposed, 113 b'C' => Form::Adjoint);
coded!(Triangle: 121 b'U' => Triangle::Upper, 122 b'L' => Triangle::Lower);
coded!(matrix::Diagonal: 131 b'N' => matrix::Diagonal::Stored, 132 b'U' => matrix::Diagonal::Unit);
coded!(Side: 141 b'L' => Side::Left, 142 b'R' => Side::Right);

/// A size, which must not be negative, at `position`.
pub(crate) fn size(position: c_int, value: c_int) -> Checked<usize> {
    usize::try_from(value).map_err(|_| position)
}

/// The shape of an array that a routine was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    rows: usize,
    cols: usize,
    row_stride: isize,
    col_stride: isize,
}

impl Shape {
    /// `rows`×`cols` entries with a leading dimension, whose parameter stands at `position`.
    pub(crate) fn new(
        position: c_int,
        order: Order,
        (rows, cols): (usize, usize),
        leading: c_int,
    ) -> Checked<Shape> {
        let shortest = if order == Order::Rows { cols } else { rows }.max(1);
        let leading = size(position, leading)?;
        if leading < shortest {
            return Err(position);
        }
        let (row_stride, col_stride) = match order {
            Order::Rows => (leading as isize, 1),
            Order::Columns => (1, leading as isize),
        };
        Ok(Shape { rows, cols, row_stride, col_stride })
    }

    /// The array at an address, for reading.
    ///
    /// # Safety
    /// All entries are readable, and unchanged as long as the view lives.
    pub(crate) unsafe fn read<'a, T: Element>(self, start: *const T) -> Strided<'a, T> {
        // SAFETY: the caller's promise.
        unsafe { Strided::from_raw(start, (self.rows, self.cols), (self.row_stride, self.col_stride)) }
    }

    /// The array at an address, for writing.
    ///
    /// # Safety
    /// All entries are the view's alone as long as it lives.
    pub(crate) unsafe fn write<'a, T: Element>(self, start: *mut T) -> StridedMut<'a, T> {
        // SAFETY: the caller's promise; leading dimensions keep entries apart.
        unsafe { StridedMut::from_raw(start, (self.rows, self.cols), (self.row_stride, self.col_stride)) }
    }
}

/// The number of threads of all routines.
pub(crate) fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        let named = ["LIGHTFOOT_NUM_THREADS", "OMP_NUM_THREADS"].iter().find_map(|name| {
            let threads = std::env::var(name).ok()?.trim().parse::<usize>().ok()?;
            Some(threads).filter(|&threads| threads > 0)
        });
        named.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    })
}
