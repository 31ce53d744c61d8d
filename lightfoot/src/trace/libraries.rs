//! Finds the files of a program before it starts: the executable, and the libraries that it needs,
//! as the dynamic linker would find them; or those that a running process has mapped.

use anyhow::Result;
use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use symbol::Listing;

/// Folders of libraries that are searched after those that the file and the environment name.
const FOLDERS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

/// The interpreter if `path` is a script; else `path`.
pub(super) fn interpreted(path: PathBuf) -> Result<PathBuf> {
    let mut head = Vec::new();
    std::fs::File::open(&path)?.take(256).read_to_end(&mut head)?;
    let Some(rest) = head.strip_prefix(b"#!") else { return Ok(path) };
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    Ok(line.split_whitespace().next().map_or(path, PathBuf::from))
}

/// The program and its libraries, nearest first.
pub(super) fn files(program: &Path) -> Vec<Listing> {
    let mut files: Vec<Listing> = Listing::read(program).into_iter().collect();
    let mut seen = HashSet::new();
    let mut next = 0;
    while next < files.len() {
        for name in files[next].needed.clone() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let beside =
                files[next].path.parent().map(|folder| folder.join(&name)).filter(|path| path.exists());
            let found = by_name(&name).or(beside).and_then(|path| Listing::read(&path));
            files.extend(found.filter(|found| files.iter().all(|file| file.path != found.path)));
        }
        next += 1;
    }
    files
}

/// The files whose code a running process has mapped, the program first.
pub(super) fn files_of_process(pid: i32) -> Vec<Listing> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let of_code = maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|may| may.contains('x')));
    let path = |line: &str| line.find('/').map(|at| PathBuf::from(&line[at..]));
    let mut seen = HashSet::new();
    let paths = program.into_iter().chain(of_code.filter_map(path)).filter(|path| seen.insert(path.clone()));
    paths.filter_map(|path| Listing::read(&path)).collect()
}

/// The path of a library in the folders of the dynamic linker.
pub(super) fn by_name(name: &str) -> Option<PathBuf> {
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&own).filter(|folder| !folder.as_os_str().is_empty());
    let folders: Vec<PathBuf> = folders.chain(FOLDERS.iter().map(PathBuf::from)).collect();
    folders.iter().map(|folder| folder.join(name)).find(|path| path.exists())
}
