//! From a pattern to its bit-stream program, and that program on every kernel of this machine.
//!
//! `cargo run -p lightfoot-pattern --example program -- '[0-9]+-[0-9]+'`

use lightfoot_pattern::compile::{compile, CompileOptions};
use lightfoot_pattern::kernel::{Scanner, KERNELS};
use lightfoot_pattern::program::BitProgram;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pattern = std::env::args().nth(1).unwrap_or_else(|| "[0-9]+-[0-9]+".to_owned());
    let hir = regex_syntax::parse(&pattern)?;
    let program = compile(&hir, &CompileOptions::default())?;
    println!("{program}");

    // The text form is the program: it parses back, and can be checked.
    let again = BitProgram::parse(&program.to_string())?;
    assert_eq!(again, program);
    assert!(again.verify().is_ok());

    let text = b"2014-08\nnothing\n7-7 and 8-8\n";
    for &kernel in KERNELS {
        match Scanner::with_kernel(&program, kernel) {
            Some(scanner) => println!("{:>10}: {} lines", kernel.name(), scanner.count_lines(text)),
            None => println!("{:>10}: not on this machine", kernel.name()),
        }
    }
    Ok(())
}
