//! Keeps a line of text from one run to the next, in a folder that nobody else may write to:
//! `cargo run -p lightfoot-private-folder --example remember -- FOLDER [LINE]`.
//!
//! With `LINE` it is written, whole or not at all; without, the line of the last run is printed.

use lightfoot_private_folder::PrivateFolder;
use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;

const NAME: &str = "line";

fn write(folder: &Path, line: &str) -> Result<(), Box<dyn Error>> {
    let folder = PrivateFolder::make(folder).ok_or("the folder is not this user's alone")?;
    // A name of this process's own, so that two writers do not meet.
    let unfinished = format!("{NAME}.{}.new", std::process::id());
    let mut file = folder.create(&unfinished)?;
    writeln!(file, "{line}")?;
    Ok(folder.rename(&unfinished, NAME)?)
}

fn read(folder: &Path) -> Result<String, Box<dyn Error>> {
    let folder = PrivateFolder::open(folder).ok_or("there is no folder that is this user's alone")?;
    let (mut file, _) = folder.file(NAME).ok_or("no line was kept")?;
    let mut line = String::new();
    file.read_to_string(&mut line)?;
    Ok(line)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [folder] => print!("{}", read(folder.as_ref())?),
        [folder, line] => write(folder.as_ref(), line)?,
        _ => return Err("usage: remember FOLDER [LINE]".into()),
    }
    Ok(())
}
