//! Folders and files that are refused, and names that lead elsewhere.

use super::*;
use std::io::{Read, Write};
use std::os::unix::fs::{chown, symlink, PermissionsExt};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// A temporary folder to which nobody else may write, whatever the umask is.
fn temporary() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    mode(folder.path(), 0o700);
    folder
}

/// An identifier of a user that is not this one.
const NOBODY: u32 = 65534;

#[test]
fn a_file_is_read_back_as_it_was_written() {
    let temporary = temporary();
    let inside = temporary.path().join("made/here");
    assert!(PrivateFolder::open(&inside).is_none());
    let folder = PrivateFolder::make(&inside).unwrap();
    folder.create("one.new").unwrap().write_all(b"image").unwrap();
    assert_eq!(folder.create("one.new").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    folder.rename("one.new", "one").unwrap();
    let mut text = String::new();
    folder.file("one").unwrap().0.read_to_string(&mut text).unwrap();
    assert_eq!(text, "image");
    folder.remove("one").unwrap();
    assert!(folder.file("one").is_none() && folder.files().unwrap().is_empty());
}

#[test]
fn files_that_others_may_write_and_links_are_no_files() {
    let temporary = temporary();
    let folder = PrivateFolder::open(temporary.path()).unwrap();
    let file = temporary.path().join("one");
    folder.create("one").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
    for wrong in [0o620, 0o602] {
        mode(&file, wrong);
        assert!(folder.file("one").is_none(), "{wrong:o}");
    }
    mode(&file, 0o600);
    symlink("one", temporary.path().join("link")).unwrap();
    fs::create_dir(temporary.path().join("folder")).unwrap();
    assert!(folder.file("link").is_none() && folder.file("folder").is_none());
    assert!(folder.file("one").is_some());
    let [listed] = &folder.files().unwrap()[..] else { panic!("one regular file") };
    assert_eq!((listed.name.as_str(), listed.bytes), ("one", 0));
    // A link is removed, and its target stays.
    folder.remove("link").unwrap();
    assert!(file.exists());
}

#[test]
fn files_are_listed_with_their_length_and_time() {
    let temporary = temporary();
    let folder = PrivateFolder::open(temporary.path()).unwrap();
    let mut file = folder.create("one").unwrap();
    file.write_all(b"image").unwrap();
    let quarter = Duration::from_millis(250);
    let now = SystemTime::now();
    for time in [now, UNIX_EPOCH, UNIX_EPOCH + quarter, UNIX_EPOCH - quarter, UNIX_EPOCH - 5 * quarter] {
        file.set_modified(time).unwrap();
        // File systems may keep coarser times than the clock has.
        let kept = file.metadata().unwrap().modified().unwrap();
        let expected = ListedFile { name: "one".into(), bytes: 5, modified: kept };
        assert_eq!(folder.files().unwrap(), [expected]);
    }
}

#[test]
fn a_folder_of_others_is_left_alone() {
    let temporary = temporary();
    let (inside, link) = (temporary.path().join("inside"), temporary.path().join("link"));
    PrivateFolder::make(&inside).unwrap().create("one").unwrap();
    symlink(&inside, &link).unwrap();
    assert!(
        PrivateFolder::open(&link).is_none()
            && PrivateFolder::make(&temporary.path().join("link/")).is_none()
    );
    for wrong in [0o770, 0o707, 0o1777] {
        mode(&inside, wrong);
        assert!(
            PrivateFolder::open(&inside).is_none() && PrivateFolder::make(&inside).is_none(),
            "{wrong:o}"
        );
    }
    mode(&inside, 0o700);
    if chown(&inside, Some(NOBODY), None).is_err() {
        return eprintln!("skipped: only root can give a folder to another user");
    }
    assert!(PrivateFolder::open(&inside).is_none() && PrivateFolder::make(&inside).is_none());
    assert!(PrivateFolder::make(&inside.join("below")).is_none() && !inside.join("below").exists());
    // A file of another user in a folder of this one.
    chown(&inside, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    chown(inside.join("one"), Some(NOBODY), None).unwrap();
    assert!(PrivateFolder::open(&inside).unwrap().file("one").is_none());
}

#[test]
fn a_folder_within_is_judged_as_the_one_around_it() {
    let temporary = temporary();
    let (path, inside) = (temporary.path().join("a"), temporary.path().join("a/b"));
    let around = PrivateFolder::make(&path).unwrap();
    assert!(around.inner("b").is_none() && !inside.exists());
    around.make_inner("b").unwrap().create("one").unwrap();
    assert_eq!(fs::metadata(&inside).unwrap().mode() & 0o7777, 0o700);
    assert!(around.inner("b").unwrap().file("one").is_some());
    for name in ["", ".", "..", "../a", "b/", "/tmp"] {
        assert!(around.inner(name).is_none() && around.make_inner(name).is_none(), "{name}");
    }
    symlink("b", path.join("link")).unwrap();
    assert!(around.inner("link").is_none() && around.make_inner("link").is_none());
    assert!(around.inner("b").unwrap().make_inner("one").is_none(), "a file is no folder");
    for wrong in [0o770, 0o707] {
        mode(&inside, wrong);
        assert!(around.inner("b").is_none() && around.make_inner("b").is_none(), "{wrong:o}");
    }
    mode(&inside, 0o700);
    // What was opened is used, wherever the path leads meanwhile.
    fs::rename(&path, temporary.path().join("moved")).unwrap();
    fs::create_dir(&path).unwrap();
    around.make_inner("c").unwrap();
    assert!(temporary.path().join("moved/c").exists() && !path.join("c").exists());
    if chown(temporary.path().join("moved/b"), Some(NOBODY), None).is_err() {
        return eprintln!("skipped: only root can give a folder to another user");
    }
    assert!(around.inner("b").is_none() && around.make_inner("b").is_none());
}

#[test]
fn a_folder_keeps_its_files_when_its_path_names_another() {
    let temporary = temporary();
    let (path, moved) = (temporary.path().join("a"), temporary.path().join("b"));
    let folder = PrivateFolder::make(&path).unwrap();
    fs::rename(&path, &moved).unwrap();
    fs::create_dir(&path).unwrap();
    folder.create("one").unwrap();
    assert!(moved.join("one").exists() && !path.join("one").exists());
}

#[test]
fn names_lead_nowhere_else() {
    let temporary = temporary();
    let folder = PrivateFolder::make(&temporary.path().join("inside")).unwrap();
    fs::write(temporary.path().join("outside"), b"").unwrap();
    for name in ["", ".", "..", "../outside", "/etc/passwd", "a/b", "one/", "./one", "one/."] {
        assert_eq!(folder.create(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        assert!(folder.file(name).is_none() && folder.remove(name).is_err(), "{name}");
        assert!(folder.rename("one", name).is_err(), "{name}");
    }
    assert!(temporary.path().join("outside").exists());
}

#[test]
fn one_holder_of_the_lock_at_a_time() {
    let temporary = temporary();
    let open = || PrivateFolder::open(temporary.path()).unwrap();
    let (one, other) = (open(), open());
    let held = one.lock(Duration::ZERO).unwrap();
    assert!(other.lock(Duration::from_millis(5)).is_none());
    drop(held);
    assert!(other.lock(Duration::ZERO).is_some());
}
