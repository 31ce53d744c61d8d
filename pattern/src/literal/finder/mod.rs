//! Finds a string in a text by searching for three of its bytes at once.
//!
//! The bytes are those that are rarest by a table, fewer for a shorter string. A kernel of
//! [`KERNELS`] compares hundreds of bytes of the text with each, at its distance, and compares the
//! whole string where all stand: a place where two stand and the string does not costs as much as
//! a hundred bytes of text. A text from memory is read no faster than memory gives it, and kernels
//! ask for it ahead. What is left at the end of a text goes to `memchr`'s substring search, which
//! is also the kernel of all other machines. Left out: strings of which all bytes are common;
//! callers give up where hits are dense. Source: pairs of rare bytes are W. Muła's generic SIMD
//! search (2016).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod probes;

use memchr::memmem;
use probes::{Found, Probes};

/// A way to find a string.
#[derive(Debug)]
struct FindKernel {
    name: &'static str,
    is_available: fn() -> bool,
    /// The first place at or behind `from` where the string stands, or one before which it does not
    /// stand.
    find: fn(&Probes, &[u8], &[u8], usize) -> Found,
}

/// All kernels, the fastest first.
const KERNELS: &[FindKernel] = &[
    #[cfg(target_arch = "x86_64")]
    FindKernel { name: "avx512", is_available: avx512::is_available, find: avx512::find },
    #[cfg(target_arch = "x86_64")]
    FindKernel { name: "avx2", is_available: avx2::is_available, find: avx2::find },
    FindKernel { name: "memmem", is_available: || true, find: |_, _, _, from| Found::NotBefore(from) },
];

/// A search for one string.
#[derive(Clone, Debug)]
pub(crate) struct Finder {
    probes: Probes,
    kernel: &'static FindKernel,
    whole: memmem::Finder<'static>,
}

impl Finder {
    /// A search on the fastest kernel of this machine.
    pub(crate) fn new(string: &[u8]) -> Finder {
        let kernel = KERNELS.iter().find(|kernel| !string.is_empty() && (kernel.is_available)());
        Finder::with_kernel(string, kernel.unwrap_or(&KERNELS[KERNELS.len() - 1]))
    }

    fn with_kernel(string: &[u8], kernel: &'static FindKernel) -> Finder {
        Finder { probes: Probes::of(string), kernel, whole: memmem::Finder::new(string).into_owned() }
    }

    /// The string.
    pub(crate) fn string(&self) -> &[u8] {
        self.whole.needle()
    }

    /// The kernel's name.
    pub(crate) fn kernel(&self) -> &'static str {
        self.kernel.name
    }

    /// The first place at or behind `from` where the string stands.
    ///
    /// # Panics
    /// When `from` lies behind the end of the text.
    #[inline]
    pub(crate) fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        match (self.kernel.find)(&self.probes, self.string(), text, from) {
            Found::At(at) => Some(at),
            Found::NotBefore(from) => self.whole.find(&text[from..]).map(|at| from + at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::probes::MOST_DISTANCE;
    use super::*;
    use proptest::prelude::*;

    fn naive(string: &[u8], text: &[u8], from: usize) -> Option<usize> {
        (from..text.len()).find(|&at| text[at..].starts_with(string))
    }

    fn kernels() -> impl Iterator<Item = &'static FindKernel> {
        KERNELS.iter().filter(|kernel| (kernel.is_available)())
    }

    #[test]
    fn the_rarest_bytes_are_looked_for() {
        for (string, bytes, places) in [
            ("mutex_unlock", *b"mxk", [0, 4, 11]),
            ("@", *b"@@@", [0, 0, 0]),
            ("->", *b"->>", [0, 1, 1]),
            ("<-", *b"<--", [0, 1, 1]),
            ("aab", *b"aab", [0, 1, 2]),
            ("abca", *b"abc", [0, 1, 2]),
            ("zz", *b"zzz", [0, 1, 1]),
        ] {
            assert_eq!(Probes::of(string.as_bytes()), Probes { bytes, places }, "{string}");
        }
        let long = [&b"e"[..], &b"t".repeat(2 * MOST_DISTANCE), b"\x01"].concat();
        assert!(Probes::of(&long).places[2] < MOST_DISTANCE);
    }

    #[test]
    fn a_string_is_found_across_every_boundary() {
        for kernel in kernels() {
            for length in [1, 2, 3, 17, 64, 65, 100] {
                let string: Vec<u8> = (0..length).map(|at| b'a' + (at % 23) as u8).collect();
                let finder = Finder::with_kernel(&string, kernel);
                for place in (0..1100).chain(4080..4110) {
                    for tail in [0, 1, 63, 300, 700] {
                        let text = [&b"b".repeat(place)[..], &string, &b"-".repeat(tail)].concat();
                        let expected = naive(&string, &text, place / 2);
                        assert_eq!(finder.find(&text, place / 2), expected, "{} {place}", kernel.name);
                    }
                }
                assert_eq!(finder.find(&string[1..], 0), None);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 300,
            rng_seed: proptest::test_runner::RngSeed::Fixed(2016),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn kernels_find_what_a_plain_search_finds(
            string in "[ab]{1,4}|[a-c]{1,9}|[é-ëa]{1,40}",
            pieces in prop::collection::vec("[ab]{0,9}|[a-d]{0,30}|[é-ì-]{0,30}|-{0,300}", 0..60),
            holds in any::<bool>(),
            skipped in 0usize..80,
        ) {
            let mut text = pieces.concat().into_bytes();
            if holds {
                let middle = text.len() / 2;
                text.splice(middle..middle, string.bytes());
            }
            let text = &text[skipped.min(text.len())..];
            for kernel in kernels() {
                let finder = Finder::with_kernel(string.as_bytes(), kernel);
                let mut from = 0;
                while from <= text.len() {
                    let expected = naive(string.as_bytes(), text, from);
                    prop_assert_eq!(finder.find(text, from), expected, "{} from {}", kernel.name, from);
                    let Some(at) = expected else { break };
                    from = at + 1;
                }
            }
        }
    }
}
