//! Kept translations while programs and libraries change under them: rebuilt, moved, replaced, at
//! random addresses, crashed.
//!
//! Each program runs natively and then three times with one folder of translations; output, errors
//! and status are the same every time. Where a mend could be to keep nothing at all, the engine's
//! own count shows that the third run took over what the first left.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use std::fmt::Write as _;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// How often each program runs with its kept translations: the first run leaves them, the others
/// use them.
const ROUNDS: usize = 3;

/// A folder of translations, and where programs run.
struct Place {
    bench: Bench,
    kept: Bench,
}

impl Place {
    fn new() -> Place {
        Place { bench: Bench::new(), kept: Bench::new() }
    }

    fn folder(&self) -> PathBuf {
        self.kept.join("translations")
    }

    /// Names of kept translations; lines and symbols lie in a folder beside them.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder()).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "lines").collect()
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.bench.path()).stdin(Stdio::null());
        command.env("LIGHTFOOT_TRANSLATIONS", self.folder()).env("LC_ALL", "C");
        bench::git_by_itself(&mut command).env("PYTHONHASHSEED", "0").env("PERL_HASH_SEED", "0");
        command.output().unwrap()
    }

    /// Runs a program under `count` and gives how many fragments the run translated.
    fn counted(&self, options: &[&str], words: &[&str], native: &Output) -> u64 {
        let report = self.kept.join("report.json");
        let mut measured = vec![bench::BINARY, "count"];
        measured.extend(options);
        measured.extend(["--format", "json", "-o", report.to_str().unwrap(), "--"]);
        measured.extend(words);
        let what = format!("{options:?} {words:?}");
        same(&what, &self.run(&measured), native);
        let report = json(&std::fs::read(report).unwrap());
        assert_eq!(report["partial"], false, "{what}");
        report["engine"]["fragments"].as_u64().unwrap()
    }

    /// Runs a program natively and three times with what is kept; the fragments that each run
    /// translated.
    fn alike(&self, options: &[&str], words: &[&str]) -> [u64; ROUNDS] {
        let native = self.run(words);
        [(); ROUNDS].map(|()| self.counted(options, words, &native))
    }
}

fn same(what: &str, measured: &Output, native: &Output) {
    let status = |output: &Output| output.status.code().or_else(|| Some(128 + output.status.signal()?));
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
    assert_eq!(text(&measured.stderr), text(&native.stderr), "{what}: standard error");
    assert_eq!(text(&measured.stdout), text(&native.stdout), "{what}: output");
    assert_eq!(status(measured), status(native), "{what}: exit status");
}

/// The third run took over what the first one left, or what a run before left of the same files:
/// hardly anything is translated anew.
#[track_caller]
fn took_over(what: &str, translated: [u64; ROUNDS]) {
    // What the forked children of a shell translate is not kept.
    const FEW: u64 = 100;
    let few = if translated[0] < FEW { translated[0] + 1 } else { FEW.max(translated[0] / 5) };
    assert!(translated[2] < few, "{what}: {translated:?}");
}

/// A library's source: so many functions that nobody calls in front of one that is called and that
/// uses the C library.
fn library(fillers: usize, factor: u32) -> String {
    let mut source = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
    for n in 0..fillers {
        let _ =
            writeln!(source, "int filler{n}(int a){{int s={n};for(int j=0;j<a;j++)s+=j*{n}^a;return s;}}");
    }
    let _ = writeln!(
        source,
        "int work(int a){{char b[64];snprintf(b,64,\"%d\",a*{factor});return atoi(b)+strlen(b);}}\n\
         int more(int a){{char b[64];memset(b,a,64);int s={factor};for(int i=0;i<64;i++)s+=b[i]*i;return s;}}"
    );
    source
}

/// Builds a library in `folder`; `None`, and said, where there is no compiler.
fn build(place: &Place, file: &str, source: &str) -> Option<PathBuf> {
    compile(&place.bench, file, &["-shared", "-fPIC"], source)
}

const CALLS: &str = "#include <stdio.h>\nint work(int);int more(int);\n\
    int main(){long s=0;for(int i=0;i<300;i++)s+=work(i)+more(i);printf(\"%ld\\n\",s);return s%7;}";

/// Builds the program that calls the library of the place.
fn caller(place: &Place, libraries: &[&str]) -> Option<PathBuf> {
    let here = place.bench.path().to_str().unwrap();
    let (search, run) = (format!("-L{here}"), format!("-Wl,-rpath,{here}"));
    let mut options = vec!["-Wl,--no-as-needed", &search, &run];
    options.extend(libraries);
    // Libraries stand behind the source on the command line, or they are looked at too early.
    let source = place.bench.file("calls.c", CALLS.as_bytes(), 0o644);
    let built = Command::new("cc")
        .arg("-O1")
        .arg("-o")
        .arg(place.bench.join("calls"))
        .arg(source)
        .args(options)
        .status();
    built.is_ok_and(|status| status.success()).then(|| place.bench.join("calls"))
}

#[test]
fn a_library_that_is_rebuilt_larger_and_smaller() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    let Some(_) = build(&place, "libx.so", &library(0, 3)) else { return };
    let program = caller(&place, &["-lx"]).expect("it links");
    let program = program.to_str().unwrap();
    let growing = (0..8).map(|step| 40 * step);
    for fillers in growing.clone().chain(growing.rev()) {
        build(&place, "libx.so", &library(fillers, 3)).unwrap();
        let translated = place.alike(&[], &[program]);
        took_over(&format!("{fillers} functions"), translated);
    }
    // As large as before, and something else.
    for factor in [5, 7, 5] {
        build(&place, "libx.so", &library(0, factor)).unwrap();
        took_over("another factor", place.alike(&[], &[program]));
    }
    assert_eq!(place.files().len(), 1);
}

#[test]
fn libraries_that_move_by_pages() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    let Some(_) = build(&place, "libx.so", &library(10, 3)) else { return };
    // What is mapped in front of it takes so many pages more.
    let padding = |pages: usize| format!("const char padding[{}]={{1}};\n", pages * 4096 + 1);
    build(&place, "libpad.so", &padding(0)).unwrap();
    let program = caller(&place, &["-lpad", "-lx"]).expect("it links");
    let program = program.to_str().unwrap();
    for pages in (1..=16usize).chain([1, 16, 0]) {
        build(&place, "libpad.so", &padding(pages)).unwrap();
        took_over(&format!("{pages} pages"), place.alike(&[], &[program]));
    }
    // The libraries of two places take turns: none of the runs may take one for the other.
    for pages in [3, 4, 3, 4, 3, 4] {
        build(&place, "libpad.so", &padding(pages)).unwrap();
        let native = place.run(&[program]);
        place.counted(&[], &[program], &native);
    }
}

/// Programs of the system with what they do; small.
const PROGRAMS: &[&[&str]] = &[
    &["ls", "/"],
    &["perl", "-e", "my %h;$h{$_%97}.=$_ for 1..500;print join ',',map{length $h{$_}} sort keys %h"],
    &["git", "--version"],
    &["python3", "-c", "import json;print(json.dumps(list(range(50))))"],
    &["sqlite3", ":memory:", "select 6*7"],
    &["bash", "-c", "for i in 1 2 3;do echo $i;done;exit 3"],
    &["gcc", "--version"],
    &["tar", "--version"],
    &["curl", "--version"],
];

fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !there {
        eprintln!("skipped: there is no {program} here");
    }
    there
}

/// A package that is installed makes `/etc/ld.so.cache` grow, and all libraries lie some pages
/// lower.
#[test]
fn programs_whose_libraries_move_because_the_linkers_cache_grows() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    let Ok(cache) = std::fs::read("/etc/ld.so.cache") else {
        return eprintln!("skipped: there is no /etc/ld.so.cache here");
    };
    let grown = place.bench.join("ld.so.cache");
    let script = format!("mount --bind {} /etc/ld.so.cache && exec \"$@\"", grown.display());
    std::fs::write(&grown, &cache).unwrap();
    let works = Command::new("unshare").args(["-m", "sh", "-c", &script, "sh", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: this user cannot mount in a name space of its own");
    }
    for program in PROGRAMS.iter().filter(|program| is_here(program[0])) {
        for pages in [0, 1, 16, 5] {
            let padding = vec![0; pages * 4096];
            std::fs::write(&grown, [&cache[..], &padding].concat()).unwrap();
            let native = place.run(program);
            let report = place.kept.join("report.json");
            let options = [bench::BINARY, "count", "--format", "json", "-o", report.to_str().unwrap(), "--"];
            for round in 0..ROUNDS {
                let words = [&["unshare", "-m", "sh", "-c", &script, "sh"], &options[..], program].concat();
                same(&format!("{program:?}, {pages} pages, round {round}"), &place.run(&words), &native);
            }
            let report = json(&std::fs::read(report).unwrap());
            let translated = report["engine"]["fragments"].as_u64().unwrap();
            assert!(translated < 2000, "{program:?}, {pages} pages: {translated} translated anew");
        }
    }
}

#[test]
fn programs_of_the_system_run_three_times_at_fixed_and_at_random_addresses() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    for program in PROGRAMS.iter().filter(|program| is_here(program[0])) {
        let files = place.files().len();
        place.alike(&["--aslr"], program);
        assert_eq!(place.files().len(), files, "nothing is kept of random addresses");
        took_over(program[0], place.alike(&[], program));
        place.alike(&["--aslr"], program);
        place.alike(&["--follow-children"], program);
    }
}

#[test]
fn nothing_is_kept_of_a_child_at_random_addresses() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    let source = "#include <sys/personality.h>\n#include <unistd.h>\n#include <sys/wait.h>\n\
        int main(){if(!fork()){personality(0);execlp(\"true\",\"true\",(char*)0);_exit(9);}int s;wait(&s);return WEXITSTATUS(s);}";
    let Some(program) = compile(&place.bench, "random", &[], source) else { return };
    for _ in 0..2 {
        place.alike(&["--follow-children"], &[program.to_str().unwrap()]);
    }
    assert_eq!(place.files().len(), 1, "the program's own");
}

/// A program that has its library replaced, as a package manager does it, and goes on with the old
/// one.
#[test]
fn a_library_that_is_replaced_while_it_runs() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    let source = "#include <stdio.h>\nint work(int);int more(int);\n\
        int main(int c,char**v){long s=0;for(int i=0;i<300;i++)s+=work(i);if(c>1&&rename(v[1],v[2]))return 99;\n\
        void*p=popen(\"true\",\"r\");pclose(p);for(int i=0;i<300;i++)s+=more(i);printf(\"%ld\\n\",s);return 0;}";
    let libraries = [(0, 3), (0, 5), (40, 3), (160, 7), (0, 3)];
    let Some(_) = build(&place, "libx.so", &library(0, 3)) else { return };
    caller(&place, &["-lx"]).expect("it links");
    let here = place.bench.path().to_str().unwrap();
    let link = [&format!("-Wl,-rpath,{here}"), "-Wl,--no-as-needed", &format!("{here}/libx.so")];
    let program = compile(&place.bench, "replaces", &link, source).unwrap();
    let (program, next, current) =
        (program.to_str().unwrap(), place.bench.join("next.so"), place.bench.join("libx.so"));
    for pair in libraries.windows(2) {
        let [old, new] = [pair[0], pair[1]].map(|(fillers, factor)| {
            let built = build(&place, "built.so", &library(fillers, factor)).unwrap();
            std::fs::read(built).unwrap()
        });
        let words = [program, next.to_str().unwrap(), current.to_str().unwrap()];
        let prepare = || {
            // By renaming here too: what is mapped must not be written to.
            place.bench.file("old.so", &old, 0o755);
            std::fs::rename(place.bench.join("old.so"), &current).unwrap();
            place.bench.file("next.so", &new, 0o755);
        };
        prepare();
        let native = place.run(&words);
        for _ in 0..ROUNDS {
            prepare();
            place.counted(&[], &words, &native);
        }
        // Afterwards the new one, from its beginning.
        took_over("the new library", place.alike(&[], &words[..1]));
    }
}

/// Ends by the signal of that number if a file `now` is there.
const ENDS: &str = "#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    static int order(const void*a,const void*b){return strcmp(a,b);}\n\
    int main(int c,char**v){static char t[200][8];for(int i=0;i<200;i++)sprintf(t[i],\"%d\",i*7919%1009);qsort(t,200,8,order);puts(t[0]);\n\
    fflush(stdout);FILE*f=fopen(\"now\",\"r\");int s=0;if(f&&fscanf(f,\"%d\",&s)==1)raise(s);return 0;}";

#[test]
fn a_file_is_given_up_where_a_run_that_used_it_ends_by_a_fault() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    let Some(program) = compile(&place.bench, "ends", &[], ENDS) else { return };
    let words = [program.to_str().unwrap()];
    let measure = || place.run(&[bench::BINARY, "count", "-o", "report.txt", "--", words[0]]);
    let said = || std::fs::read_to_string(place.bench.join("report.txt")).unwrap();
    for fault in [libc_signal::SEGV, libc_signal::ABRT, libc_signal::ILL] {
        took_over("before", place.alike(&[], &words));
        let name = place.files().pop().expect("it is kept");
        place.bench.file("now", fault.to_string().as_bytes(), 0o644);
        assert_eq!(measure().status.code(), Some(128 + fault));
        assert!(said().contains(&name), "no sentence names {name}: {}", said());
        assert!(place.files().is_empty(), "the file is still there");
        // What faults is not kept, so nothing is given up again.
        for _ in 0..2 {
            assert_eq!(measure().status.code(), Some(128 + fault));
            assert!(!said().contains("kept translations") && place.files().is_empty(), "{}", said());
        }
        std::fs::remove_file(place.bench.join("now")).unwrap();
    }
    // Who ends a program says nothing of its code.
    took_over("after", place.alike(&[], &words));
    place.bench.file("now", libc_signal::TERM.to_string().as_bytes(), 0o644);
    assert_eq!(measure().status.code(), Some(128 + libc_signal::TERM));
    assert!(!said().contains("kept translations"), "{}", said());
    assert_eq!(place.files().len(), 1);
}

/// Numbers of signals on x86-64.
mod libc_signal {
    pub(crate) const ILL: i32 = 4;
    pub(crate) const ABRT: i32 = 6;
    pub(crate) const SEGV: i32 = 11;
    pub(crate) const TERM: i32 = 15;
}

#[test]
fn nothing_is_kept_of_a_program_that_asks_for_other_credentials() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    let asks = [
        "setresuid(-1,-1,-1)",
        "setresgid(-1,-1,-1)",
        "setuid(geteuid())",
        "setgid(getegid())",
        "setgroups(0,0)",
        "setfsuid(geteuid())",
        "(getuid()?0:setresuid(65534,65534,65534))",
        "syscall(SYS_capset,0,0)",
        "unshare(0)",
    ];
    for ask in asks {
        let source = format!(
            "#include <unistd.h>\n#include <grp.h>\n#include <sched.h>\n#include <sys/fsuid.h>\n#include <sys/syscall.h>\n\
             int main(){{volatile int s=0;for(int i=0;i<100;i++)s+=i;{ask};return 0;}}"
        );
        let Some(program) = compile(&place.bench, "asks", &["-D_GNU_SOURCE"], &source) else { return };
        place.alike(&[], &[program.to_str().unwrap()]);
        let root_only = ask.starts_with("(getuid()?") && !place.files().is_empty();
        assert!(place.files().is_empty() || root_only, "{ask}: {:?}", place.files());
    }
}

#[test]
fn several_at_once_lose_nothing() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    let Some(program) = compile(&place.bench, "ends", &[], ENDS) else { return };
    let words = [program.to_str().unwrap()];
    let native = place.run(&words);
    let alone = place.counted(&["--no-translation-cache"], &words, &native);
    for _ in 0..3 {
        let _ = std::fs::remove_dir_all(place.folder());
        let start = || {
            Command::new(bench::BINARY)
                .args(["count", "-o", "/dev/null", "--", words[0]])
                .env("LIGHTFOOT_TRANSLATIONS", place.folder())
                .env("LC_ALL", "C")
                .current_dir(place.bench.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let running: Vec<_> = (0..6).map(|_| start()).collect();
        for child in running {
            same("one of six", &child.wait_with_output().unwrap(), &native);
        }
        assert_eq!(place.files().len(), 1, "{:?}", place.files());
        let translated = place.counted(&[], &words, &native);
        assert!(translated * 5 < alone, "{translated} of {alone} translated after six at once");
    }
}

#[test]
fn a_folder_that_is_not_ours_and_private_is_left_alone() {
    if !bench::repeatable() {
        return;
    }
    let place = Place::new();
    // It has lines and many symbols, which are kept too.
    let source = ENDS.to_owned() + "\n" + &bench::idle_functions(5000);
    let Some(program) = compile(&place.bench, "ends", &["-g"], &source) else { return };
    let run = |folder: &Path| {
        for by in ["function", "line"] {
            let ran = lightfoot()
                .env("LIGHTFOOT_TRANSLATIONS", folder)
                .args(["count", "--by", by, "-o", "/dev/null", "--"])
                .arg(&program)
                .run();
            ran.ends_with(0);
        }
    };
    let empty = |folder: &Path| std::fs::read_dir(folder).unwrap().next().is_none();
    let real = place.kept.join("real");
    std::fs::create_dir(&real).unwrap();
    let link = place.kept.join("link");
    symlink(&real, &link).unwrap();
    run(&link);
    run(&place.kept.join("link/"));
    assert!(empty(&real), "written through a link");
    for mode in [0o770, 0o707, 0o777, 0o1777] {
        std::fs::set_permissions(&real, PermissionsExt::from_mode(mode)).unwrap();
        run(&real);
        assert!(empty(&real), "written where others may write ({mode:o})");
    }
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o755)).unwrap();
    if std::os::unix::fs::chown(&real, Some(65534), None).is_ok() {
        // As root has it under `sudo -E`.
        run(&real);
        run(&real.join("made/by/root"));
        assert!(empty(&real), "root wrote into another user's folder");
        std::os::unix::fs::chown(&real, Some(0), None).unwrap();
    } else {
        eprintln!("skipped: only root can give a folder to another user");
    }
    run(&real);
    assert!(!empty(&real), "a folder of ours that others may read will do");
    // The folder within is judged as the one around it.
    let (lines, kept) = (real.join("lines"), |folder: &Path, ending: &str| {
        let files = std::fs::read_dir(folder).unwrap();
        files
            .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|own| own == ending))
            .count()
    });
    assert!(kept(&lines, "lines") > 0 && kept(&lines, "symbols") > 0);
    let elsewhere = place.kept.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::remove_dir_all(&lines).unwrap();
    symlink(&elsewhere, &lines).unwrap();
    run(&real);
    assert!(empty(&elsewhere), "written through a link within");
    std::fs::remove_file(&lines).unwrap();
    std::fs::create_dir(&lines).unwrap();
    std::fs::set_permissions(&lines, PermissionsExt::from_mode(0o707)).unwrap();
    run(&real);
    assert!(empty(&lines), "written within where others may write");
}
