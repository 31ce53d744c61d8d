//! `lightfoot tool`: lists the built-in tools, or runs a program under one (ATOM's third argument).
//!
//! **Leaves out** tables by function and machine-readable reports: a tool's totals and rows are
//! printed as the tool returned them. For more, write a program that calls
//! `instrument::tool::run_tool`.

use crate::cli::Tool;
use crate::run::engine;
use anyhow::{Context, Result};
use instrument::tools::{find, BuiltinTool, Setting, TOOLS};
use instrument::{Command, Options};
use present::exit::{self, Failure};
use present::output::print;
use present::terminal::{beside, printable_lines, Page};

pub(super) fn run(options: &Tool) -> Result<u8> {
    let Some(name) = &options.name else {
        print(&list())?;
        return Ok(0);
    };
    let stock = find(name).ok_or_else(|| unknown(name))?;
    let Some((program, arguments)) = options.program.split_first() else {
        anyhow::bail!("tool {name} needs a program to run: lightfoot tool {name} -- PROGRAM ARGUMENTS");
    };
    let command = Command { program: program.clone(), arguments: arguments.to_vec() };
    measure(stock, &command, options)
}

fn measure(stock: &BuiltinTool, command: &Command, options: &Tool) -> Result<u8> {
    let setting = Setting { output: options.output.clone() };
    let mut tool = (stock.new)(&setting).with_context(|| match &setting.output {
        Some(path) => format!("cannot write {}", path.display()),
        None => format!("tool {}: say where with -o FILE", stock.name),
    })?;
    let (outcome, report) = engine::run_tool(command, &Options::default(), &mut *tool)?;
    let page = Page::of_stderr();
    let warnings = outcome.warnings.iter().map(|warning| page.sentence("warning: ", warning));
    let text = format!("lightfoot tool {}\n{report}{}", stock.name, warnings.collect::<String>());
    present::output::Destination::Stderr.write(printable_lines(&text))?;
    Ok(if outcome.interrupted { exit::INTERRUPTED } else { outcome.exit.status() })
}

fn list() -> String {
    TOOLS.iter().map(|tool| beside(&format!("{:20} ", tool.name), tool.description)).collect()
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    let sentence = format!("there is no tool {name}: the tools are {}", names.join(", "));
    Failure { status: exit::FAILURE, sentence }
}
