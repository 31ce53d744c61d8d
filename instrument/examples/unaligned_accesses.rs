//! Unaligned accesses: loads and stores whose address is no multiple of their size, and where they
//! are. ATOM's tool of that name.

use lightfoot_instrument::tool::{run_tool, Batch, Instrumenter, Report, Row, Summary, Tool, Value};
use lightfoot_instrument::{Command, Options};
use std::collections::HashMap;
use std::process::ExitCode;

#[derive(Default)]
struct Unaligned {
    accesses: u64,
    /// By address of the instruction.
    unaligned: HashMap<u64, u64>,
}

impl Tool for Unaligned {
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|block, ask| {
            for i in block.instructions() {
                for (number, touch) in i.touches().enumerate().filter(|(_, touch)| touch.size_bytes > 1) {
                    ask.before(&i, Value::Address(number), touch.size_bytes);
                }
            }
        })
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        for event in batch.events() {
            self.accesses += 1;
            if event.value % u64::from(event.tag) != 0 {
                let ip = batch.request(&event).map_or(0, |request| request.ip);
                *self.unaligned.entry(ip).or_default() += 1;
            }
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        let mut places: Vec<(u64, u64)> = self.unaligned.drain().collect();
        places.sort_by_key(|(ip, times)| (std::cmp::Reverse(*times), *ip));
        let unaligned = places.iter().map(|(_, times)| times).sum();
        let row = |(ip, times): &(u64, u64)| Row { name: format!("{ip:#x}"), values: vec![*times] };
        let rows = places.iter().take(20).map(row).collect();
        Ok(Report::totals([("accesses", self.accesses), ("unaligned", unaligned)])
            .with_table(["times"], rows))
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: PROGRAM [ARGUMENTS]...");
        return ExitCode::from(2);
    };
    let command = Command { program, arguments: words.collect() };
    match run_tool(&command, &Options::default(), &mut Unaligned::default()) {
        Ok((outcome, report)) => {
            eprint!("{report}");
            ExitCode::from(outcome.exit.status())
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_status() as u8)
        }
    }
}
