//! Any bytes are read as a stream file: no panic, no unbounded memory, an ending that is named.
#![no_main]

use event::file::Reader;
use event::{Both, Check, Collector};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::new(bytes) else { return };
    let check = Check::new(reader.header().stream, None);
    let mut sinks = Both(Collector::default(), check);
    reader.replay(&mut sinks).expect("a slice can be read");
    assert!(reader.ending().is_some());
    sinks.1.finish();
});
