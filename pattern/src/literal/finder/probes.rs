//! The bytes of a string that kernels search for, and the results of kernels.

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

/// The most bytes of a string that are looked for.
pub(super) const MOST: usize = 3;

/// The bytes, and their positions in the string, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probes {
    pub(super) bytes: [u8; MOST],
    pub(super) places: [usize; MOST],
}

impl Probes {
    /// The rarest bytes, each of another place; the last one again where the string has fewer.
    pub(super) fn of(string: &[u8]) -> Probes {
        let mut places = [0; MOST];
        for number in 0..MOST {
            let chosen = &places[..number];
            let others = (0..string.len().min(MOST_DISTANCE)).filter(|at| !chosen.contains(at));
            let rarest = others.min_by_key(|&at| {
                // Another byte is more selective than the same byte again.
                let again = chosen.iter().any(|&other| string[other] == string[at]);
                (again, commonness(string[at]))
            });
            places[number] = rarest.or(chosen.iter().copied().max()).unwrap_or(0);
        }
        places.sort_unstable();
        Probes { bytes: places.map(|at| string.get(at).copied().unwrap_or(0)), places }
    }
}

/// Bytes further behind the start of a string are not used as probes.
pub(super) const MOST_DISTANCE: usize = 64;
