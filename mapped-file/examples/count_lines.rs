//! Counts the lines of a file: `cargo run -p lightfoot-mapped-file --example count_lines -- FILE`.
//!
//! The file is mapped; where it was cut meanwhile, it is read.

use lightfoot_mapped_file::MappedFile;
use std::error::Error;
use std::fs::File;

/// Bytes whose pages are loaded at once.
const PIECE_BYTES: usize = 512 << 10;

fn line_ends(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count()
}

/// The number of line ends of a file that stays as it is.
fn of_mapped(file: &File) -> Option<usize> {
    let mapped = MappedFile::new(file, file.metadata().ok()?.len())?;
    let text = mapped.bytes();
    let mut count = 0;
    for start in (0..text.len()).step_by(PIECE_BYTES) {
        let end = text.len().min(start + PIECE_BYTES);
        mapped.load(start..end);
        count += line_ends(&text[start..end]);
    }
    mapped.still_has(file, text.len()).then_some(count)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: count_lines FILE")?;
    let file = File::open(&path)?;
    match of_mapped(&file) {
        Some(count) => println!("{count}"),
        None => println!("{}", line_ends(&std::fs::read(&path)?)),
    }
    Ok(())
}
