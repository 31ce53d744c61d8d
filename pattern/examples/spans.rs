//! Matching lines with their matches marked, and which of several patterns each line holds.
//!
//! `cargo run -p lightfoot-pattern --example spans`

use lightfoot_pattern::regex::{Case, RegexBuilder};
use lightfoot_pattern::{Regex, RegexSet};
use std::ops::ControlFlow;

const LOG: &[u8] = b"09:14 disk sda1 91% full\n09:15 login from 10.0.0.7\n09:15 disk sdb2 ERROR\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Lines come first: they are found without asking where in them the match is.
    let regex = Regex::new(r"sd[a-z]\d|\d+%")?;
    let _ = regex.matching_lines(LOG, |line| {
        let content = LOG[line].trim_ascii_end();
        println!("{}", String::from_utf8_lossy(content));
        let mut carets = vec![b' '; content.len()];
        regex.matches_of_line(content, |found| carets[found].fill(b'^'));
        println!("{}", String::from_utf8_lossy(&carets).trim_end());
        ControlFlow::Continue(())
    });

    // Options are a builder's: letters of either case, one line at a time.
    let error = RegexBuilder::new().with(|options| options.case = Case::Insensitive).build("error")?;
    assert_eq!(error.first_line(LOG), Some(51..73));

    // One pass for several patterns.
    let patterns = ["disk".to_owned(), "login".to_owned(), "ERROR".to_owned()];
    let set = RegexSet::new(&patterns)?;
    let _ = set.matching_lines(LOG, |line, which| {
        let names: Vec<&str> = which.iter().map(|&index| patterns[index].as_str()).collect();
        println!("bytes {line:?}: {}", names.join(", "));
        ControlFlow::Continue(())
    });
    Ok(())
}
