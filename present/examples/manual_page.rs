//! Writes the manual page or a shell's completions of a small program from one table:
//! `cargo run -p lightfoot-present --example manual_page -- man | man -l -`, and with `bash`,
//! `zsh`, `fish` or `powershell` for the completions.

use lightfoot_present::completion::{script, Shell};
use lightfoot_present::exit::{of_error, refused};
use lightfoot_present::help::{CommandHelp, Operand, OptionGroup, OptionHelp};
use lightfoot_present::manual::manual;
use lightfoot_present::output::print;
use lightfoot_present::tell;
use std::process::ExitCode;

/// `total`, a program that adds up numbers.
fn total() -> CommandHelp {
    let column = OptionHelp {
        short: Some('c'),
        longs: vec!["column".into()],
        value: Some("N".into()),
        default: Some("1".into()),
        about: "Add the numbers of this column".into(),
        ..OptionHelp::default()
    };
    CommandHelp {
        words: vec!["total".into()],
        about: "Adds up numbers in files".into(),
        usage: vec!["total [OPTIONS] FILE...".into()],
        groups: vec![OptionGroup { title: "Options".into(), options: vec![column] }],
        operands: vec![Operand { name: "FILE".into(), about: "A text file".into(), ..Operand::default() }],
        statuses: &[("0", "Every file was read"), ("125", "Something was wrong")],
        ..CommandHelp::default()
    }
}

fn text(kind: &str) -> anyhow::Result<String> {
    let shell = match kind {
        "man" => return Ok(manual(&total(), &total(), "1.0")),
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        "powershell" => Shell::Powershell,
        _ => return Err(refused(format!("expected man or a shell, got {kind:?}"))),
    };
    Ok(script(&total(), shell))
}

fn main() -> ExitCode {
    let kind = std::env::args().nth(1).unwrap_or_else(|| "man".into());
    match text(&kind).and_then(|text| print(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("manual_page: {error:#}");
            ExitCode::from(of_error(&error))
        }
    }
}
