//! Address ranges with names, of which later ones replace earlier ones.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges of addresses, each with the name that it got last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// By start: the end, and an index into `names`.
    ranges: BTreeMap<u64, (u64, u32)>,
    names: Vec<String>,
}

impl Ranges {
    /// Gives `range` a name, which replaces the names of earlier ranges there. An empty range gets
    /// none.
    pub(crate) fn name(&mut self, range: Range<u64>, name: String) {
        if range.is_empty() {
            return;
        }
        self.clear(&range);
        self.ranges.insert(range.start, (range.end, self.names.len() as u32));
        self.names.push(name);
    }

    /// Moves the name of the range that begins at `from` to `to`, for a function of that many bytes
    /// as it has. Nothing happens if no range begins there.
    pub(crate) fn move_to(&mut self, from: u64, to: u64) {
        let Some((end, name)) = self.ranges.remove(&from) else { return };
        let Some(moved) = to.checked_add(end - from) else { return };
        self.clear(&(to..moved));
        self.ranges.insert(to, (moved, name));
    }

    /// Takes their names from all addresses of `range`. Ranges that reach beyond it are cut.
    fn clear(&mut self, range: &Range<u64>) {
        // A range that begins before keeps its head, and its tail if it ends behind.
        if let Some((&start, &(end, name))) = self.ranges.range(..range.start).next_back() {
            if end > range.start {
                self.ranges.insert(start, (range.start, name));
            }
            if end > range.end {
                self.ranges.insert(range.end, (end, name));
            }
        }
        // Of ranges that begin inside, only the last one can reach beyond the end.
        while let Some((&start, &(end, name))) = self.ranges.range(range.clone()).next() {
            self.ranges.remove(&start);
            if end > range.end {
                self.ranges.insert(range.end, (end, name));
            }
        }
    }

    /// The name of `address`, if it has one, and the addresses around it up to the next change of
    /// names.
    pub(crate) fn find(&self, address: u64) -> (Option<&str>, Range<u64>) {
        let mut start = 0;
        if let Some((&first, &(end, name))) = self.ranges.range(..=address).next_back() {
            if address < end {
                return (Some(&self.names[name as usize]), first..end);
            }
            start = end;
        }
        let end = self.ranges.range(address..).next().map_or(u64::MAX, |(&next, _)| next);
        (None, start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What happens to names, over a few addresses so that most ranges overlap.
    #[derive(Clone, Debug)]
    enum Event {
        Named(Range<u64>, u32),
        Moved(u64, u64),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let named = (0..40_u64, 0..12_u64, any::<u32>())
            .prop_map(|(start, bytes, name)| Event::Named(start..start + bytes, name));
        let moved = (0..40_u64, 0..40_u64).prop_map(|(from, to)| Event::Moved(from, to));
        prop::collection::vec(prop_oneof![4 => named, 1 => moved], 0..30)
    }

    /// The slow twin: for each address the start of its range, where that range ended, and a name.
    struct Addresses([Option<(u64, u32)>; 64]);

    impl Addresses {
        fn happen(&mut self, event: &Event) {
            match event {
                Event::Named(range, name) => range.clone().for_each(|at| {
                    self.0[at as usize] = Some((range.start, *name));
                }),
                Event::Moved(from, to) => {
                    // A range that was cut in two has a tail whose start is where the cut ended.
                    let begins = |at: u64| {
                        let before = at.checked_sub(1).and_then(|before| self.0[before as usize]);
                        self.0[at as usize].filter(|_| before != self.0[at as usize])
                    };
                    let Some((_, name)) = begins(*from) else { return };
                    let same = self.0[*from as usize];
                    let bytes = self.0[*from as usize..].iter().take_while(|at| **at == same).count();
                    self.0[*from as usize..][..bytes].fill(None);
                    self.0[*to as usize..][..bytes].fill(Some((*to, name)));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn an_address_has_its_last_name(events in events()) {
            let (mut ranges, mut twin) = (Ranges::default(), Addresses([None; 64]));
            for (number, event) in events.iter().enumerate() {
                // Names are told apart by their number, so that neighbours never look like one.
                let event = match event {
                    Event::Named(range, _) => Event::Named(range.clone(), number as u32),
                    moved => moved.clone(),
                };
                twin.happen(&event);
                match event {
                    Event::Named(range, name) => ranges.name(range, name.to_string()),
                    Event::Moved(from, to) => ranges.move_to(from, to),
                }
                for at in 0..64 {
                    let name = twin.0[at as usize].map(|(_, name)| name.to_string());
                    let (found, around) = ranges.find(at);
                    prop_assert_eq!(found, name.as_deref(), "at {}", at);
                    prop_assert!(around.contains(&at));
                }
            }
        }
    }

    #[test]
    fn the_range_around_an_address_has_one_name() {
        let mut ranges = Ranges::default();
        ranges.name(10..20, "a".into());
        ranges.name(30..40, "b".into());
        assert_eq!(ranges.find(15), (Some("a"), 10..20));
        assert_eq!(ranges.find(20), (None, 20..30));
        assert_eq!(ranges.find(5), (None, 0..10));
        assert_eq!(ranges.find(40), (None, 40..u64::MAX));
    }
}
