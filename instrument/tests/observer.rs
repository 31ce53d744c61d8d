//! An observer that fails ends the program that it observes, whatever that program waits for.

use event::{Record, Stream};
use lightfoot_instrument::{run, Command, ErrorKind, Observer, Options, Progress};

/// Fails when it is told of progress.
struct Fails;

impl Observer for Fails {
    fn records(&mut self, _thread: u32, _records: &[Record]) {}

    fn progress(&mut self, _progress: &Progress) {
        panic!("an observer of this test fails, as it should");
    }
}

#[test]
fn a_program_that_would_sleep_on_ends_with_its_observer() {
    let command = Command { program: "sleep".into(), arguments: vec!["100000".into()] };
    for stream in [Stream::Counts, Stream::Full] {
        let ran = run(&command, &Options { stream, ..Options::default() }, &mut Fails);
        let error = ran.expect_err("its observer failed");
        assert_eq!(error.kind(), ErrorKind::System);
        assert!(error.to_string().contains("analysis"), "{error}");
    }
}
