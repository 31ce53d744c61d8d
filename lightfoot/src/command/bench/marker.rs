//! Which benchmark a thread counts: the names that a program announces, and its marks of regions.
//!
//! A program of crate `lightfoot-bench` announces a benchmark in a process of its own, and says
//! when the region `benchmark` around it counts: it warms up before. In any other program each
//! region is a benchmark of its own name. While a region is open, all threads of the process count;
//! the outermost region is the one that counts. The words of requests are those of
//! `bench/src/request.rs` and of the C header.

use instrument::mark::{Answer, Birth, Deed, Mark, MarkedThread, Marker, ProgramMemory};
use instrument::Module;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Asks whether benchmarks are counted.
const RUNS: u64 = 0x4c46_0000;
/// Names the benchmark of a process: addresses of name and file, and the line.
const NAMES: u64 = 0x4c46_0001;
/// Says that the next region `benchmark` of the process counts.
const STARTS: u64 = 0x4c46_0002;
/// The region that a benchmark with a name opens.
const ANNOUNCED: &str = "benchmark";

/// A benchmark as the program names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    /// Empty where the program does not say it.
    pub(super) file: String,
    pub(super) line: u32,
}

/// The state of a run.
#[derive(Default)]
pub(super) struct Benchmarks {
    starts_cold: bool,
    /// Whether the program announces its benchmarks.
    announces: bool,
    images: BTreeMap<u32, Image>,
}

/// The state of an image.
#[derive(Default)]
pub(super) struct Image {
    threads: Vec<u32>,
    pub(super) announced: Option<Named>,
    /// Whether regions of an announced benchmark count.
    is_started: bool,
    /// The region that counts: its name, its thread, and how often the thread has opened it.
    open: Option<(String, u32, u64)>,
    /// What has been counted since the last cut.
    counts: Option<Named>,
    /// By cut: what had been counted before it.
    cut: Vec<Named>,
    /// Whether a region was opened and closed.
    pub(super) has_counted: bool,
}

impl Benchmarks {
    pub(super) fn new(starts_cold: bool) -> Rc<RefCell<Benchmarks>> {
        Rc::new(RefCell::new(Benchmarks { starts_cold, ..Benchmarks::default() }))
    }

    /// The images, in the order of their beginnings.
    pub(super) fn images(&self) -> &BTreeMap<u32, Image> {
        &self.images
    }

    /// The benchmark that an image counted before its cut of this number, or behind the last one.
    pub(super) fn benchmark(&self, image: u32, cut: u32) -> Option<&Named> {
        let image = self.images.get(&image)?;
        image.cut.get(cut as usize).or(image.counts.as_ref())
    }

    fn opens(&mut self, thread: &MarkedThread, region: &str) -> Vec<Deed> {
        let (cold, announces) = (self.starts_cold, self.announces);
        let image = self.images.entry(thread.image).or_default();
        if let Some((open, by, depth)) = &mut image.open {
            if open == region && *by == thread.thread {
                *depth += 1;
            }
            return Vec::new();
        }
        let named = match &image.announced {
            _ if !announces => Named { name: region.to_owned(), ..Named::default() },
            Some(announced) if region == ANNOUNCED && image.is_started => announced.clone(),
            _ => return Vec::new(),
        };
        image.open = Some((region.to_owned(), thread.thread, 1));
        let mut deeds = Vec::new();
        if let Some(before) =
            image.counts.replace(named).filter(|before| Some(before) != image.counts.as_ref())
        {
            image.cut.push(before);
            deeds.push(Deed::Cut(None));
        }
        deeds.extend(cold.then_some(Deed::Empty));
        deeds.extend(image.threads.iter().map(|&thread| Deed::Open(thread)));
        deeds
    }

    fn closes(&mut self, thread: &MarkedThread, region: &str) -> Vec<Deed> {
        let image = self.images.entry(thread.image).or_default();
        let Some((open, by, depth)) = &mut image.open else { return Vec::new() };
        if open != region || *by != thread.thread {
            return Vec::new();
        }
        *depth -= 1;
        if *depth > 0 {
            return Vec::new();
        }
        (image.open, image.has_counted) = (None, true);
        image.threads.iter().map(|&thread| Deed::Close(thread)).collect()
    }
}

impl Benchmarks {
    fn request(&mut self, thread: &MarkedThread, words: &[u64; 6], memory: &dyn ProgramMemory) -> Answer {
        let image = self.images.entry(thread.image).or_default();
        match *words {
            [RUNS, ..] => self.announces = true,
            [NAMES, name, file, line, ..] => {
                let file = memory.text(file).unwrap_or_default();
                let line = u32::try_from(line).unwrap_or(0);
                image.announced = memory.text(name).map(|name| Named { name, file, line });
            }
            [STARTS, ..] => image.is_started = true,
            _ => return Answer::default(),
        }
        Answer { value: Some(1), ..Answer::default() }
    }
}

impl Marker for Benchmarks {
    fn setting(&self) -> String {
        String::new()
    }

    fn entries(&mut self, _module: &Module) -> Vec<u64> {
        Vec::new()
    }

    fn starts(&mut self, thread: &MarkedThread, _birth: Birth) -> Vec<Deed> {
        let image = self.images.entry(thread.image).or_default();
        image.threads.push(thread.thread);
        image.open.iter().map(|_| Deed::Open(thread.thread)).collect()
    }

    fn reached(&mut self, thread: &MarkedThread, mark: &Mark, memory: &dyn ProgramMemory) -> Answer {
        let deeds = match mark {
            Mark::RegionOpens(region) => self.opens(thread, region),
            Mark::RegionCloses(region) => self.closes(thread, region),
            Mark::Request { words, .. } => return self.request(thread, words, memory),
            _ => Vec::new(),
        };
        Answer { deeds, ..Answer::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory in which every address holds the text `at ADDRESS`.
    struct Texts;

    impl ProgramMemory for Texts {
        fn read(&self, address: u64, bytes: &mut [u8]) -> usize {
            let text = format!("at {address}\0");
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            text.len()
        }
        fn write(&self, _: u64, _: &[u8]) -> usize {
            0
        }
    }

    fn thread(number: u32) -> MarkedThread {
        MarkedThread { image: 0, thread: number, pid: 0 }
    }

    fn pass(all: &Rc<RefCell<Benchmarks>>, number: u32, mark: Mark) -> Vec<Deed> {
        all.borrow_mut().reached(&thread(number), &mark, &Texts).deeds
    }

    fn opens(name: &str) -> Mark {
        Mark::RegionOpens(name.into())
    }

    fn closes(name: &str) -> Mark {
        Mark::RegionCloses(name.into())
    }

    #[test]
    fn all_threads_count_while_the_outermost_region_is_open() {
        let all = Benchmarks::new(true);
        for number in [0, 1] {
            assert!(all.borrow_mut().starts(&thread(number), Birth::Cloned).is_empty());
        }
        assert_eq!(pass(&all, 1, opens("a")), [Deed::Empty, Deed::Open(0), Deed::Open(1)]);
        assert_eq!(all.borrow_mut().starts(&thread(2), Birth::Cloned), [Deed::Open(2)]);
        assert!(pass(&all, 1, opens("b")).is_empty() && pass(&all, 1, closes("b")).is_empty());
        assert!(pass(&all, 1, opens("a")).is_empty() && pass(&all, 1, closes("a")).is_empty());
        assert!(pass(&all, 0, closes("a")).is_empty(), "another thread");
        assert_eq!(pass(&all, 1, closes("a")), [Deed::Close(0), Deed::Close(1), Deed::Close(2)]);
    }

    #[test]
    fn what_was_counted_has_the_name_of_its_region() {
        let all = Benchmarks::new(false);
        all.borrow_mut().starts(&thread(0), Birth::Executed);
        for (name, cut) in [("a", false), ("a", false), ("b", true), ("a", true)] {
            let deeds = pass(&all, 0, opens(name));
            assert_eq!(deeds.first() == Some(&Deed::Cut(None)), cut, "{name}");
            pass(&all, 0, closes(name));
        }
        let all = all.borrow();
        let names: Vec<&str> = (0..3).map(|cut| &*all.benchmark(0, cut).unwrap().name).collect();
        assert_eq!(names, ["a", "b", "a"]);
        assert!(all.benchmark(1, 0).is_none() && all.images()[&0].has_counted);
    }

    #[test]
    fn an_announced_benchmark_has_its_name_and_place() {
        let all = Benchmarks::new(false);
        all.borrow_mut().starts(&thread(0), Birth::Executed);
        let request = |words| Mark::Request { words, default: 0, registers: [0; 17] };
        let answer = |mark| all.borrow_mut().reached(&thread(0), &mark, &Texts).value;
        assert_eq!(answer(request([RUNS, 0, 0, 0, 0, 0])), Some(1));
        assert_eq!(answer(request([0x1001, 0, 0, 0, 0, 0])), None, "it is no Valgrind");
        assert_eq!(answer(request([NAMES, 7, 8, 9, 0, 0])), Some(1));
        assert!(pass(&all, 0, opens(ANNOUNCED)).is_empty(), "it warms up");
        pass(&all, 0, closes(ANNOUNCED));
        assert_eq!(answer(request([STARTS, 0, 0, 0, 0, 0])), Some(1));
        assert!(pass(&all, 0, opens("of its own")).is_empty());
        assert_eq!(pass(&all, 0, opens(ANNOUNCED)), [Deed::Open(0)]);
        assert!(!all.borrow().images()[&0].has_counted);
        let named = Named { name: "at 7".into(), file: "at 8".into(), line: 9 };
        assert_eq!(all.borrow().benchmark(0, 0), Some(&named));
    }
}
