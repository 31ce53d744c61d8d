//! A program that dies under measurement leaves the core dump that it leaves natively, and little
//! more: the engine's memory, gigabytes of address space, is not in it, and a debugger finds the
//! program's own registers and stack.

mod bench;

use bench::{compile, interruptible, Bench, BINARY};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = "#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <string.h>\n\
    #include <sys/wait.h>\n#include <unistd.h>\n\
    __attribute__((noinline))void inner(const char*how){\n\
    if(!strcmp(how,\"abort\")||!strcmp(how,\"child\"))abort();if(!strcmp(how,\"fault\"))*(volatile int*)8=1;\n\
    if(!strcmp(how,\"sent\"))kill(getpid(),SIGQUIT);if(!strcmp(how,\"trap\"))__asm__ volatile(\"int3\");pause();}\n\
    __attribute__((noinline))void outer(const char*how){inner(how);__asm__ volatile(\"\");}\n\
    int main(int c,char**v){char*p=malloc(3<<20);memset(p,7,3<<20);\n\
    if(!strcmp(v[1],\"child\")&&fork()){wait(0);return 0;}outer(v[1]);return 0;}";

/// More than natively: headers of mappings, and the pages of what the engine left behind.
const MORE_MAX: u64 = 4 << 20;

/// Whether a process that dies here leaves a file named `core` (or `core.PID`) in its folder; else
/// says why not.
fn leaves_files() -> bool {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let plain = pattern.trim() == "core" || pattern.trim() == "core.%p";
    if !plain {
        eprintln!("skipped: core dumps go elsewhere here (core_pattern is {})", pattern.trim());
    }
    plain
}

/// The core dump that a command leaves in a folder of its own, if it leaves one.
fn core(bench: &Bench, name: &str, command: &[&Path]) -> Option<PathBuf> {
    let folder = bench.join(name);
    std::fs::create_dir(&folder).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -c unlimited || exit 99; exec \"$@\"", "sh"]).args(command);
    shell.env("LIGHTFOOT_TRANSLATIONS", "off").current_dir(&folder);
    // SIGQUIT would be ignored where the tests run in the background of a script.
    let out = interruptible(&shell).stdin(Stdio::null()).output().unwrap();
    if out.status.code() == Some(99) {
        return None;
    }
    let mut files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_core = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("core");
    files.find(is_core)
}

/// The functions on the stack of a dump, as gdb says; `None` where there is no gdb.
fn stack(program: &Path, core: &Path) -> Option<String> {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "bt"]).arg(program).arg("-c").arg(core);
    gdb.output().ok().map(|out| String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn a_core_dump_is_as_large_as_natively_and_can_be_read() {
    if !leaves_files() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = compile(&bench, "dies", &["-g", "-O0"], SOURCE) else { return };
    let trace = bench.join("trace");
    let words: [&[&str]; 4] = [
        &["count"],
        &["count", "--follow-children"],
        &["cache", "--machine", "cachegrind"],
        &["trace", "--engine", "probe", "--software", "fn:outer", "-o", trace.to_str().unwrap()],
    ];
    for how in ["abort", "fault", "sent", "trap", "child"] {
        let Some(natively) = core(&bench, how, &[&program, Path::new(how)]) else {
            return eprintln!("skipped: core dumps are limited here");
        };
        let size = |path: &Path| path.metadata().unwrap().len();
        for (n, words) in words.iter().enumerate() {
            let mut command: Vec<&Path> = vec![Path::new(BINARY)];
            command.extend(words.iter().map(Path::new));
            command.extend([Path::new("--"), &program, Path::new(how)]);
            let measured = core(&bench, &format!("{how}-{n}"), &command).expect("it dumps as natively");
            let (least, most) = (size(&natively), size(&natively) + MORE_MAX);
            let got = size(&measured);
            assert!(got >= least / 2 && got <= most, "{how}, {words:?}: {got} bytes instead of {least}");
            let Some(stack) = stack(&program, &measured) else {
                eprintln!("skipped: no gdb to read a core dump");
                continue;
            };
            for function in ["inner", "outer", "main"] {
                assert!(stack.contains(function), "{how}, {words:?}: {stack}");
            }
        }
    }
}
