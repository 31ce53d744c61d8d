//! A program that runs already, as the commands see it.

use crate::cli::RunningProgram;
use instrument::{Command, Module, Running};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What the engine is to measure, if the options name a process.
pub(super) fn running(options: &RunningProgram) -> Option<Running> {
    options.pid.map(|pid| Running { pid, window: options.window })
}

/// The program of a process with its arguments, as reports name it.
pub(super) fn command_of(pid: i32) -> Command {
    let text = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let line = text("cmdline");
    let mut words = line.strip_suffix(b"\0").unwrap_or(&line).split(|&byte| byte == 0);
    let first = words.next().filter(|word| !word.is_empty()).map(<[u8]>::to_vec);
    let name = || text("comm").trim_ascii_end().to_vec();
    Command {
        program: OsString::from_vec(first.unwrap_or_else(name)),
        arguments: words.map(|word| OsString::from_vec(word.to_vec())).collect(),
    }
}

/// Whether a process sees other files than this one by the same names. Of a process that there is
/// not, or that nobody may look at, nothing is known: who enters it says so.
pub(super) fn sees_other_files(pid: i32) -> bool {
    let differs = |name: &str| {
        let link = |of: &str| std::fs::read_link(format!("/proc/{of}/{name}")).ok();
        link(&pid.to_string()).is_some_and(|theirs| Some(theirs) != link("self"))
    };
    differs("ns/mnt") || differs("root")
}

/// Makes modules of a process that sees other files than this one readable from here.
pub(super) fn reach_files(pid: i32, modules: &mut [Module]) {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    if !sees_other_files(pid) {
        return;
    }
    for module in modules {
        let inside = module.path.strip_prefix("/").map(Path::to_path_buf);
        if let Ok(inside) = inside {
            let outside = root.join(inside);
            module.path = if outside.exists() { outside } else { std::mem::take(&mut module.path) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_as_its_arguments_say() {
        let own = command_of(std::process::id() as i32);
        assert_eq!(Some(own.program), std::env::args_os().next());
        assert_eq!(own.arguments, std::env::args_os().skip(1).collect::<Vec<_>>());
    }

    #[test]
    fn files_of_a_process_with_the_same_root_keep_their_names() {
        let path = PathBuf::from("/bin/sh");
        assert!(!sees_other_files(std::process::id() as i32));
        assert!(!sees_other_files(i32::MAX), "there is no such process");
        let module = Module { path: path.clone(), start: 0, end: 1, file_offset: 0, process: None };
        let mut modules = [module];
        reach_files(std::process::id() as i32, &mut modules);
        assert_eq!(modules[0].path, path);
    }
}
