//! Another crate that takes part in a race.

/// A crate that takes part.
#[derive(Debug)]
pub struct Crate<T: 'static> {
    /// Its name as printed.
    pub name: &'static str,
    /// Whether it is asked for more threads than one.
    pub threads: Threads,
    /// `C ← A·B`, column-major n×n, on a number of threads: n, threads, A, B, C.
    pub multiply: fn(usize, usize, &[T], &[T], &mut [T]),
}

/// How many threads a crate is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One only.
    One,
    /// Any number.
    Any,
}
