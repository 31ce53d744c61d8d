//! The slow twin of `distance`: every set is a list of lines, most recent first, and a line's place
//! in the list is its distance.

use super::walk::{covered, parts};
use crate::distance::{CurveSizes, MissCurve};
use crate::{Geometry, Misses, Sharing};
use event::{Access, Decoder, Record, Reference, ReferenceKind, Sites, StateLayout};
use std::collections::HashMap;

/// The stacks of one side, set by set.
type Stacks = Vec<Vec<u64>>;

/// Stack distances by linear search: microseconds per reference.
pub struct NaiveDistances {
    sizes: CurveSizes,
    sharing: Sharing,
    decoders: HashMap<u32, Decoder>,
    /// The data side and the instruction side of each thread that has its own.
    sides: HashMap<u32, [Stacks; 2]>,
    curve: MissCurve,
}

impl NaiveDistances {
    /// Empty caches of `sizes`.
    pub fn new(sizes: &CurveSizes, sharing: Sharing) -> NaiveDistances {
        let points = sizes.bytes().map(|bytes| (bytes, Misses::default())).collect();
        let curve = MissCurve { points, damaged: 0 };
        let (decoders, sides) = (HashMap::new(), HashMap::new());
        NaiveDistances { sizes: sizes.clone(), sharing, decoders, sides, curve }
    }

    /// Takes records of one thread, in program order.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let new = || Decoder::new(thread, self.sizes.line_bytes(), StateLayout::default());
        let mut decoder = self.decoders.remove(&thread).unwrap_or_else(new);
        for record in records {
            let mut references = Vec::new();
            let result = decoder.decode(record, &Sites::default(), |reference| references.push(reference));
            self.curve.damaged += u64::from(result.is_err());
            references.iter().for_each(|reference| self.reference(reference));
        }
        self.decoders.insert(thread, decoder);
    }

    /// The misses so far.
    pub fn curve(&self) -> MissCurve {
        self.curve.clone()
    }

    fn reference(&mut self, reference: &Reference) {
        for part in parts(reference, self.sizes.line_bytes()) {
            self.part(&part);
        }
    }

    fn part(&mut self, reference: &Reference) {
        let line_bytes = self.sizes.line_bytes();
        let geometry = Geometry::cache(u64::from(line_bytes), 1, line_bytes);
        let mut distance = Some(0);
        if reference.kind == ReferenceKind::Data(Access::Prefetch) {
            return;
        }
        for address in covered(reference, Some(geometry)) {
            let of_line = self.line(reference, address / u64::from(line_bytes));
            // A missing line is farther away than any distance.
            distance = distance.zip(of_line).map(|(one, other)| one.max(other));
        }
        for (ways, (_, misses)) in self.sizes.ways().iter().zip(&mut self.curve.points) {
            if distance.is_none_or(|distance| distance as u64 >= *ways) {
                match reference.kind {
                    ReferenceKind::Fetch => misses.instructions += 1,
                    ReferenceKind::Data(Access::Store) => misses.stores += 1,
                    ReferenceKind::Data(_) => misses.loads += 1,
                }
            }
        }
    }

    /// The distance of a line, which moves to the front.
    fn line(&mut self, reference: &Reference, line: u64) -> Option<usize> {
        let owner = if self.sharing == Sharing::PerThread { reference.thread } else { 0 };
        let sets = self.sizes.sets();
        let new = || [vec![Vec::new(); sets as usize], vec![Vec::new(); sets as usize]];
        let side = usize::from(reference.kind == ReferenceKind::Fetch);
        let stack = &mut self.sides.entry(owner).or_insert_with(new)[side][(line % sets) as usize];
        let distance = stack.iter().position(|&other| other == line);
        distance.map(|distance| stack.remove(distance));
        stack.insert(0, line);
        distance
    }
}
