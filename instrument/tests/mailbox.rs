//! Requests of probed programs: only a process of the run is ever attached or patched, whatever a
//! request names, and a process that knows itself by other numbers is found all the same.

use lightfoot_instrument::probe::{
    launch, Finder, ModuleInfo, Placement, ProbePlan, ProbeRequest, ProbeState,
};
use lightfoot_instrument::{Command, Exit, Module, Options};
use std::path::{Path, PathBuf};

/// Finds functions of one program and of the C library, with `nm` (binutils).
struct Nm {
    wanted: Vec<&'static str>,
    file: PathBuf,
}

fn functions(path: &Path) -> Vec<(String, u64)> {
    let list = |options: &[&str]| {
        let output = std::process::Command::new("nm").args(options).arg("--defined-only").arg(path).output();
        String::from_utf8(output.expect("nm is there: apt-get install binutils").stdout).unwrap()
    };
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = ["T", "t", "W", "w", "i"].contains(&words.next()?);
        is_code.then_some((words.next()?.split('@').next()?.to_owned(), address))
    };
    [list(&["-D"]), list(&[])].iter().flat_map(|text| text.lines().filter_map(row)).collect()
}

/// What is added to the file's addresses where `module` maps it: files of these tests begin their
/// code segments so.
fn bias(module: &Module) -> u64 {
    let bytes = std::fs::read(&module.path).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let count = u16::from_le_bytes([bytes[56], bytes[57]]) as usize;
    let mut headers = (0..count).map(|n| word(32) as usize + 56 * n);
    let at = headers.find(|&at| bytes[at] == 1 && bytes[at + 4] & 1 != 0).expect("a module has code");
    module.start - module.file_offset + word(at + 8) - word(at + 16)
}

impl Finder for Nm {
    fn known(&mut self, module: &Module) -> ModuleInfo {
        let (bias, all) = (bias(module), functions(&module.path));
        let mut known =
            ModuleInfo { text: std::iter::once(module.start..module.end).collect(), ..ModuleInfo::default() };
        known.starts = all.iter().map(|f| f.1 + bias).collect();
        known.starts.sort_unstable();
        known.starts.dedup();
        if module.path == self.file {
            for (counter, name) in self.wanted.iter().enumerate() {
                let found = all.iter().find(|f| f.0 == *name);
                known.wanted.extend(found.map(|f| ProbeRequest { entry: f.1 + bias, counter }));
            }
        }
        known
    }

    fn entry(&mut self, module: &Module, name: &str) -> Option<u64> {
        functions(&module.path).iter().find(|f| f.0 == name).map(|f| f.1 + bias(module))
    }
}

fn compile(name: &str, source: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mailbox");
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.canonicalize().unwrap().join(name);
    let file = out.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let built =
        std::process::Command::new("cc").args(["-O1", "-w", "-pthread", "-o"]).arg(&out).arg(&file).output();
    let built = built.expect("the targets need a C compiler named cc: apt-get install gcc libc6-dev");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    out
}

/// Runs `words` with probes on functions of `file`: its end, what they counted, and what was said.
fn probed(words: &[&str], file: &Path, wanted: &[&'static str]) -> (Exit, Vec<u64>, Vec<String>) {
    let finder = Nm { wanted: wanted.to_vec(), file: file.to_owned() };
    let plan = ProbePlan { finder: Box::new(finder), counters: wanted.len(), placement: Placement::Packed };
    let command =
        Command { program: words[0].into(), arguments: words[1..].iter().map(Into::into).collect() };
    let held = launch(&command, &Options::default(), Some(plan)).unwrap();
    let counters = held.counters().unwrap();
    let ended = held.release().wait().unwrap();
    assert_eq!(ended.states, vec![ProbeState::Patched; wanted.len()]);
    (ended.exit, (0..wanted.len()).map(|n| counters.read(n)).collect(), ended.warnings)
}

/// Writes requests of every kind that name another process, waits for the answers, and calls `work`
/// seven times.
const FORGES: &str = r#"
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void work(void) { sink++; }
static int *mailbox(void) {
    unsigned long start = 0, found = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (!found && fgets(line, sizeof line, maps))
        if (strstr(line, "memfd:lightfoot") && sscanf(line, "%lx-", &start) == 1) found = start;
    fclose(maps);
    return (int *)found;
}
static int tracer(int pid) {
    char name[64], line[256];
    int tracer = -1;
    sprintf(name, "/proc/%d/status", pid);
    FILE *status = fopen(name, "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "TracerPid: %d", &tracer);
    if (status) fclose(status);
    return tracer;
}
int main(int count, char **words) {
    int victim = atoi(words[1]);
    volatile int *box = mailbox();
    if (!box) return 9;
    for (int kind = 1; kind <= 4; kind++) {
        while (!__sync_bool_compare_and_swap(&box[0], 0, 1)) usleep(1000);
        box[1] = box[2] = victim;
        box[3] = kind;
        box[8] = 0;
        box[0] = 2;
        syscall(SYS_futex, box, FUTEX_WAKE, 1, 0, 0, 0);
        for (int turn = 0; turn < 20000 && box[0] == 2; turn++) {
            if (tracer(victim) != 0) return 10;
            usleep(1000);
        }
        if (box[0] != 3) return 11;
        for (int turn = 0; turn < 50; turn++) {
            if (tracer(victim) != 0) return 12;
            usleep(1000);
        }
        box[0] = 0;
    }
    for (int i = 0; i < 7; i++) work();
    return 7;
}
"#;

/// The bytes of a process's executable code.
fn text(pid: u32) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" r-xp ") && !line.contains('[')) {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let address = |text| u64::from_str_radix(text, 16).unwrap();
        let mut bytes = vec![0; (address(end) - address(start)) as usize];
        memory.read_exact_at(&mut bytes, address(start)).unwrap();
        all.extend(bytes);
    }
    all
}

#[test]
fn a_request_that_names_another_process_attaches_nobody() {
    let program = compile("forges", FORGES);
    let mut victim = std::process::Command::new("sleep").arg("100000").spawn().unwrap();
    while !std::fs::read_to_string(format!("/proc/{}/comm", victim.id())).unwrap().starts_with("sleep") {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    let before = text(victim.id());
    let words = [program.to_str().unwrap(), &victim.id().to_string()];
    let (exit, counts, warnings) = probed(&words, &program, &["work"]);
    let after = text(victim.id());
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!((exit, counts), (Exit::Code(7), vec![7]));
    assert!(before == after, "the other process was patched");
    assert!(warnings.iter().any(|said| said.contains("named no process of the run")), "{warnings:?}");
}

/// Forks, loads a library, makes threads and executes itself, in whatever namespace it is.
const INNER: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void work(void) { sink++; }
static void *thread(void *p) { for (int i = 0; i < 1000; i++) work(); return 0; }
int main(int count, char **words) {
    if (count > 1) { thread(0); return 0; }
    pthread_t all[4];
    for (int i = 0; i < 4; i++) pthread_create(&all[i], 0, thread, 0);
    for (int i = 0; i < 4; i++) pthread_join(all[i], 0);
    if (!fork()) execl(words[0], words[0], "again", (char *)0);
    if (!fork()) { thread(0); _exit(0); }
    dlopen("libm.so.6", RTLD_NOW);
    int bad = 0, status;
    while (wait(&status) > 0) bad |= status;
    return bad ? 1 : 8;
}
"#;

#[test]
fn a_process_in_a_namespace_of_its_own_is_found_and_counted() {
    let program = compile("inner", INNER);
    let words = ["unshare", "--pid", "--fork", program.to_str().unwrap()];
    match std::process::Command::new(words[0]).args(&words[1..]).status() {
        Ok(status) if status.code() == Some(8) => {}
        _ => return eprintln!("skipped: this system makes no PID namespaces (unshare --pid --fork)"),
    }
    let (exit, counts, warnings) = probed(&words, &program, &["work"]);
    assert_eq!((exit, counts), (Exit::Code(8), vec![6000]), "{warnings:?}");
}

/// Takes the mailbox as one that was killed while it asked, never gives it back, and loads a
/// library, which asks. Turns of waiting are made short.
const HELD: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void work(void) { sink++; }
int main(void) {
    unsigned long start = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (!start && fgets(line, sizeof line, maps))
        if (!strstr(line, "memfd:lightfoot") || sscanf(line, "%lx-", &start) != 1) start = 0;
    fclose(maps);
    if (!start) return 9;
    volatile int *box = (volatile int *)start;
    alarm(240);
    *(volatile long *)&box[14] = 1000;
    box[0] = 1;
    void *library = dlopen("libm.so.6", RTLD_NOW);
    for (int i = 0; i < 7; i++) work();
    return library ? 7 : 8;
}
"#;

#[test]
fn a_mailbox_that_nobody_gives_back_is_given_up() {
    let program = compile("held", HELD);
    let (exit, counts, warnings) = probed(&[program.to_str().unwrap()], &program, &["work"]);
    assert_eq!((exit, counts), (Exit::Code(7), vec![7]));
    assert!(warnings.iter().any(|said| said.contains("in vain")), "{warnings:?}");
}
