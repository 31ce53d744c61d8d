//! Any text is a checked machine that survives being written and read again, or an error; never a
//! panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::Machine;
use std::path::Path;

fuzz_target!(|text: &str| {
    let Ok(machine) = Machine::from_toml(text, Path::new("fuzz.toml")) else { return };
    machine.check().expect("what is read is checked");
    let again = Machine::from_toml(&machine.to_toml(), Path::new("again.toml")).expect("what is written is read");
    assert_eq!(again, machine);
});
