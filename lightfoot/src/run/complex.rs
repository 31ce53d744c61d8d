//! Turns complex references that an observer has counted into fields of a profile.

use instrument::Profile;
use simulate::References;

/// Adds observed complex references to a profile without them.
pub fn complete(profile: &mut Profile, observed: &[References]) {
    if !profile.complex.is_empty() || !profile.repeats.is_empty() {
        return;
    }
    (profile.complex, profile.repeats) = complex_of(observed);
}

/// Loads and stores by site, as in [`Profile::complex`].
pub type LoadsAndStores = Vec<(u32, u64, u64)>;
/// Iterations beyond the first by site, as in [`Profile::repeats`].
pub type Repeats = Vec<(u32, u64)>;

/// Observed complex references with the fields of a profile.
pub fn complex_of(observed: &[References]) -> (LoadsAndStores, Repeats) {
    let (mut complex, mut repeats) = (Vec::new(), Vec::new());
    for (counts, site) in observed.iter().zip(0..).filter(|(counts, _)| counts.executions > 0) {
        complex.push((site, counts.loads, counts.stores));
        let repetitions = counts.iterations.saturating_sub(counts.executions);
        if repetitions > 0 {
            repeats.push((site, repetitions));
        }
    }
    (complex, repeats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_knows_is_left_alone() {
        let (iterations, executions, counted_down) = (13, 2, 2);
        let observed = [References { loads: 13, stores: 13, iterations, executions, counted_down }];
        let mut profile = Profile::default();
        complete(&mut profile, &observed);
        assert_eq!(
            (profile.complex.as_slice(), profile.repeats.as_slice()),
            (&[(0, 13, 13)][..], &[(0, 11)][..])
        );
        let before = profile.complex.clone();
        complete(&mut profile, &observed);
        assert_eq!(profile.complex, before);
    }
}
