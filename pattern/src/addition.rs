//! Long-stream addition and MatchStar on blocks of several words, as the paper defines them.
//!
//! Adding two streams of `f` words needs a carry to run through all of them; instead each word is
//! added by itself, and two masks of `f` bits say the rest: the *carry mask* `c` of words that
//! overflowed, and the *bubble mask* `b` of words that are all ones, which pass a carry on. The
//! words to be incremented are `i = MatchStar(2c + p, b)`, with carry-in `p`; bit `f` of it is the
//! carry-out. Where `f` masks do not fit one word there is a second level: a group of words
//! overflows or bubbles as a whole, and the same formula decides which groups receive a carry.
//!
//! The translator emits these steps with AVX-512 masks; here they are in plain Rust, for the study
//! and as the truth that tests hold against schoolbook addition. Source: Cameron et al. 2014,
//! sections 2 and 3 (figures 1 and 2).

/// Words of a group of [`add_two_levels`]: one 512-bit vector.
pub const GROUP_WORDS: usize = 8;

/// `(((m ∧ c) + c) ⊕ c) ∨ m` on masks.
pub fn match_star_mask(markers: u64, class: u64) -> u64 {
    ((markers & class).wrapping_add(class) ^ class) | markers
}

/// `x + y + carry` of `F` words, at most 63, in constant depth; the carry-out comes second.
pub fn add<const F: usize>(x: [u64; F], y: [u64; F], carry: bool) -> ([u64; F], bool) {
    const { assert!(F < 64) }
    let sum: [u64; F] = std::array::from_fn(|at| x[at].wrapping_add(y[at]));
    let mask =
        |holds: &dyn Fn(usize) -> bool| (0..F).fold(0u64, |mask, at| mask | u64::from(holds(at)) << at);
    let overflowed = mask(&|at| sum[at] < x[at]);
    let bubbles = mask(&|at| sum[at] == u64::MAX);
    let increments = match_star_mask(overflowed << 1 | u64::from(carry), bubbles);
    (std::array::from_fn(|at| sum[at].wrapping_add(increments >> at & 1)), increments >> F & 1 == 1)
}

/// MatchStar on `F` words with carry-in and carry-out.
pub fn match_star<const F: usize>(markers: [u64; F], class: [u64; F], carry: bool) -> ([u64; F], bool) {
    let start = std::array::from_fn(|at| markers[at] & class[at]);
    let (sum, carry) = add(start, class, carry);
    (std::array::from_fn(|at| sum[at] ^ class[at] | markers[at]), carry)
}

/// `x + y + carry` in two levels: groups of [`GROUP_WORDS`] words, and up to 63 of them.
///
/// # Panics
/// When the lengths differ, or are not a multiple of a group, or are more than 63 groups.
pub fn add_two_levels(x: &[u64], y: &[u64], carry: bool) -> (Vec<u64>, bool) {
    assert!(x.len() == y.len() && x.len().is_multiple_of(GROUP_WORDS) && x.len() < 64 * GROUP_WORDS);
    let group = |words: &[u64]| -> [u64; GROUP_WORDS] { words.try_into().expect("a group") };
    let pairs = x.chunks_exact(GROUP_WORDS).zip(y.chunks_exact(GROUP_WORDS));
    let sums: Vec<_> = pairs.map(|(x, y)| add(group(x), group(y), false)).collect();
    let mask = |holds: &dyn Fn(usize) -> bool| {
        (0..sums.len()).fold(0u64, |mask, at| mask | u64::from(holds(at)) << at)
    };
    let overflowed = mask(&|at| sums[at].1);
    let bubbles = mask(&|at| sums[at].0 == [u64::MAX; GROUP_WORDS]);
    let increments = match_star_mask(overflowed << 1 | u64::from(carry), bubbles);
    let zero = [0; GROUP_WORDS];
    let incremented =
        sums.iter().enumerate().flat_map(|(at, (sum, _))| add(*sum, zero, increments >> at & 1 == 1).0);
    (incremented.collect(), increments >> sums.len() & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The paper's figure 2, its eight-bit fields widened: a run of all ones passes the carry on.
    #[test]
    fn a_carry_bubbles_through_all_ones() {
        assert_eq!(add([u64::MAX, 5, u64::MAX, 7], [1, u64::MAX - 5, 0, 1], false), ([0, 0, 0, 9], false));
        assert_eq!(add([u64::MAX; 8], [0; 8], true), ([0; 8], true));
    }

    /// The paper's figure 1.
    #[test]
    fn match_star_is_the_figure() {
        let bits = |text: &str| {
            text.bytes().enumerate().fold(0, |bits, (at, byte)| bits | u64::from(byte == b'1') << at)
        };
        let markers = bits("......1.....1.....1..1......1.......");
        let digits = bits("..111111...111.111...111..1111......");
        assert_eq!(match_star_mask(markers, digits), bits("......111...111...1..1111.0.111....."));
    }

    fn schoolbook(x: &[u64], y: &[u64], carry: bool) -> (Vec<u64>, bool) {
        let mut carry = u128::from(carry);
        let words = x.iter().zip(y).map(|(&x, &y)| {
            let sum = u128::from(x) + u128::from(y) + carry;
            carry = sum >> 64;
            sum as u64
        });
        let words = words.collect();
        (words, carry != 0)
    }

    /// Words that are often all ones, or nothing, so that carries run far.
    fn words(count: usize) -> impl Strategy<Value = Vec<u64>> {
        let word =
            prop_oneof![Just(0), Just(u64::MAX), Just(1), Just(u64::MAX - 1), Just(1 << 63), any::<u64>()];
        prop::collection::vec(word, count)
    }

    fn check<const F: usize>(x: &[u64], y: &[u64], carry: bool) {
        let (sum, out) = add::<F>(x[..F].try_into().unwrap(), y[..F].try_into().unwrap(), carry);
        assert_eq!((sum.to_vec(), out), schoolbook(&x[..F], &y[..F], carry), "{F} words");
        let class: [u64; F] = y[..F].try_into().unwrap();
        let markers: [u64; F] = x[..F].try_into().unwrap();
        let (reached, out) = match_star(markers, class, carry);
        let start: Vec<u64> = (0..F).map(|at| markers[at] & class[at]).collect();
        let (sum, expected_out) = schoolbook(&start, &class, carry);
        let expected: Vec<u64> = (0..F).map(|at| sum[at] ^ class[at] | markers[at]).collect();
        assert_eq!((reached.to_vec(), out), (expected, expected_out), "MatchStar, {F} words");
    }

    proptest! {
        #[test]
        fn additions_are_schoolbook_additions(x in words(504), y in words(504), carry in any::<bool>()) {
            check::<1>(&x, &y, carry);
            check::<2>(&x, &y, carry);
            check::<4>(&x, &y, carry);
            check::<8>(&x, &y, carry);
            check::<63>(&x, &y, carry);
            for length in [8, 16, 64, 128, 504] {
                let (x, y) = (&x[..length], &y[..length]);
                prop_assert_eq!(add_two_levels(x, y, carry), schoolbook(x, y, carry), "{} words", length);
            }
        }
    }
}
