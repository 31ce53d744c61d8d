//! Caches as Linux lists them under `/sys/devices/system/cpu/cpu0/cache`.
//!
//! The file `size` is rounded to KiB, so the size is the product of ways, line length and sets if
//! these are given. **Leaves out** allocation and write policies, which sysfs rarely has. Source:
//! the kernel's `ABI/testing/sysfs-devices-system-cpu`.

use super::tree::{cpus, Tree};
use crate::geometry::bytes;
use crate::{Behaviour, Cache, CacheKind, Geometry, StoreMiss, WritePolicy};

const FOLDER: &str = "sys/devices/system/cpu/cpu0/cache";

/// All caches of the first CPU whose description is complete enough.
pub(super) fn caches(tree: &Tree) -> Vec<Cache> {
    let folders = tree.names(FOLDER).into_iter().filter(|name| name.starts_with("index"));
    folders.filter_map(|name| cache(tree, &format!("{FOLDER}/{name}"))).collect()
}

fn cache(tree: &Tree, folder: &str) -> Option<Cache> {
    let text = |name: &str| tree.text(&format!("{folder}/{name}"));
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    let kind = match text("type")?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    let line_bytes = u32::try_from(number("coherency_line_size")?).ok()?;
    let size_bytes = bytes(&text("size")?).ok()?;
    // The kernel writes 0 ways for a fully associative cache.
    let ways = match number("ways_of_associativity")? {
        0 => size_bytes / u64::from(line_bytes.max(1)),
        ways => ways,
    };
    let sets = number("number_of_sets").filter(|&sets| sets > 0);
    let product = sets.and_then(|sets| sets.checked_mul(ways)?.checked_mul(line_bytes.into()));
    let shape = Geometry::new(product.unwrap_or(size_bytes), u32::try_from(ways).ok()?, line_bytes).ok()?;
    Some(Cache {
        level: u8::try_from(number("level")?).ok()?,
        kind,
        size_bytes: shape.size_bytes,
        ways: shape.ways,
        line_bytes,
        store_miss: StoreMiss::Allocate,
        write: WritePolicy::Back,
        penalty_cycles: None,
        shared_by_cpus: text("shared_cpu_list").map_or(1, |list| cpus(&list).max(1)),
        behaviour: Behaviour::default(),
    })
}
