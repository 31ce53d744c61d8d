//! Folders and files of other users, files that are not private or not whole, several writers at
//! once, and the files that making room removes.

use super::folder::{Folder, Name, NAME_DIGITS};
use super::{Store, MAGIC};
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The bytes that a store reads.
fn read(store: &mut Store) -> Option<Vec<u8>> {
    store.read().map(|body| body.as_ref().to_vec())
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|index| index as u8).collect()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_read_as_it_was_written_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("deep/folder");
    let mut store = Store::new(&inside, b"program");
    assert_eq!(read(&mut store), None);
    let body = body(1000);
    store.write(&body, 7);
    assert_eq!(read(&mut store).as_deref(), Some(&body[..]));
    assert_eq!(read(&mut Store::new(&inside, b"another")), None);
    assert_eq!(names(&inside).len(), 1, "nothing unfinished is left");
    let file = store.path();
    let whole = fs::read(&file).unwrap();
    // Every field of the header, and the body: one changed bit is noticed.
    for at in [0, 8, 15, 16, 23, 24, 500, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        fs::write(&file, &bytes).unwrap();
        assert_eq!(read(&mut store), None, "byte {at} changed");
    }
    for length in [0, 7, 16, 23, 24, 100, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        assert_eq!(read(&mut store), None, "{length} bytes are left");
    }
    // A damaged file is replaced.
    let mut store = Store::new(&inside, b"program");
    assert_eq!(read(&mut store), None);
    store.write(&body, 3);
    assert_eq!(read(&mut store).as_deref(), Some(&body[..]));
}

#[test]
fn a_file_that_others_may_have_written_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("kept");
    let mut store = Store::new(&inside, b"program");
    store.write(&body(100), 1);
    let file = store.path();
    // A file, then a folder, that others may write to.
    for wrong in [0o620, 0o602, 0o666] {
        mode(&file, wrong);
        assert_eq!(read(&mut store), None, "{wrong:o}");
    }
    mode(&file, 0o600);
    assert!(read(&mut store).is_some());
    for wrong in [0o720, 0o702, 0o777] {
        mode(&inside, wrong);
        assert_eq!(read(&mut store), None, "{wrong:o}");
    }
    mode(&inside, 0o700);
    // A link to a usable file, and things that are no files.
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_eq!(read(&mut store), None, "a link");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(read(&mut store), None, "a folder");
    fs::remove_dir(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    if made.is_ok_and(|status| status.success()) {
        assert_eq!(read(&mut store), None, "a pipe, which must not be waited for");
    }
}

#[test]
fn another_users_folder_and_file_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("kept");
    let mut store = Store::new(&inside, b"program");
    store.write(&body(100), 1);
    let other = |path: &Path| std::os::unix::fs::chown(path, Some(65534), None);
    if other(&store.path()).is_err() {
        return eprintln!("skipped: only root can give files to another user");
    }
    assert_eq!(read(&mut store), None, "another user's file");
    let opened = Folder::open(&inside).expect("the folder is ours");
    assert!(!opened.remove(store.path().file_name().unwrap().to_str().unwrap()));
    fs::remove_file(store.path()).unwrap();
    let mut store = Store::new(&inside, b"program");
    store.write(&body(100), 1);
    assert!(read(&mut store).is_some());
    // Under `sudo -E` root meets the folder of another user: it must neither use that folder nor
    // make one in it.
    other(&inside).unwrap();
    let before = names(&inside);
    assert_eq!(read(&mut store), None);
    assert!(!store.give_up());
    Store::new(&inside, b"another").write(&body(100), 1);
    Store::new(&inside.join("new/folder"), b"program").write(&body(100), 1);
    assert_eq!(names(&inside), before);
}

#[test]
fn a_link_to_a_folder_is_no_folder_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, link) = (folder.path().join("kept"), folder.path().join("link"));
    Store::new(&inside, b"program").write(&body(100), 1);
    symlink(&inside, &link).unwrap();
    for name in ["link", "link/", "link/."] {
        let path = folder.path().join(name);
        assert!(Folder::open(&path).is_none() && Folder::make(&path).is_none(), "{name}");
    }
    // A link above the folder is allowed, because the user has made it.
    assert!(Folder::open(&inside).is_some() && Folder::make(&link.join("below")).is_some());
}

#[test]
fn of_two_that_began_without_a_file_the_one_that_knows_more_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = || Store::new(folder.path(), b"program");
    mode(folder.path(), 0o700);
    let (mut one, mut other) = (store(), store());
    assert!(read(&mut one).is_none() && read(&mut other).is_none());
    one.write(&body(200), 20);
    other.write(&body(100), 10);
    assert_eq!(read(&mut store()).unwrap().len(), 200, "the poorer one would have lost ten");
    other.write(&body(300), 30);
    assert_eq!(read(&mut store()).unwrap().len(), 300);
    assert_eq!(names(folder.path()).len(), 1, "nothing unfinished is left");
}

#[test]
fn what_another_run_gave_up_or_replaced_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    mode(folder.path(), 0o700);
    let store = || Store::new(folder.path(), b"program");
    store().write(&body(100), 10);
    let (mut one, mut other) = (store(), store());
    assert!(read(&mut one).is_some() && read(&mut other).is_some());
    // One run that used the file ended by a fault.
    assert!(one.give_up());
    other.write(&body(200), 20);
    assert!(read(&mut store()).is_none(), "what was given up is part of what the other one wrote");
    // A new file is not given up for an old one's faults.
    store().write(&body(300), 30);
    assert!(!other.give_up());
    other.write(&body(400), 40);
    assert_eq!(read(&mut store()).unwrap().len(), 300);
    // The file that was read is replaced, even if it was read again in the meantime.
    let (mut one, mut reader) = (store(), store());
    assert!(read(&mut one).is_some() && read(&mut reader).is_some());
    one.write(&body(250), 25);
    assert_eq!(read(&mut store()).unwrap().len(), 250);
}

#[test]
fn many_writers_at_once_leave_one_whole_file_each() {
    let folder = tempfile::tempdir().unwrap();
    mode(folder.path(), 0o700);
    std::thread::scope(|scope| {
        for writer in 0..8u64 {
            let path = folder.path();
            scope.spawn(move || {
                for round in 0..20u64 {
                    // The body repeats its number of fragments, so a mixture of two files would
                    // show.
                    let fragments = 1 + (writer * 7 + round * 3) % 40;
                    let mut store = Store::new(path, &[(writer % 2) as u8]);
                    if let Some(there) = read(&mut store) {
                        assert_eq!(there.len(), 1000 * there[0] as usize, "half a file");
                    }
                    Store::new(path, &[(writer % 2) as u8])
                        .write(&vec![fragments as u8; 1000 * fragments as usize], fragments);
                }
            });
        }
    });
    for program in 0..2u8 {
        let there = read(&mut Store::new(folder.path(), &[program])).expect("whole");
        assert_eq!(there[0], 40, "the one that knows most stays");
    }
    assert_eq!(names(folder.path()).len(), 2, "nothing unfinished is left");
}

/// A file of a certain age.
fn aged(path: &Path, bytes: &[u8], age_s: u64) {
    fs::write(path, bytes).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
}

#[test]
fn making_room_removes_what_is_ours_and_was_used_least_recently() {
    let folder = tempfile::tempdir().unwrap();
    mode(folder.path(), 0o700);
    let at = |name: &str| folder.path().join(name);
    let own = |digit: &str| digit.repeat(NAME_DIGITS);
    let content = |magic: &[u8]| [magic, &[0u8; 92]].concat();
    for (digit, age_s) in [("a", 300), ("b", 100), ("c", 400), ("d", 0)] {
        aged(&at(&own(digit)), &content(MAGIC), age_s);
    }
    // A file of a former version is removed as well. Files with only the name or only the magic
    // stay, and so do all others.
    aged(&at(&own("e")), &content(b"lftrans2"), 9000);
    aged(&at(&own("f")), &content(b"my notes"), 9000);
    aged(&at("letter.txt"), &content(MAGIC), 9000);
    aged(&at(&own("0")[1..]), &content(MAGIC), 9000);
    aged(&at(&own("A")), &content(MAGIC), 9000);
    aged(&at(&format!("{}.tmp", own("1"))), &content(MAGIC), 9000);
    let kept = folder.path().parent().unwrap().join(format!("kept-{}", std::process::id()));
    aged(&kept, &content(MAGIC), 9000);
    symlink(&kept, at(&own("2"))).unwrap();
    // Two files that were left by a process that ended, and one that is being written.
    aged(&at(&format!("{}.77-1.tmp", own("3"))), b"", 9000);
    aged(&at(&format!("{}.77-2.tmp", own("4"))), b"lftr", 9000);
    aged(&at(&format!("{}.77-3.tmp", own("5"))), b"lftr", 10);
    Folder::open(folder.path()).unwrap().bound(350);
    let mut left = vec![
        own("b"),
        own("d"),
        own("f"),
        String::from("letter.txt"),
        own("0")[1..].to_string(),
        own("A"),
        format!("{}.tmp", own("1")),
        own("2"),
        format!("{}.77-3.tmp", own("5")),
    ];
    left.sort();
    // A file with our name but another magic counts towards the limit, because files are not opened
    // for the sum; but it is not removed.
    let there: Vec<String> = names(folder.path());
    assert!(fs::metadata(&kept).is_ok(), "a link's target was removed");
    fs::remove_file(&kept).unwrap();
    assert_eq!(there, left);
}

#[test]
fn names_that_are_ours() {
    let digits = "0123456789abcdef".repeat(2);
    let with = |rest: &str| Name::parse(&format!("{digits}{rest}"));
    assert_eq!(with(""), Some(Name::Finished));
    assert_eq!(with(".12-34.tmp"), Some(Name::Unfinished));
    for rest in [".tmp", ".12.tmp", ".-.tmp", ".1-.tmp", ".1-2.new", ".1-2.tmp~", "0", "/x", ".a-b.tmp"] {
        assert_eq!(with(rest), None, "{rest}");
    }
    for name in ["", "é", "..", &digits[1..], &digits.to_uppercase(), &format!(".{}", &digits[1..])] {
        assert_eq!(Name::parse(name), None, "{name}");
    }
}
