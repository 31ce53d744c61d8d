//! Computes the miss curve on a separate thread.
//!
//! A curve takes about as long as the simulation of a hierarchy, and both read the same records.
//! This thread gets a copy of each batch, which costs little, and runs on the program's core while
//! the program waits for room in the ring. It starts before the program, because the observer's
//! thread is kept off the program's core, and threads inherit the processors of their creator.

use event::Record;
use simulate::distance::{CurveSizes, MissCurve, StackDistances};
use simulate::Sharing;
use std::collections::HashMap;
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender};
use std::thread::JoinHandle;

/// The most batches that wait for the thread.
const BATCHES_MAX: usize = 8;

/// Which records count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// All records.
    All,
    /// Records with odd numbers, which block-order analysis gives to records inside of a region.
    Odd,
}

/// A thread that measures stack distances, image by image.
pub struct Distances {
    to: SyncSender<Batch>,
    /// Batches that were processed, for reuse.
    back: Receiver<Vec<Record>>,
    worker: JoinHandle<MissCurve>,
}

struct Batch {
    image: u32,
    thread: u32,
    records: Vec<Record>,
    behind: Behind,
}

/// What follows a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// Maybe more records of its thread.
    Records,
    /// The end of its thread.
    EndOfThread,
    /// The end of its image.
    EndOfImage,
}

impl Distances {
    /// Starts the thread, with empty caches of `sizes` for each image and thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(sizes: CurveSizes, counted: Counted) -> std::io::Result<Distances> {
        let (to, batches) = sync_channel(BATCHES_MAX);
        let (give_back, back) = channel();
        let work = move || {
            let mut images = HashMap::new();
            let mut curve = MissCurve::default();
            for Batch { image, thread, mut records, behind } in batches {
                let distances = images.entry(image).or_insert_with(|| empty(&sizes));
                take(distances, counted, thread, &records);
                match behind {
                    Behind::Records => {}
                    Behind::EndOfThread => distances.end_thread(thread),
                    Behind::EndOfImage => {
                        images.remove(&image).iter().for_each(|distances| curve.add(&distances.curve()));
                    }
                }
                records.clear();
                // After the end, nothing receives the records.
                let _ = give_back.send(records);
            }
            images.values().for_each(|distances| curve.add(&distances.curve()));
            curve
        };
        let worker = std::thread::Builder::new().name("distances".into()).spawn(work)?;
        Ok(Distances { to, back, worker })
    }

    /// Sends records of one thread of an image.
    pub fn records(&self, image: u32, thread: u32, records: &[Record]) {
        if !records.is_empty() {
            self.send(image, thread, records, Behind::Records);
        }
    }

    /// Says that no more records of this thread follow, and frees its caches.
    pub fn thread_ends(&self, image: u32, thread: u32) {
        self.send(image, thread, &[], Behind::EndOfThread);
    }

    /// Says that no more records of this image follow, and frees its caches.
    pub fn ends(&self, image: u32) {
        self.send(image, 0, &[], Behind::EndOfImage);
    }

    fn send(&self, image: u32, thread: u32, records: &[Record], behind: Behind) {
        let mut copy = self.back.try_recv().unwrap_or_default();
        copy.extend_from_slice(records);
        // Sending fails if the thread has panicked, which `finish` reports.
        let _ = self.to.send(Batch { image, thread, records: copy, behind });
    }

    /// The miss curve of all images together.
    ///
    /// # Panics
    /// If the thread has panicked, with its message.
    pub fn finish(self) -> MissCurve {
        drop(self.to);
        self.worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn empty(sizes: &CurveSizes) -> StackDistances {
    StackDistances::new(sizes, Sharing::PerThread).data_only()
}

fn take(distances: &mut StackDistances, counted: Counted, thread: u32, records: &[Record]) {
    if counted == Counted::All {
        return distances.records(thread, records);
    }
    let is_inside = |record: &Record| !record.site().is_multiple_of(2);
    for records in records.chunk_by(|one, next| is_inside(one) == is_inside(next)) {
        match is_inside(&records[0]) {
            true => distances.records(thread, records),
            false => distances.warm(thread, records),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::RecordKind;

    #[test]
    fn images_have_caches_of_their_own_and_regions_count_alone() {
        let load = |site, line: u64| Record::new(RecordKind::Load, 8, site, line * 64).unwrap();
        let sizes = CurveSizes::doubling(64, 64, 128).unwrap();
        let distances = Distances::start(sizes, Counted::Odd).unwrap();
        // Of the lines 1 2 1 1 2, the records with odd numbers are 2 and the last two.
        let batches = [vec![load(0, 1), load(1, 2)], vec![load(2, 1), load(3, 1), load(5, 2)]];
        for image in [0, 7] {
            batches.iter().for_each(|batch| distances.records(image, 3, batch));
            // A thread with the number of one that has ended finds empty caches.
            distances.thread_ends(image, 3);
            distances.records(image, 3, &[load(1, 2)]);
            distances.ends(image);
        }
        distances.records(7, 3, &[load(1, 1)]);
        assert_eq!(distances.finish().data(), [(64, 2 * 3 + 1), (128, 2 * 2 + 1)]);
    }
}
