//! Files that change while they are mapped.

use super::*;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn text(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| b'a' + (at % 23) as u8).collect()
}

#[test]
fn the_bytes_are_those_of_the_file() {
    for bytes in [1, 4095, 4096, 4097, 300_000] {
        let (file, text) = (file(&text(bytes)), text(bytes));
        let mapped = MappedFile::new(&file, bytes as u64).unwrap();
        for range in [0..bytes, 0..1, bytes - 1..bytes, bytes / 2..bytes + 100_000] {
            assert!(mapped.load(range));
        }
        assert!(mapped.bytes() == text);
        assert!(mapped.still_has(&file, bytes) && !mapped.still_has(&file, bytes + 1));
    }
}

#[test]
fn parts_that_were_given_back_read_as_before() {
    let (bytes, parts) = (5 << 20, 3);
    let (file, text) = (file(&text(bytes)), text(bytes));
    let mapped = MappedFile::new(&file, bytes as u64).unwrap();
    assert!(mapped.load(0..bytes));
    for part in [1, 0, 2, 3, usize::MAX] {
        mapped.give_back(part, parts);
        assert!(mapped.bytes() == text && mapped.still_has(&file, bytes));
    }
    mapped.give_back(0, 1);
    file.set_len(4096).unwrap();
    assert!(mapped.bytes()[4096..].iter().all(|&byte| byte == 0) && !mapped.still_has(&file, 1));
}

#[test]
fn a_file_that_is_cut_reads_as_zeros_and_says_so() {
    for kept in [0, 1, 5000, 8192] {
        let text = text(100_000);
        let file = file(&text);
        let mapped = MappedFile::new(&file, 100_000).unwrap();
        assert!(mapped.bytes() == text && mapped.still_has(&file, 100_000));
        file.set_len(kept).unwrap();
        assert!(!mapped.load(20_000..40_000), "pages that are gone cannot be loaded");
        // From the back to the front, so that several pages fault.
        assert!(mapped.bytes().iter().rev().take(100_000 - kept as usize).all(|&byte| byte == 0));
        assert!(mapped.bytes()[..kept as usize] == text[..kept as usize]);
        assert!(!mapped.still_has(&file, 1), "once zeros were read nothing counts any more");
    }
}

#[test]
fn a_cut_inside_of_the_last_page_is_found() {
    let file = file(&text(3000));
    let mapped = MappedFile::new(&file, 3000).unwrap();
    file.set_len(1000).unwrap();
    assert_eq!(mapped.bytes()[2000], 0);
    assert!(mapped.still_has(&file, 1000) && !mapped.still_has(&file, 1001));
}

#[test]
fn threads_read_on_while_a_file_is_cut() {
    let file = file(&text(1 << 20));
    let mapped = MappedFile::new(&file, 1 << 20).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while mapped.still_has(&file, 1 << 20) {
                    let sum: u64 = mapped.bytes().iter().map(|&byte| u64::from(byte)).sum();
                    assert!(sum > 0);
                }
            });
        }
        file.set_len(4096).unwrap();
    });
    assert!(!mapped.still_has(&file, 1 << 20));
}

#[test]
fn what_cannot_be_mapped_is_refused() {
    let file = file(b"x");
    assert!(MappedFile::new(&file, 0).is_none());
    assert!(MappedFile::new(&file, u64::MAX).is_none());
    let (reader, _writer) = std::io::pipe().unwrap();
    assert!(MappedFile::new(&File::from(std::os::fd::OwnedFd::from(reader)), 10).is_none());
}

/// Faults at an address that no mapped file has, in a process of its own.
#[test]
fn other_faults_end_a_process_as_before() {
    const ASKED: &str = "LIGHTFOOT_MAPPED_FILE_FAULTS";
    if std::env::var_os(ASKED).is_some() {
        let file = file(&text(10));
        let _mapped = MappedFile::new(&file, 10).unwrap();
        // SAFETY: a signal to this process alone, which is there to be ended by it.
        unsafe { libc::raise(libc::SIGBUS) };
        // The handler before this one was put back; a second signal goes to it.
        // SAFETY: a signal to this process alone, which is there to be ended by it.
        unsafe { libc::raise(libc::SIGBUS) };
        // SAFETY: a signal to this process alone, which is there to be ended by it.
        unsafe { libc::raise(libc::SIGBUS) };
        return;
    }
    let name = "tests::other_faults_end_a_process_as_before";
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(ASKED, "1")
        .output()
        .unwrap()
        .status;
    assert_eq!(status.signal(), Some(libc::SIGBUS));
}
