//! Programs that give up privileges, their root or their processes' numbers, and go on: they are
//! measured, and behave as natively.
//!
//! What a program does natively is what it must do. What this system lacks, or forbids, is named
//! and skipped.

mod bench;

use bench::{compile, json, Bench, BINARY};
use std::fs::{self, Permissions};
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Becoming somebody who may do nothing.
const NOBODY: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

/// A folder that everybody may enter; `None`, and said, for a user who cannot become another.
fn bench() -> Option<Bench> {
    let bench = Bench::new();
    fs::set_permissions(bench.path(), Permissions::from_mode(0o755)).unwrap();
    if chown(bench.path(), Some(65534), None).is_err() {
        eprintln!("skipped: only root can give up privileges");
        return None;
    }
    chown(bench.path(), Some(0), None).unwrap();
    Some(bench)
}

fn run(folder: &Path, words: &[&str]) -> Option<Output> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder).stdin(Stdio::null()).env("LC_ALL", "C").output().ok()
}

/// Runs a command natively and measured, children counted and not, and compares.
fn same(bench: &Bench, words: &[&str]) {
    same_under(bench, &["count", "cache"], || (), words);
}

/// [`same`] with these commands, and with something to be done before each run.
fn same_under(bench: &Bench, commands: &[&str], before: impl Fn(), words: &[&str]) {
    before();
    let Some(native) = run(bench.path(), words) else {
        eprintln!("skipped: there is no {} here", words[0]);
        return;
    };
    if !native.status.success() {
        let why = String::from_utf8_lossy(&native.stderr).into_owned();
        eprintln!("skipped: this system refuses {words:?}: {why}");
        return;
    }
    let report = bench.join("report.json");
    let output = ["--format", "json", "-o", report.to_str().unwrap(), "--"];
    for command in commands {
        for followed in [None, Some("--follow-children")] {
            before();
            let options = [&[BINARY, command][..], followed.as_slice(), &output, words].concat();
            let measured = run(bench.path(), &options).unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(text(&measured.stderr), text(&native.stderr), "{options:?}");
            assert_eq!(text(&measured.stdout), text(&native.stdout), "{options:?}");
            assert_eq!(measured.status.code(), native.status.code(), "{options:?}");
            let totals = &json(&fs::read(&report).unwrap())["totals"];
            assert!(totals["instructions"].as_u64().unwrap() > 0, "{options:?}");
        }
    }
}

#[test]
fn a_program_executes_another_as_somebody_else() {
    let Some(bench) = bench() else { return };
    same(&bench, &[&NOBODY[..], &["/bin/echo", "hi"]].concat());
    same(&bench, &[&NOBODY[..], &["--no-new-privs", "/bin/sh", "-c", "/bin/echo $(id -u)"]].concat());
    let script = format!(
        "{} sh -c 'id -u; ls / | wc -l >/dev/null; (echo a; echo b) | cat'; echo end",
        NOBODY.join(" ")
    );
    same(&bench, &["sh", "-c", &script]);
}

#[test]
fn processes_have_other_numbers() {
    let Some(bench) = bench() else { return };
    same(&bench, &["unshare", "-p", "-f", "/bin/echo", "hi"]);
    same(
        &bench,
        &["unshare", "-p", "-f", "--mount-proc", "sh", "-c", "echo $$; (echo a; /bin/echo b) | cat"],
    );
    // The host's number names another process there, or none.
    let many = "for n in 1 2 3 4 5 6 7 8 9; do /bin/echo $n; done";
    same(&bench, &[&["unshare", "-p", "-f", "--mount-proc"][..], &NOBODY, &["sh", "-c", many]].concat());
}

/// A program that needs nothing.
const ALONE: &str = "#include <unistd.h>\n#include <sys/wait.h>\n#include <stdio.h>\n\
    int main(int c,char**v){printf(\"%d %d\\n\",getuid(),getpid()>0);fflush(stdout);\n\
    if(c==1){int s;if(!fork()){execl(\"/alone\",\"alone\",\"again\",(char*)0);_exit(9);}wait(&s);return s;}return 0;}";

#[test]
fn a_program_has_another_root() {
    let Some(bench) = bench() else { return };
    let Some(program) = compile(&bench, "alone", &["-static"], ALONE) else { return };
    let root = bench.join("root");
    fs::create_dir(&root).unwrap();
    fs::copy(&program, root.join("alone")).unwrap();
    let root = root.to_str().unwrap();
    same(&bench, &["chroot", root, "/alone"]);
    same(&bench, &["chroot", "--userspec=65534:65534", root, "/alone"]);
}

/// A program that becomes nobody, forbids that it is looked at, has children, and executes a
/// program that it may not read.
const HIDES: &str = "#include <grp.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <sys/prctl.h>\n#include <sys/wait.h>\n\
    int main(int c,char**v){int s;setgroups(0,0);if(setgid(65534)||setuid(65534))return 1;prctl(PR_SET_DUMPABLE,0);\n\
    for(int i=0;i<3;i++){if(!fork()){printf(\"child %d\\n\",i);return i;}wait(&s);printf(\"%d\\n\",WEXITSTATUS(s));fflush(stdout);}\n\
    if(!fork()){execv(v[1],v+1);return 9;}wait(&s);printf(\"%d\\n\",s);fflush(stdout);execv(v[1],v+1);return 9;}";

#[test]
fn a_program_may_not_be_looked_at() {
    let Some(bench) = bench() else { return };
    let Some(program) = compile(&bench, "hides", &[], HIDES) else { return };
    let unreadable = bench.file("unreadable", &fs::read("/bin/echo").unwrap(), 0o711);
    same(&bench, &[program.to_str().unwrap(), unreadable.to_str().unwrap(), "hi"]);
}

#[test]
fn a_database_is_made_by_a_user_of_its_own() {
    let Some(bench) = bench() else { return };
    let data = bench.join("data");
    let path = data.to_str().unwrap();
    let fresh = || {
        let _ = fs::remove_dir_all(&data);
        fs::create_dir(&data).unwrap();
        chown(&data, Some(65534), Some(65534)).unwrap();
    };
    let words = ["initdb", "--no-sync", "--auth", "trust", "--locale", "C", "-U", "test", "-D", path];
    same_under(&bench, &["count"], fresh, &[&NOBODY[..], &words].concat());
}
