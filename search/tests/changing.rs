//! Index files that somebody else changes after they were opened, and what only looks like one.

use lightfoot_search::{inspect_file, BytesIndex, Error, Index};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// A hang is a failure, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_file_that_changes_after_it_was_opened_changes_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let keys: Vec<u64> = (0..300_000).map(|i| 11 * i).collect();
    let words: Vec<String> = (0..50_000).map(|i| format!("word {i:06}")).collect();
    for bytes in [&b""[..], b"short", &[0xff; 4096], &[0; 8 << 20]] {
        Index::build(&keys).unwrap().save(&path).unwrap();
        let numbers = Index::<u64>::open(&path).unwrap();
        // The same file, with its number, as a mapping of it would see it.
        std::fs::write(&path, bytes).unwrap();
        for key in (0..3_300_100).step_by(997) {
            assert_eq!(numbers.lower_bound(key), keys.partition_point(|&other| other < key));
        }
        BytesIndex::build(&words).unwrap().save(&path).unwrap();
        let strings = BytesIndex::open(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        for (rank, word) in words.iter().enumerate().step_by(101) {
            assert_eq!(strings.lower_bound(word.as_bytes()), rank);
            assert_eq!(strings.get(rank), Some(word.as_bytes()));
        }
    }
}

#[test]
fn a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let asks: [fn(PathBuf) -> Result<(), Error>; 3] = [
        |path| inspect_file(path).map(|_| ()),
        |path| Index::<u32>::open(path).map(|_| ()),
        |path| BytesIndex::open(path).map(|_| ()),
    ];
    for ask in asks {
        let (answers, path) = (mpsc::channel(), path.clone());
        let tell = answers.0;
        std::thread::spawn(move || tell.send(ask(path).unwrap_err().to_string()));
        let said = answers.1.recv_timeout(PATIENCE).expect("it waits for somebody who writes to the pipe");
        assert!(said.contains("not a regular file"), "{said}");
    }
}

#[test]
fn a_link_in_the_place_of_an_unfinished_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("index"), folder.path().join("other"));
    std::fs::write(&other, "kept").unwrap();
    for name in
        [format!(".index.{}.part", std::process::id()), format!(".index.{}.0.part", std::process::id())]
    {
        std::os::unix::fs::symlink(&other, folder.path().join(name)).unwrap();
    }
    Index::build(&[1_u32, 2, 3]).unwrap().save(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
    assert_eq!(Index::<u32>::open(&path).unwrap().len(), 3);
}
