//! The counts of process images, noted when they end.
//!
//! A report of several processes shows the sums of each. A page and a file for call viewers also
//! show which functions and lines a process ran, for which the counts of each image are kept as a
//! [`Part`]. Everything else comes from the profile of the run, in which all images are one.

use crate::cli::Rep;
use crate::run::hierarchy::Hierarchy;
use crate::run::tally::{Attribution, Counts, Part};
use instrument::{EndedImage, Profile};
use std::collections::BTreeMap;

/// What is kept of an image that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Its sums.
    Sums,
    /// Its sums, and its counts by block and site.
    Parts,
}

/// The images that have ended.
pub struct Images<'a> {
    kept: Kept,
    rep: Rep,
    hierarchy: Option<&'a Hierarchy>,
    /// By number.
    sums: BTreeMap<u32, Counts>,
    /// By number, under the numbers of the run's profile.
    parts: BTreeMap<u32, Part>,
}

impl<'a> Images<'a> {
    /// No images yet, of a run that simulates `hierarchy`.
    pub fn new(kept: Kept, rep: Rep, hierarchy: Option<&'a Hierarchy>) -> Images<'a> {
        Images { kept, rep, hierarchy, sums: BTreeMap::new(), parts: BTreeMap::new() }
    }

    /// Notes an image that has ended, with the counts of its simulation under its own numbers.
    pub fn note(&mut self, image: &EndedImage<'_>, simulated: Option<&simulate::Counts>) {
        let part = Part::of(image.profile, simulated);
        let misses = self.misses(&part);
        let none = Counts { misses: misses.as_ref().map(|misses| misses.none), ..Counts::default() };
        self.sums.insert(image.number, part.total(image.profile, misses.as_ref(), self.rep, none));
        if self.kept == Kept::Parts {
            self.parts.insert(image.number, part.renumbered(image.numbering));
        }
    }

    /// Adds a part of an image, under the numbers of the run's profile.
    pub fn add(&mut self, image: u32, part: &Part, profile: &Profile) {
        let misses = self.misses(part);
        let none = Counts { misses: misses.as_ref().map(|misses| misses.none), ..Counts::default() };
        let total = part.total(profile, misses.as_ref(), self.rep, none);
        self.sums.entry(image).or_insert(none).add(&total);
    }

    /// The misses of an image, with the names of a report.
    pub fn misses(&self, part: &Part) -> Option<Attribution> {
        Some(self.hierarchy?.attribution_of(part))
    }

    /// The sums of an image; `None` if it has not ended.
    pub fn sums(&self, image: u32) -> Option<&Counts> {
        self.sums.get(&image)
    }

    /// The counts of an image by block and site; `None` if they were not kept.
    pub fn part(&self, image: u32) -> Option<&Part> {
        self.parts.get(&image)
    }
}

#[cfg(test)]
mod tests;
