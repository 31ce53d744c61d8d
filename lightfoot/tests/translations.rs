//! Translations that are kept on disk: a second run counts the same, starts faster, and nothing
//! that happens to the files matters. Those that the processes of one run share in memory.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The option that leaves them alone. The environment stays as it is: programs count it.
const NONE: &str = "--no-translation-cache";

/// Runs `words` with translations in `folder` and gives output and report.
fn run(bench: &Bench, folder: &OsStr, command: &[&str], words: &[&str]) -> (Vec<u8>, Value) {
    let report = bench.join("report.json");
    let ran = lightfoot()
        .env("LIGHTFOOT_TRANSLATIONS", folder)
        .env("PYTHONHASHSEED", "0")
        .env("PERL_HASH_SEED", "0")
        .args(command)
        .args(["--format", "json", "-o"])
        .arg(&report)
        .arg("--")
        .args(words)
        .run();
    assert_eq!(ran.said(), "", "{command:?} {words:?}");
    (ran.stdout.clone(), json(&std::fs::read(report).unwrap()))
}

/// What must not depend on where translations come from.
fn same(one: &Value, other: &Value, what: &str) {
    for name in ["totals", "exit_status", "partial"] {
        assert_eq!(one[name], other[name], "{what}");
    }
    for name in ["functions", "opcodes", "libraries"] {
        // Rows of equal counts may change places.
        let rows = |report: &Value| {
            let mut rows: Vec<String> =
                report[name].as_array().unwrap().iter().map(Value::to_string).collect();
            rows.sort();
            rows
        };
        let (one, other) = (rows(one), rows(other));
        assert_eq!(one.iter().zip(&other).find(|(one, other)| one != other), None, "{what}");
        assert_eq!(one.len(), other.len(), "{what}");
    }
}

fn fragments(report: &Value) -> u64 {
    report["engine"]["fragments"].as_u64().unwrap()
}

/// Kept translations; lines and symbols lie in a folder beside them.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| !path.ends_with("lines")).collect()
}

/// A program that repeats exactly: loops, strings, a library.
const REPEATS: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nstatic int order(const void*a,const void*b){return strcmp(a,b);}\n\
    int main(int c,char**v){static char t[500][8];for(int i=0;i<500;i++)sprintf(t[i],\"%d\",i*7919%1009);qsort(t,500,8,order);\n\
    memset(t[499],65,7);puts(t[0]);puts(t[499]);return WHAT;}";

#[test]
fn a_second_run_translates_next_to_nothing_and_counts_the_same() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = compile(&bench, "repeats", &["-DWHAT=0"], REPEATS) else { return };
    let program = program.to_str().unwrap();
    let commands: [&[&str]; 4] =
        [&["count"], &["cache"], &["cache", "--machine", "cachegrind"], &["cache", "--write-backs"]];
    for command in commands {
        let folder = bench.join("translations");
        let none = run(&bench, folder.as_os_str(), &[command, &[NONE]].concat(), &[program]);
        let first = run(&bench, folder.as_os_str(), command, &[program]);
        let second = run(&bench, folder.as_os_str(), command, &[program]);
        let third = run(&bench, folder.as_os_str(), command, &[program]);
        for (output, report) in [&first, &second, &third] {
            assert_eq!(output, &none.0);
            same(report, &none.1, &format!("{command:?}"));
        }
        let translated = [&none, &first, &second, &third].map(|(_, report)| fragments(report));
        assert_eq!(translated[0], translated[1], "{command:?}");
        // The full stream is not kept.
        if !command.contains(&"--write-backs") {
            assert!(
                translated[2] * 20 < translated[1] && translated[3] * 20 < translated[1],
                "{translated:?}"
            );
        }
    }
}

/// A program that maps its own code a second time, at another address in each run, and runs a
/// function there. It runs a larger one where it is.
const MAPS_ITSELF: &str = "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
    static volatile int v;\n\
    #define CASE(n) case n: v+=n*n; if(v&n)v^=n; else v--; break;\n\
    #define TEN(n) CASE(n) CASE(n+1) CASE(n+2) CASE(n+3) CASE(n+4) CASE(n+5) CASE(n+6) CASE(n+7) CASE(n+8) CASE(n+9)\n\
    __attribute__((noinline))int large(void){for(int i=0;i<60;i++)switch(i){TEN(0) TEN(10) TEN(20) TEN(30) TEN(40) TEN(50)}return v;}\n\
    __attribute__((noinline))int work(int n){int s=0;while(n--)s+=n^3;return s;}\n\
    int main(){unsigned long a,b,o,at=(unsigned long)work;char x;FILE*f=fopen(\"/proc/self/maps\",\"r\");\n\
    while(fscanf(f,\"%lx-%lx %*2c%c%*c %lx%*[^\\n]\",&a,&b,&x,&o)==4&&!(at>=a&&at<b));fclose(f);\n\
    char*to=(char*)((0x100000+(unsigned long)getpid()%4000000)<<20),*m=mmap(to,b-a,PROT_READ|PROT_EXEC,MAP_PRIVATE,open(\"/proc/self/exe\",0),o);\n\
    printf(\"%d %d %d %d\\n\",m==to,large(),work(100),((int(*)(int))(m+(at-a)))(100));return 0;}";

#[test]
fn a_second_mapping_at_changing_addresses_leaves_the_others_usable() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "maps-itself", &["-O1"], MAPS_ITSELF) else { return };
    let folder = bench.join("translations");
    let runs = [0; 4].map(|_| run(&bench, folder.as_os_str(), &["count"], &[program.to_str().unwrap()]));
    let native = std::process::Command::new(&program).output().unwrap().stdout;
    assert!(native.starts_with(b"1 ") && runs.iter().all(|(output, _)| *output == native), "{native:?}");
    // The large function alone is more than sixty fragments.
    let translated = runs.map(|(_, report)| fragments(&report));
    assert!(translated[1..].iter().all(|&later| later < 60), "{translated:?}");
}

#[test]
fn children_are_kept_too() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    bench.file("one.c", b"int f(int a,char*b){int s=0;while(a--)s+=b[a]*3;return s;}", 0o644);
    let source = bench.join("one.c");
    let folder = bench.join("translations");
    let words = ["gcc", "-O1", "-S", "-o", "-", source.to_str().unwrap()];
    let command = ["count", "--follow-children"];
    let first = run(&bench, folder.as_os_str(), &command, &words);
    let second = run(&bench, folder.as_os_str(), &command, &words);
    assert_eq!(first.0, second.0);
    assert!(
        fragments(&second.1) * 10 < fragments(&first.1),
        "{} {}",
        fragments(&first.1),
        fragments(&second.1)
    );
    assert!(files(&folder).len() >= 2, "the driver's, the compiler's");
}

/// Without a folder, processes of one run share translations in memory, and leave nothing behind.
#[test]
fn processes_of_one_run_share_translations() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let folder = bench.join("translations");
    let Some(program) = compile(&bench, "repeats", &["-DWHAT=0"], REPEATS) else { return };
    let program = program.to_str().unwrap();
    for command in ["count", "cache"] {
        let times = |times: usize| {
            let line = vec![program; times].join("; ");
            let command = [command, "--follow-children", NONE];
            run(&bench, folder.as_os_str(), &command, &["sh", "-c", &format!("{line}; true")]).1
        };
        let (once, often) = (times(1), times(6));
        let (first, all) = (fragments(&once), fragments(&often));
        assert!(all < first + first / 2, "{command}: {first} fragments once, {all} for six times");
        // Each process counts what the first one did.
        let processes = often["processes"].as_array().unwrap();
        let ran: Vec<&Value> = processes.iter().filter(|process| process["command"][0] == program).collect();
        assert_eq!(ran.len(), 6, "{command}");
        for field in ["instructions", "blocks", "loads", "stores"] {
            assert!(ran.iter().all(|process| process[field] == ran[0][field]), "{command}: {field}");
        }
        assert!(ran[0]["instructions"].as_u64().unwrap() > 100_000, "{command}");
    }
    assert!(!folder.exists(), "nothing is written");
}

#[test]
fn a_program_that_changed_is_translated_anew() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let folder = bench.join("translations");
    // Without a build-id nothing in the first page tells them apart.
    let options = |what| ["-Wl,--build-id=none", what];
    for (what, status) in [("-DWHAT=3", 3), ("-DWHAT=4", 4), ("-DWHAT=4", 4), ("-DWHAT=3", 3)] {
        let Some(program) = compile(&bench, "repeats", &options(what), REPEATS) else { return };
        let words = [program.to_str().unwrap()];
        for command in ["count", "cache"] {
            let with = run(&bench, folder.as_os_str(), &[command], &words);
            let without = run(&bench, folder.as_os_str(), &[command, NONE], &words);
            assert_eq!(with.1["exit_status"], status);
            same(&with.1, &without.1, &format!("{command} {what}"));
        }
    }
}

#[test]
fn damaged_files_and_folders_that_cannot_be_used_are_as_none() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = compile(&bench, "repeats", &["-DWHAT=0"], REPEATS) else { return };
    let words = [program.to_str().unwrap()];
    let folder = bench.join("translations");
    let first = run(&bench, folder.as_os_str(), &["count"], &words);
    let file = files(&folder).pop().unwrap();
    let whole = std::fs::read(&file).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 12) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes.truncate(whole.len() - at / 2);
        std::fs::write(&file, bytes).unwrap();
        let again = run(&bench, folder.as_os_str(), &["count"], &words);
        same(&again.1, &first.1, &format!("damage at {at}"));
    }
    let below_a_file = bench.join("report.json/x");
    for unusable in [Path::new("/proc/none"), Path::new("/dev/null/folder"), &below_a_file] {
        let ran = run(&bench, unusable.as_os_str(), &["count"], &words);
        let none = run(&bench, unusable.as_os_str(), &["count", NONE], &words);
        same(&ran.1, &none.1, &unusable.to_string_lossy());
    }
    let unused = lightfoot()
        .env("LIGHTFOOT_TRANSLATIONS", bench.join("unused"))
        .args(["count", "--no-translation-cache", "--"])
        .args(words)
        .run();
    unused.ends_with(0);
    assert!(!bench.join("unused").exists());
}

#[test]
fn the_folder_is_the_users_cache() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let home = |name: &str, value: &Path| {
        lightfoot()
            .env("LIGHTFOOT_TRANSLATIONS", "")
            .env("XDG_CACHE_HOME", "")
            .env(name, value)
            .args(["count", "true"])
            .run()
            .ends_with(0);
    };
    home("XDG_CACHE_HOME", &bench.join("xdg"));
    assert_eq!(files(&bench.join("xdg/lightfoot/translations")).len(), 1);
    home("HOME", &bench.join("nobody"));
    assert!(!bench.join("nobody").exists(), "a home that is not there was made");
    std::fs::create_dir(bench.join("home")).unwrap();
    home("HOME", &bench.join("home"));
    assert_eq!(files(&bench.join("home/.cache/lightfoot/translations")).len(), 1);
}
