//! The two bytes of a string that kernels search for, and the results of kernels.

use crate::literal::commonness::commonness;

/// Distance in bytes between the comparison and the prefetch.
#[cfg(target_arch = "x86_64")]
pub(super) const AHEAD_BYTES: usize = 4096;

/// The result of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    At(usize),
    NotBefore(usize),
}

/// The two bytes, and their positions in the string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probes {
    pub(super) bytes: [u8; 2],
    pub(super) places: [usize; 2],
}

impl Probes {
    /// The rarest byte, and the rarest of the others; twice the same for one byte.
    pub(super) fn of(string: &[u8]) -> Probes {
        let rarest = |but: Option<usize>| {
            let places = (0..string.len().min(MOST_DISTANCE)).filter(|&at| Some(at) != but);
            places.min_by_key(|&at| {
                // Another byte is more selective than the same byte again.
                let again = but.is_some_and(|but| string[but] == string[at]);
                (again, commonness(string[at]))
            })
        };
        let first = rarest(None).unwrap_or(0);
        let second = rarest(Some(first)).unwrap_or(first);
        let places = [first.min(second), first.max(second)];
        Probes { bytes: places.map(|at| string.get(at).copied().unwrap_or(0)), places }
    }
}

/// Bytes further behind the start of a string are not used as probes.
pub(super) const MOST_DISTANCE: usize = 64;
