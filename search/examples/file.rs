//! An index of byte strings that is written once and opened by every later run.
//!
//! `cargo run -p lightfoot-search --example file`

use lightfoot_search::{inspect_file, BytesIndex, Error};

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("lightfoot-words-{}.index", std::process::id()));
    let words = ["dance", "dancer", "dancing", "sing", "singer", "song"];
    BytesIndex::build(&words)?.save(&path)?;

    // What a file holds, without knowing it beforehand.
    let facts = inspect_file(&path)?;
    println!("{}: {} keys of type {}, {} bytes", path.display(), facts.n, facts.kind.name(), facts.bytes);

    let index = BytesIndex::open(&path)?;
    for rank in index.starting_with(b"danc") {
        println!("{}", String::from_utf8_lossy(index.get(rank).unwrap_or_default()));
    }
    assert_eq!(index.starting_with(b"sing"), 3..5);

    // A file that is cut off is an error, not a wrong answer.
    let bytes = std::fs::read(&path)?;
    assert!(matches!(BytesIndex::from_bytes(&bytes[..bytes.len() - 64]), Err(Error::Truncated { .. })));
    std::fs::remove_file(&path)?;
    Ok(())
}
