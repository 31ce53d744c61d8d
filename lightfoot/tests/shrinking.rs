//! `lightfoot grep` in files that another process shortens meanwhile: a log that is truncated must
//! not end the search.
//!
//! A search that maps a file dies of SIGBUS when a page of it is gone. Two ways to see that: a
//! reader of the output that waits, so that the file is cut exactly in the middle of its search,
//! and a thread that cuts it and writes it again all the time.

mod bench;

use bench::{lightfoot, unwished, Bench, BINARY};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

const MAPPINGS: [&[&str]; 3] = [&[], &["--mmap"], &["--no-mmap"]];

fn text(bytes: usize) -> Vec<u8> {
    b"a line with a needle, and one without\nhay and hay\n".iter().copied().cycle().take(bytes).collect()
}

/// Starts a search, cuts the file when the first output has come, and reads the rest; its status,
/// or minus the signal.
fn cut_in_the_middle(bench: &Bench, words: &[&str], file: &File) -> i32 {
    file.write_all_at(&text(24 << 20), 0).unwrap();
    let mut command = Command::new(BINARY);
    unwished(&mut command);
    command.args(["grep", "--no-config"]).args(words).current_dir(bench.path());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 1000]).unwrap();
    file.set_len(100_000).unwrap();
    out.read_to_end(&mut Vec::new()).unwrap();
    let status = child.wait().unwrap();
    status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
}

#[test]
fn a_file_that_is_cut_in_the_middle_of_its_search_ends_nothing() {
    let bench = Bench::new();
    std::fs::create_dir(bench.join("folder")).unwrap();
    let file = File::create(bench.join("folder/log")).unwrap();
    for mapping in MAPPINGS {
        for path in ["folder/log", "folder"] {
            for words in [&["-n", "needle"][..], &["-C1", "needle"], &["--color=always", "needle"]] {
                let words = [mapping, words, &["-j1", path]].concat();
                assert_eq!(cut_in_the_middle(&bench, &words, &file), 0, "{words:?}");
            }
        }
        let words = [mapping, &["-j2", "-n", "needle", "folder/log"]].concat();
        assert_eq!(cut_in_the_middle(&bench, &words, &file), 0, "{words:?}");
    }
}

#[test]
fn a_file_that_is_cut_all_the_time_ends_nothing() {
    let bench = Bench::new();
    std::fs::create_dir(bench.join("folder")).unwrap();
    let file = File::create(bench.join("folder/log")).unwrap();
    let text = text(8 << 20);
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !finished.load(Ordering::Relaxed) {
                file.write_all_at(&text, 0).unwrap();
                file.set_len(4099).unwrap();
            }
        });
        let stops = Stops(&finished);
        for mapping in MAPPINGS {
            for path in ["folder/log", "folder"] {
                for threads in ["-j1", "-j2"] {
                    for words in
                        [&["-c", "hay$"][..], &["-vn", "no[td]h"], &["-l", "nothing"], &["--json", "absent"]]
                    {
                        let words = [mapping, &[threads], words, &[path]].concat();
                        for _ in 0..3 {
                            let ran = lightfoot()
                                .args(["grep", "--no-config"])
                                .args(words.iter().map(|word| {
                                    word.replace("folder", bench.join("folder").to_str().unwrap())
                                }))
                                .run();
                            assert!(
                                (0..=2).contains(&ran.status),
                                "{words:?}: {} {}",
                                ran.status,
                                ran.said()
                            );
                        }
                    }
                }
            }
        }
        drop(stops);
    });
}

/// Ends the other thread, whatever ends this one.
struct Stops<'f>(&'f AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
