//! A competing crate of a race.

/// A competing crate.
#[derive(Debug)]
pub struct Crate<T: 'static> {
    /// Its name as printed.
    pub name: &'static str,
    /// Whether it is run with more than one thread.
    pub threads: Threads,
    /// `C ← A·B`, column-major n×n, on a number of threads: n, threads, A, B, C.
    pub multiply: fn(usize, usize, &[T], &[T], &mut [T]),
}

/// The numbers of threads with which a crate can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One only.
    One,
    /// Any number.
    Any,
}
