//! The crates that an index races (feature `race`).

use brie_tree::BTree;
use nonmax::NonMaxU32;
use ordsearch::OrderedCollection;
use search::race::{Answers, Contestant};

/// Peers that hold the same keys of 32 bits.
pub(crate) struct PeersOfU32 {
    ordered: OrderedCollection<u32>,
    tree: Option<BTree<NonMaxU32, u32>>,
}

impl PeersOfU32 {
    /// `brie-tree` is built key by key, which takes long: only up to `slow_keys` keys.
    pub(crate) fn new(keys: &[u32], slow_keys: usize) -> PeersOfU32 {
        let tree = (keys.len() <= slow_keys).then(|| {
            let mut tree = BTree::new();
            for key in keys {
                tree.insert(NonMaxU32::new(*key).unwrap_or_default(), *key);
            }
            tree
        });
        PeersOfU32 { ordered: OrderedCollection::from_sorted_iter(keys.iter().copied()), tree }
    }

    /// They, as contestants.
    pub(crate) fn contestants(&self) -> Vec<Contestant<'_, u32>> {
        let mut all = vec![Contestant::singles("ordsearch", Answers::Values, |query: u32| {
            self.ordered.find_gte(query).map_or(u32::MAX as usize, |&key| key as usize)
        })];
        if let Some(tree) = &self.tree {
            all.push(Contestant::singles("brie-tree", Answers::Values, move |query: u32| {
                let from = NonMaxU32::new(query).unwrap_or_default();
                tree.range(from..).next().map_or(u32::MAX as usize, |(_, &key)| key as usize)
            }));
        }
        all
    }
}

/// The peer that holds keys of 64 bits.
pub(crate) struct PeerOfU64(OrderedCollection<u64>);

impl PeerOfU64 {
    /// With these keys.
    pub(crate) fn new(keys: &[u64]) -> PeerOfU64 {
        PeerOfU64(OrderedCollection::from_sorted_iter(keys.iter().copied()))
    }

    /// It, as a contestant.
    pub(crate) fn contestant(&self) -> Contestant<'_, u64> {
        Contestant::singles("ordsearch", Answers::Values, |query: u64| {
            self.0.find_gte(query).map_or(u64::MAX as usize, |&key| key as usize)
        })
    }
}
