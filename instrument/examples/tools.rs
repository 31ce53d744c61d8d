//! Runs a stock tool on a program and prints its report: `tools NAME [-o FILE] PROGRAM ARGUMENTS…`;
//! without arguments, lists the tools.

use lightfoot_instrument::tool::run_tool;
use lightfoot_instrument::tools::{find, Setting, TOOLS};
use lightfoot_instrument::{Command, Options};
use std::error::Error;
use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let Some(name) = arguments.next() else {
        TOOLS.iter().for_each(|t| println!("{:20} {}", t.name, t.description));
        return Ok(ExitCode::SUCCESS);
    };
    let stock = name.to_str().and_then(find).ok_or("no such tool")?;
    let mut setting = Setting::default();
    if arguments.next_if(|a| a == "-o").is_some() {
        setting.output = arguments.next().map(Into::into);
    }
    let program = arguments.next().ok_or("which program?")?;
    let command = Command { program, arguments: arguments.collect() };
    let (outcome, report) = run_tool(&command, &Options::default(), &mut *(stock.new)(&setting)?)?;
    eprint!("{report}");
    Ok(ExitCode::from(outcome.exit.status()))
}
