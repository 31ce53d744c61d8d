//! Two cores that count in neighbouring words, and in words of lines of their own.

use lightfoot_coherence::{Access, CoherentCaches, PrivateLevels};
use simulate::Geometry;

fn main() {
    let times: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1000);
    for distance in [8, 64] {
        let first = Geometry::cache(32 << 10, 8, 64);
        let mut caches = CoherentCaches::new(PrivateLevels { first, second: None });
        for _ in 0..times {
            caches.access(0, 0x1000, 8, Access::Modify, 1);
            caches.access(1, 0x1000 + distance, 8, Access::Modify, 2);
        }
        let total = caches.finish().total;
        println!(
            "{distance:>3} bytes apart: {} misses, {} of false sharing",
            total.misses(),
            total.false_sharing
        );
    }
}
