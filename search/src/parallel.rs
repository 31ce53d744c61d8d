//! Distributes work over threads: batches are cut into chunks, and a merge sort. Threads are
//! started for each call and joined before it returns. Without `std` the calling thread does all
//! the work.

use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::cmp::Ordering;

/// The fewest queries or keys for which a thread pays.
const WORTH_A_THREAD: usize = 4096;

/// Calls `work` on every part, each but the first on a thread of its own; returns the results in
/// order.
pub(crate) fn each<P: Send, R: Send>(parts: Vec<P>, work: impl Fn(P) -> R + Sync) -> Vec<R> {
    #[cfg(feature = "std")]
    if parts.len() > 1 {
        return std::thread::scope(|scope| {
            let work = &work;
            let mut parts = parts.into_iter();
            let own = parts.next();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
            let own = own.into_iter().map(work);
            own.chain(others.into_iter().map(|other| match other.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            }))
            .collect()
        });
    }
    parts.into_iter().map(work).collect()
}

/// Calls `work` on matching chunks of two slices, on up to `threads` threads.
///
/// # Panics
/// When the lengths differ.
pub(crate) fn zip_chunks<A: Sync, B: Send>(
    a: &[A],
    b: &mut [B],
    threads: usize,
    work: impl Fn(&[A], &mut [B]) + Sync,
) {
    assert_eq!(a.len(), b.len(), "as many answers as queries");
    let chunk = a.len().div_ceil(threads.max(1)).max(WORTH_A_THREAD);
    if chunk >= a.len() {
        return work(a, b);
    }
    each(a.chunks(chunk).zip(b.chunks_mut(chunk)).collect(), |(a, b)| work(a, b));
}

#[cfg(feature = "std")]
/// Sorts `keys`: chunks on threads of their own, then merged pairwise, each merge on a thread.
pub(crate) fn sort<K: Copy + Send + Sync>(
    keys: &mut Vec<K>,
    threads: usize,
    sort_chunk: impl Fn(&mut [K]) + Sync,
    compare: impl Fn(&K, &K) -> Ordering + Sync,
) {
    // Equal shares are sorted first; then runs are merged pairwise until one is left.
    let mut run = keys.len().div_ceil(threads.max(1)).max(WORTH_A_THREAD);
    std::thread::scope(|scope| {
        let mut chunks = keys.chunks_mut(run);
        let own = chunks.next();
        for chunk in chunks {
            let sort_chunk = &sort_chunk;
            scope.spawn(move || sort_chunk(chunk));
        }
        if let Some(own) = own {
            sort_chunk(own);
        }
    });
    let mut merged = keys.clone();
    while run < keys.len() {
        std::thread::scope(|scope| {
            for (from, to) in keys.chunks(2 * run).zip(merged.chunks_mut(2 * run)) {
                let compare = &compare;
                scope.spawn(move || merge_halves(from, to, run, compare));
            }
        });
        // The two vectors alternate: the output of one round is the input of the next.
        core::mem::swap(keys, &mut merged);
        run *= 2;
    }
}

#[cfg(feature = "std")]
/// Merges two runs on two threads: the first half of the output from the front, the second from the
/// back.
fn merge_halves<K: Copy + Send + Sync>(
    from: &[K],
    to: &mut [K],
    run: usize,
    compare: &(impl Fn(&K, &K) -> Ordering + Sync),
) {
    let (a, b) = from.split_at(run.min(from.len()));
    let middle = to.len() / 2;
    let split = co_rank(a, b, middle, compare);
    let (front, back) = to.split_at_mut(middle);
    std::thread::scope(|scope| {
        scope.spawn(|| merge(&a[..split], &b[..middle - split], front, compare));
        merge(&a[split..], &b[middle - split..], back, compare);
    });
}

#[cfg(feature = "std")]
/// How many of the first `count` merged keys come from `a`.
fn co_rank<K>(a: &[K], b: &[K], count: usize, compare: &impl Fn(&K, &K) -> Ordering) -> usize {
    let (mut low, mut high) = (count.saturating_sub(b.len()), count.min(a.len()));
    while low < high {
        let middle = (low + high) / 2;
        if compare(&a[middle], &b[count - middle - 1]).is_le() {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(feature = "std")]
fn merge<K: Copy>(a: &[K], b: &[K], to: &mut [K], compare: &impl Fn(&K, &K) -> Ordering) {
    let (mut i, mut j) = (0, 0);
    for slot in to {
        let from_a = j == b.len() || (i < a.len() && compare(&a[i], &b[j]).is_le());
        *slot = if from_a { a[i] } else { b[j] };
        i += usize::from(from_a);
        j += usize::from(!from_a);
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn parallel_sorting_sorts() {
        let mut seed = 7u64;
        for n in [0, 1, 4095, 20_000, 100_001] {
            for threads in [1, 2, 3, 8] {
                let mut keys: Vec<u64> = (0..n)
                    .map(|_| {
                        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                        seed >> 50
                    })
                    .collect();
                let mut expected = keys.clone();
                expected.sort_unstable();
                sort(&mut keys, threads, |chunk| chunk.sort_unstable(), u64::cmp);
                assert_eq!(keys, expected);
            }
        }
    }
}
