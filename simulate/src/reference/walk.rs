//! How all twins divide a reference: its parts, its lines, and its counter.

use crate::Geometry;
use event::{Reference, ReferenceKind, WIDE_BYTES};

/// The references as which one counts: each line of a wide reference, or the reference itself.
pub(super) fn parts(reference: &Reference, line_bytes: u32) -> Vec<Reference> {
    let Reference { address, size_bytes, kind, .. } = *reference;
    if kind == ReferenceKind::Fetch || size_bytes <= WIDE_BYTES {
        return vec![*reference];
    }
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < u64::from(size_bytes) {
        let Some(address) = address.checked_add(at) else { break };
        let in_line = u64::from(line_bytes) - address % u64::from(line_bytes);
        let size_bytes = in_line.min(u64::from(size_bytes) - at) as u32;
        parts.push(Reference { address, size_bytes, ..*reference });
        at += in_line;
    }
    parts
}

/// Addresses of the lines that a reference covers, lowest first; none if the level does not exist.
pub(super) fn covered(reference: &Reference, geometry: Option<Geometry>) -> impl Iterator<Item = u64> {
    let line_bytes = geometry.map_or(1, |geometry| u64::from(geometry.line_bytes));
    // A fetch is one line by definition, however large the recorded line was.
    let size_bytes = match reference.kind {
        ReferenceKind::Fetch => 1,
        _ => u64::from(reference.size_bytes.max(1)),
    };
    let first = reference.address / line_bytes;
    let last = reference.address.saturating_add(size_bytes - 1) / line_bytes;
    let count = if geometry.is_some() { last - first + 1 } else { 0 };
    (0..count).map(move |index| (first + index) * line_bytes)
}

/// The entry at `index` of a table, which grows if it is too short.
pub(super) fn at<T: Clone + Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if index >= table.len() {
        table.resize(index + 1, T::default());
    }
    &mut table[index]
}

/// Counts one miss for each level that missed.
pub(super) fn add<const N: usize>(counts: &mut [u64; N], missed: [bool; N]) {
    for (count, missed) in counts.iter_mut().zip(missed) {
        *count += u64::from(missed);
    }
}
