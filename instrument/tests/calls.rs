//! Running sums against the counts of blocks: both know how often everything ran.

use event::{Record, Stream};
use lightfoot_instrument::call::{is_word, CallReader, Ticks, Transfer};
use lightfoot_instrument::mark::{
    Answer, Birth, Deed, Mark, MarkedThread, Marker, ProgramMemory, SharedMarker,
};
use lightfoot_instrument::{
    run, run_marked, CallRecords, Children, Command, Module, Observer, Options, Profile,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// The last sums of each thread, and the events of all threads.
struct Sums {
    records: CallRecords,
    last: HashMap<u32, Ticks>,
    readers: HashMap<u32, CallReader>,
    calls: u64,
    returns: u64,
    jumps: u64,
}

impl Observer for Sums {
    fn records(&mut self, thread: u32, records: &[Record]) {
        let reader = self.readers.entry(thread).or_insert_with(|| CallReader::new(self.records));
        for event in records.iter().filter(|record| is_word(record)).filter_map(|word| reader.read(word)) {
            let before = self.last.insert(thread, event.ticks).unwrap_or_default();
            assert!(before.instructions < event.ticks.instructions, "sums only grow: {before:?} {event:?}");
            assert!(before.loads <= event.ticks.loads && before.stores <= event.ticks.stores);
            match event.transfer {
                Transfer::Call(_) | Transfer::DirectCall => self.calls += 1,
                Transfer::Return => self.returns += 1,
                Transfer::Jump(_) | Transfer::StubJump { .. } | Transfer::DirectJump => self.jumps += 1,
            }
        }
    }

    fn ticks(&mut self, _image: u32, thread: u32, ticks: Ticks) {
        self.last.insert(thread, ticks);
    }
}

/// Instructions, loads and stores by the counts of blocks.
fn of_profile(profile: &Profile) -> [u64; 3] {
    let mut sums = [0; 3];
    let mut add = |block: u32, first: u32, times: i64| {
        let block = &profile.blocks[block as usize];
        for instruction in
            &profile.instructions[(block.first + first) as usize..(block.first + block.count) as usize]
        {
            let more = [1, instruction.loads, instruction.stores];
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += i64::from(more) * times);
        }
    };
    for (block, number) in profile.blocks.iter().zip(0..) {
        add(number, 0, block.executions as i64);
    }
    for &(block, first_lost, times) in &profile.cut {
        add(block, first_lost, -(times as i64));
    }
    sums.map(|sum| sum as u64)
}

/// A marker that takes each module for one function.
struct Modules;

impl Marker for Modules {
    fn setting(&self) -> String {
        String::new()
    }
    fn entries(&mut self, _: &Module) -> Vec<u64> {
        Vec::new()
    }
    fn function_around(&mut self, module: &Module, _: u64) -> Option<Range<u64>> {
        Some(module.start..module.end)
    }
    fn starts(&mut self, thread: &MarkedThread, _: Birth) -> Vec<Deed> {
        vec![Deed::Open(thread.thread)]
    }
    fn reached(&mut self, _: &MarkedThread, _: &Mark, _: &dyn ProgramMemory) -> Answer {
        Answer::default()
    }
}

#[track_caller]
fn agree(arguments: &[&str], records: CallRecords) {
    agree_with(arguments, records, None);
}

/// Compares the sums, and returns the number of jumps that were recorded.
#[track_caller]
fn agree_with(arguments: &[&str], records: CallRecords, marker: Option<SharedMarker>) -> u64 {
    let command = Command {
        program: arguments[0].into(),
        arguments: arguments[1..].iter().map(|argument| argument.into()).collect(),
    };
    let options = Options {
        stream: Stream::Counts,
        calls: records,
        children: Children::Followed,
        ..Options::default()
    };
    let (last, readers) = (HashMap::new(), HashMap::new());
    let mut sums = Sums { records, last, readers, calls: 0, returns: 0, jumps: 0 };
    let outcome = match marker {
        Some(marker) => run_marked(&command, &options, &mut sums, marker),
        None => run(&command, &options, &mut sums),
    };
    let outcome = outcome.expect("it runs");
    let of = |part: fn(&Ticks) -> u64| sums.last.values().map(part).sum::<u64>();
    let [instructions, loads, stores] = of_profile(&outcome.profile);
    assert_eq!(of(|ticks| ticks.instructions), instructions, "{arguments:?}");
    if records == CallRecords::References {
        assert_eq!([of(|ticks| ticks.loads), of(|ticks| ticks.stores)], [loads, stores], "{arguments:?}");
    }
    assert!(sums.calls > 100 && sums.calls.abs_diff(sums.returns) < 200, "{} {}", sums.calls, sums.returns);
    sums.jumps
}

#[test]
fn jumps_within_a_function_are_not_recorded() {
    for records in [CallRecords::Instructions, CallRecords::References] {
        let program = ["/bin/sh", "-c", "i=0; while [ $i -lt 200 ]; do i=$((i+1)); done"];
        let all = agree_with(&program, records, None);
        let between = agree_with(&program, records, Some(Rc::new(RefCell::new(Modules))));
        assert!(between < all, "{between} of {all} jumps lead into other modules");
    }
}

#[test]
fn the_sums_of_all_threads_are_those_of_all_blocks() {
    for records in [CallRecords::Instructions, CallRecords::References] {
        agree(&["/bin/true"], records);
        agree(&["/bin/sh", "-c", "ls -lR /usr/lib/x86_64-linux-gnu > /dev/null 2>&1"], records);
        agree(&["/bin/sh", "-c", "ls /usr/bin | sort | sort -r > /dev/null"], records);
    }
}

#[test]
fn signals_and_processes_leave_the_sums_whole() {
    let script = "trap 'n=$((n+1))' USR1; for i in 1 2 3 4 5 6 7 8 9; do kill -USR1 $$; done; /bin/true; (exit 3); echo $n";
    agree(&["/bin/sh", "-c", script], CallRecords::References);
}
