//! `lightfoot heap`, and DHAT and Massif of `lightfoot valgrind`: programs whose blocks and
//! accesses are known, and Valgrind's own DHAT where it is installed.

mod bench;

use bench::{compile, json, lightfoot, Bench, BINARY};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Nodes of the list.
const NODES: u64 = 100;

/// `make` allocates a list of `NODES` nodes of 24 bytes, and writes 16 bytes of each; `walk` reads
/// these 16 bytes; `drop` reads 8 and frees the node. `grow` resizes a block of 10 bytes to 30 and
/// to 20, and leaves it; `unused` allocates five blocks that nobody touches, one of them with no
/// bytes, and leaves two.
const LIST: &str = r#"
#include <stdlib.h>
struct node { struct node *volatile next; volatile long value; long never; };
#define APART __attribute__((noinline, noclone))
APART struct node *make(int count) {
    struct node *list = 0;
    for (int i = 0; i < count; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = list;
        node->value = i;
        list = node;
    }
    return list;
}
APART long walk(struct node *list) {
    long sum = 0;
    while (list) { sum += list->value; list = list->next; }
    return sum;
}
APART void drop(struct node *list) {
    while (list) { struct node *next = list->next; free(list); list = next; }
}
char *kept[5];
APART void grow(void) {
    char *volatile block = malloc(10);
    block = realloc(block, 30);
    block = realloc(block, 20);
    kept[0] = block;
}
APART void unused(void) {
    void *at = 0;
    kept[1] = calloc(3, 5);
    kept[2] = aligned_alloc(64, 128);
    if (posix_memalign(&at, 256, 1000)) abort();
    kept[3] = malloc(0);
    kept[4] = realloc(0, 40);
    free(kept[1]); free(kept[2]); free(at);
}
int main(void) {
    struct node *list = make(100);
    long sum = walk(list);
    drop(list);
    grow();
    unused();
    return sum != 4950;
}
"#;

/// The report of a program, and its places by the innermost function.
struct Heap(Value);

impl Heap {
    fn of(bench: &Bench, program: &Path) -> Heap {
        let ran =
            lightfoot().within(bench.path()).args(["heap", "--format", "json", "--"]).arg(program).run();
        ran.ends_with(0);
        Heap(json(ran.said().as_bytes()))
    }

    /// Sums of a column over the places whose innermost frame is in a function.
    fn sum(&self, function: &str, column: &str) -> u64 {
        self.sites(function).iter().map(|site| site[column].as_u64().unwrap()).sum()
    }

    fn sites(&self, function: &str) -> Vec<&Value> {
        let is_own = |site: &&Value| self.name(&site["stack"][0]) == function;
        self.0["sites"].as_array().unwrap().iter().filter(is_own).collect()
    }

    fn name(&self, frame: &Value) -> &str {
        let frame = frame.as_u64().unwrap() as usize;
        self.0["frames"][frame]["function"].as_str().unwrap()
    }
}

#[test]
fn a_list_has_the_blocks_and_accesses_that_its_source_says() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "list", &["-O1", "-g"], LIST) else { return };
    let heap = Heap::of(&bench, &program);
    let list = |column| heap.sum("make", column);
    assert_eq!((list("bytes"), list("blocks")), (24 * NODES, NODES));
    assert_eq!((list("most_bytes"), list("peak_bytes"), list("end_bytes")), (24 * NODES, 24 * NODES, 0));
    assert_eq!((list("written_bytes"), list("read_bytes")), (16 * NODES, (16 + 8) * NODES));
    // Of each node `next` is written once and read twice, `value` written and read once.
    let accesses = heap.sites("make")[0]["accesses"].as_array().unwrap();
    let expected: Vec<u64> = [[3 * NODES; 8], [2 * NODES; 8], [0; 8]].concat();
    assert_eq!(accesses.iter().map(|count| count.as_u64().unwrap()).collect::<Vec<_>>(), expected);
    let stack: Vec<&str> =
        heap.sites("make")[0]["stack"].as_array().unwrap().iter().map(|frame| heap.name(frame)).collect();
    assert_eq!(stack, ["make", "main"]);
    // A block that is resized counts again; what is kept counts as read and written.
    let grown = |column| heap.sum("grow", column);
    assert_eq!((grown("bytes"), grown("blocks")), (10 + 30 + 20, 3));
    assert_eq!((grown("end_bytes"), grown("end_blocks"), grown("most_bytes")), (20, 1, 30));
    assert_eq!((grown("read_bytes"), grown("written_bytes")), (10 + 20, 10 + 20));
    // No bytes count as one.
    let unused = |column| heap.sum("unused", column);
    assert_eq!((unused("bytes"), unused("blocks")), (15 + 128 + 1000 + 1 + 40, 5));
    assert_eq!((unused("untouched"), unused("end_bytes"), unused("end_blocks")), (5, 41, 2));
    assert_eq!(heap.sites("unused").len(), 5, "each call is a place of its own");
    let all = &heap.0["total"];
    assert_eq!(all["bytes"], 24 * NODES + 60 + 1184);
    assert_eq!((&all["peak_bytes"], &all["peak_blocks"]), (&Value::from(24 * NODES), &Value::from(NODES)));
    assert!(heap.0["warnings"].as_array().unwrap().is_empty(), "{}", heap.0["warnings"]);
}

#[test]
fn lives_are_counted_in_instructions() {
    // Four instructions a turn between an allocation and its end.
    const SOURCE: &str = r#"
#include <stdlib.h>
void spin(long n);
__asm__(".text\n.globl spin\n.type spin,@function\nspin: mov %rdi,%rax\n1: nop\n nop\n dec %rax\n"
        " jnz 1b\n nop\n ret\n.size spin,.-spin");
int main(int argc, char **argv) {
    for (int i = 0; i < 10; i++) { char *volatile block = malloc(100); spin(atol(argv[1])); free(block); }
    return 0;
}
"#;
    let bench = Bench::new();
    let Some(program) = compile(&bench, "lives", &["-O1"], SOURCE) else { return };
    let life = |turns: &str| {
        let ran = lightfoot().args(["heap", "--format", "json", "--"]).arg(&program).arg(turns).run();
        let report = json(ran.ends_with(0).said().as_bytes());
        report["sites"][0]["lifetimes"].as_u64().unwrap()
    };
    let (short, long) = (life("1000"), life("3000"));
    assert_eq!(long - short, 10 * 4 * 2000);
    assert!(short > 10 * 4 * 1000);
}

#[test]
fn operators_of_cpp_count_once_and_exceptions_leave_no_function_open() {
    const SOURCE: &str = r#"
#include <new>
#include <cstdlib>
struct alignas(64) Wide { char bytes[100]; };
void *volatile kept;
__attribute__((noinline)) void make() {
    for (int i = 0; i < 10; i++) { int *one = new int; *(volatile int *)one = i; delete one; }
    long *many = new long[7]; kept = many; delete[] many;
    Wide *wide = new Wide; kept = wide; delete wide;
    try { kept = ::operator new((size_t)1 << 60); } catch (std::bad_alloc &) {}
    kept = ::operator new(24, std::nothrow);
    kept = malloc(9);
}
int main() { make(); }
"#;
    let bench = Bench::new();
    let source = bench.file("objects.cc", SOURCE.as_bytes(), 0o644);
    let program = bench.join("objects");
    let built =
        Command::new("c++").args(["-std=c++17", "-O1", "-g", "-w", "-o"]).arg(&program).arg(&source).status();
    if !built.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: there is no C++ compiler (c++) here");
    }
    let heap = Heap::of(&bench, &program);
    let sum = |column| heap.sum("make()", column);
    assert_eq!((sum("bytes"), sum("blocks")), (10 * 4 + 56 + 128 + 24 + 9, 14));
    assert_eq!((sum("end_bytes"), sum("end_blocks"), sum("written_bytes")), (33, 2, 40));
}

#[test]
fn a_program_without_a_known_allocator_is_told_what_to_do() {
    const SOURCE: &str = r#"
__asm__(".text\n.globl _start\n_start: mov $60,%eax\n xor %edi,%edi\n syscall");
"#;
    let bench = Bench::new();
    let Some(program) = compile(&bench, "bare", &["-static", "-nostdlib"], SOURCE) else { return };
    let ran = lightfoot().arg("heap").arg(&program).run();
    ran.ends_with(0).says("have a function named malloc").says("without strip");
    lightfoot().args(["heap", "--frames", "0", "true"]).run().fails_with(125).says("expected 1 to 500");
    lightfoot().args(["heap", "/no/such/program"]).run().fails_with(127).in_one_line();
    lightfoot().args(["heap", "sh", "-c", "exit 7"]).run().ends_with(7);
}

#[test]
fn all_formats_have_the_same_sums() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "list", &["-O1", "-g"], LIST) else { return };
    let shown = |format: &str| {
        let ran = lightfoot().args(["heap", "--format", format, "--"]).arg(&program).run();
        ran.ends_with(0).said()
    };
    let bytes = 24 * NODES + 60 + 1184;
    assert!(shown("text").contains("  allocated          3,644 bytes in 108 blocks\n"), "{}", shown("text"));
    assert!(shown("csv").lines().nth(1).unwrap().starts_with(&format!("{bytes},108,")));
    let dhat: Value = serde_json::from_str(&shown("dhat")).unwrap();
    let points = dhat["pps"].as_array().unwrap();
    assert_eq!(points.iter().map(|point| point["tb"].as_u64().unwrap()).sum::<u64>(), bytes);
    let frames = dhat["ftbl"].as_array().unwrap();
    assert!(frames.iter().any(|frame| frame.as_str().unwrap().contains(": make (source.c:8)")), "{frames:?}");
}

#[test]
fn threads_share_a_heap() {
    const SOURCE: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
__attribute__((noinline)) void *work(void *unused) {
    for (int i = 0; i < 1000; i++) { char *block = malloc(32); *(volatile long *)block = i; free(block); }
    return malloc(50);
}
void *volatile passed[64];
__attribute__((noinline)) void *pass(void *unused) {
    for (int i = 0; i < 20000; i++) {
        while (__atomic_load_n(&passed[i % 64], __ATOMIC_ACQUIRE)) sched_yield();
        __atomic_store_n(&passed[i % 64], malloc(100), __ATOMIC_RELEASE);
    }
    return 0;
}
__attribute__((noinline)) void *take(void *unused) {
    for (int i = 0; i < 20000; i++) {
        void *block;
        while (!(block = __atomic_load_n(&passed[i % 64], __ATOMIC_ACQUIRE))) sched_yield();
        free(block);
        __atomic_store_n(&passed[i % 64], 0, __ATOMIC_RELEASE);
    }
    return 0;
}
void *last(void *block);
__asm__(".text\n.globl last\n.type last,@function\nlast: jmp free@plt\n.size last,.-last\n");
__attribute__((noinline)) void *hold(void) { return malloc(200); }
int main(void) {
    pthread_t threads[4];
    void *block;
    for (int i = 0; i < 4; i++) { pthread_create(&threads[0], 0, last, hold()); pthread_join(threads[0], 0); }
    pthread_create(&threads[0], 0, pass, 0);
    pthread_create(&threads[1], 0, take, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) { pthread_join(threads[i], &block); free(block); }
    return 0;
}
"#;
    let bench = Bench::new();
    let Some(program) = compile(&bench, "shared", &["-O1", "-g", "-pthread"], SOURCE) else { return };
    let heap = Heap::of(&bench, &program);
    let sum = |column| heap.sum("work", column);
    assert_eq!((sum("bytes"), sum("blocks")), (4 * (32_000 + 50), 4 * 1001));
    assert_eq!((sum("written_bytes"), sum("end_bytes")), (4 * 8000, 0));
    // One thread allocates what another one frees, and their records come in any order.
    let passed = |column| heap.sum("pass", column);
    assert_eq!((passed("bytes"), passed("blocks"), passed("end_blocks")), (2_000_000, 20_000, 0));
    // What a thread's first function frees by its last jump is no block that the C library kept.
    let held = |column| heap.sum("hold", column);
    assert_eq!((held("bytes"), held("blocks"), held("end_blocks")), (800, 4, 0));
}

/// The lines of a log of DHAT that have sums, without the process's number.
fn sums(log: &str, wanted: &[&str]) -> Vec<String> {
    let behind = log.lines().filter_map(|line| line.split_once("== "));
    let lines = behind.map(|(_, line)| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| wanted.iter().any(|start| line.starts_with(start))).collect()
}

#[test]
fn sums_are_those_of_dhat() {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|out| out.status.success()) {
        return eprintln!("skipped: there is no valgrind here (package valgrind)");
    }
    let bench = Bench::new();
    let Some(list) = compile(&bench, "list", &["-O1", "-g"], LIST) else { return };
    let list = list.to_str().unwrap();
    for words in
        [&[list][..], &["sort", "/etc/passwd"], &["perl", "-e", "my %h; $h{$_} = 'x' x $_ for 1..300"]]
    {
        // Variables are blocks in some programs. Some packages start Valgrind by a shell, which
        // sets `PWD`, extends the path of libraries, and drops names that are none to it.
        let folder = bench.path();
        let common = |program: &str| {
            let mut command = Command::new(program);
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
            command.env("LIGHTFOOT_TRANSLATIONS", "off").env("PERL_HASH_SEED", "0");
            command.current_dir(folder).env("PWD", folder);
            command
        };
        let own = ["--run-libc-freeres=no", "--run-cxx-freeres=no", "--dhat-out-file=/dev/null"];
        let theirs = common("valgrind").arg("--tool=dhat").args(own).args(words).output().unwrap();
        let theirs = sums(&String::from_utf8_lossy(&theirs.stderr), &["Total", "At "]);
        if theirs.len() < 3 {
            eprintln!("skipped: valgrind cannot run {words:?} here");
            continue;
        }
        // Valgrind adds these variables.
        let (_, preloaded) = preloaded();
        let mut ours = common(BINARY);
        ours.env("LD_PRELOAD", preloaded).env("LD_LIBRARY_PATH", "/usr/lib/debug");
        ours.env("GLIBCPP_FORCE_NEW", "1").env("GLIBCXX_FORCE_NEW", "1");
        ours.args(["valgrind", "--tool=dhat", "--dhat-out-file=o"]).args(words);
        let ours = ours.output().unwrap();
        let ours = sums(&String::from_utf8_lossy(&ours.stderr), &["Total", "At "]);
        assert_eq!(ours, theirs, "{words:?}");
    }
}

/// A program whose heap grows and falls: 100 blocks of 1000 to 1099 bytes, which `fill` gets from
/// `get`, and 50 of 8 bytes.
const GROWS: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) char *get(long n){
    char *p = malloc(n);
    for (long i = 0; i < n; i++) p[i] = i;
    return p; }
__attribute__((noinline)) void fill(char **p){ for (long i = 0; i < 100; i++) p[i] = get(1000 + i); *p[0] = 1; }
char *all[100], *small[50];
int main(void){ fill(all);
    for (int i = 0; i < 50; i++) small[i] = malloc(8);
    for (int i = 0; i < 100; i++) free(all[i]);
    return 0; }
"#;
/// What its blocks of `get` have together.
const FILLED_BYTES: u64 = 100 * 1000 + 99 * 100 / 2;

/// A snapshot in a file of Massif: its fields, and the lines of its tree.
type Snapshot<'a> = (BTreeMap<&'a str, &'a str>, Vec<&'a str>);

/// The snapshots of a file of Massif.
fn snapshots(text: &str) -> Vec<Snapshot<'_>> {
    let mut all = Vec::new();
    for part in text.split("#-----------\nsnapshot=").skip(1) {
        let is_field = |line: &&str| line.contains('=') && !line.contains(": ");
        let (fields, tree): (Vec<&str>, Vec<&str>) = part.lines().skip(2).partition(is_field);
        all.push((fields.iter().filter_map(|line| line.split_once('=')).collect(), tree));
    }
    all
}

#[test]
fn massif_shows_how_a_heap_grows_and_whose_it_is() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "grows", &["-O1", "-g"], GROWS) else { return };
    let run = |options: &[&str]| {
        let command = lightfoot().within(bench.path()).args(["valgrind", "--tool=massif", "-q"]);
        command.args(options).args(["--massif-out-file=m"]).arg(&program).run().ends_with(0);
        std::fs::read_to_string(bench.join("m")).unwrap()
    };
    let text = run(&["--heap-admin=0", "--max-snapshots=40"]);
    let described = "desc: -q --heap-admin=0 --max-snapshots=40 --massif-out-file=m";
    assert!(text.starts_with(&format!("{described}\ncmd: {}\n", program.display())), "{text}");
    let all = snapshots(&text);
    assert!((20..40).contains(&all.len()), "{}", all.len());
    let number = |snapshot: &Snapshot<'_>, key: &str| snapshot.0[key].parse::<u64>().unwrap();
    assert!(all.windows(2).all(|pair| number(&pair[0], "time") <= number(&pair[1], "time")));
    let peaks: Vec<&Snapshot<'_>> = all.iter().filter(|one| one.0["heap_tree"] == "peak").collect();
    assert_eq!(peaks.len(), 1, "{text}");
    let most = FILLED_BYTES + 50 * 8;
    assert_eq!(number(peaks[0], "mem_heap_B"), most);
    let padding: u64 = (1000..1100u64).map(|size| size.next_multiple_of(16) - size).sum();
    assert_eq!(number(peaks[0], "mem_heap_extra_B"), padding + 50 * 8);
    let expected = [
        (format!("n2: {most} (heap allocation functions)"), ""),
        (format!(" n1: {FILLED_BYTES} 0x"), ": get (source.c:4)"),
        (format!("  n1: {FILLED_BYTES} 0x"), ": fill (source.c:7)"),
        (format!("   n0: {FILLED_BYTES} 0x"), ": main (source.c:9)"),
        (" n0: 400 in 1 place, all below massif's threshold (1.00%)".to_owned(), ""),
    ];
    assert_eq!(peaks[0].1.len(), expected.len(), "{text}");
    for (line, (start, end)) in peaks[0].1.iter().zip(&expected) {
        assert!(line.starts_with(start) && line.ends_with(end), "{line}");
    }
    let text = run(&["--alloc-fn=get", "--depth=1", "--threshold=0"]);
    let of_fill = format!(" n0: {FILLED_BYTES} 0x");
    assert!(text.lines().any(|line| line.starts_with(&of_fill) && line.contains(": fill (")), "{text}");
    assert!(!text.contains(": get (") && !text.contains("below massif's threshold"), "{text}");
    match Command::new("ms_print").arg(bench.join("m")).output() {
        Ok(output) => {
            let page = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && page.contains("(peak)"), "{page}");
        }
        Err(_) => eprintln!("skipped: ms_print is not installed"),
    }
    let refused = |option: &str, sentence: &str| {
        let words = ["valgrind", "--tool=massif", option, "true"];
        lightfoot().within(bench.path()).args(words).run().ends_with(1).says(sentence);
    };
    refused("--stacks=yes", "stacks are not followed");
    refused("--time-unit=ms", "time goes by instructions");
    refused("--max-snapshots=5", "expected 10 to 1000");
}

/// The folder of Valgrind's libraries, and those that it has the program load.
fn preloaded() -> (&'static str, String) {
    const FOLDER: &str = "/usr/libexec/valgrind";
    let names = ["vgpreload_core-amd64-linux.so", "vgpreload_dhat-amd64-linux.so"];
    let there = names.map(|name| format!("{FOLDER}/{name}"));
    let all = there.iter().all(|path| Path::new(path).is_file());
    (FOLDER, if all { there.join(":") } else { String::new() })
}

#[test]
fn a_file_of_dhat_has_what_its_readers_look_for() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "list", &["-O1", "-g"], LIST) else { return };
    let run = |options: &[&str]| {
        let command = lightfoot().within(bench.path()).args(["valgrind", "--tool=dhat"]);
        command.args(options).arg(&program).run()
    };
    run(&["--dhat-out-file=named.%p", "--log-file=log"]).ends_with(0);
    let log = std::fs::read_to_string(bench.join("log")).unwrap();
    let pid = log.strip_prefix("==").unwrap().split_once("==").unwrap().0;
    let file = json(&std::fs::read(bench.join(&format!("named.{pid}"))).unwrap());
    assert_eq!(file["pid"].as_u64().unwrap().to_string(), pid);
    assert_eq!(sums(&log, &["Total"]), ["Total: 3,644 bytes in 108 blocks"]);
    assert_eq!(sums(&log, &["At t-end"]), ["At t-end: 61 bytes in 3 blocks"]);
    let deepest = |file: &Value| {
        let points = file["pps"].as_array().unwrap().iter();
        points.map(|point| point["fs"].as_array().unwrap().len()).max()
    };
    assert_eq!(deepest(&file), Some(2));
    run(&["--num-callers=2", "--dhat-out-file=short"]).ends_with(0);
    assert_eq!(deepest(&json(&std::fs::read(bench.join("short")).unwrap())), Some(1));
    run(&["--mode=stack"]).ends_with(1).says("expected heap, copy or ad-hoc");
    let version = Command::new(BINARY).args(["valgrind", "--tool=dhat", "--version"]).output().unwrap();
    assert_eq!(version.stdout, b"valgrind-3.26.0\n");
}

/// Copies by functions of its own that have the C library's names, and tells DHAT of events.
const COPIES: &str = r#"
#include <stddef.h>
#define APART __attribute__((noinline, noclone))
static char from[4096], to[4096];
void *memcpy(void *to, const void *from, size_t count) {
    for (size_t i = 0; i < count; i++) ((volatile char *)to)[i] = ((const char *)from)[i]; return to; }
void *memmove(void *to, const void *from, size_t count) { return memcpy(to, from, count); }
APART void often(size_t count) { memcpy(to, from, count); __asm__ volatile("" ::: "memory"); }
APART void within(size_t count) { memmove(to, to + 1, count); __asm__ volatile("" ::: "memory"); }
APART void happens(long units) {
    volatile long words[6] = { 0x44480000, units, 0, 0, 0, 0 }; long answer = 7;
    __asm__ volatile("rol $3,%%rdi\n rol $13,%%rdi\n rol $61,%%rdi\n rol $51,%%rdi\n xchg %%rbx,%%rbx"
        : "+d"(answer) : "a"(words) : "cc", "memory"); }
int main(void) {
    for (int i = 0; i < 10; i++) { often(100 + i); happens(i); }
    within(1000); within(0); happens(50); return 0; }
"#;

/// By innermost functions, the outermost last: the sums of a file of DHAT.
fn points(file: &Value) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for point in file["pps"].as_array().unwrap() {
        let name = |frame: &Value| {
            let text = file["ftbl"][frame.as_u64().unwrap() as usize].as_str().unwrap();
            text.split(' ').nth(1).unwrap().to_owned()
        };
        let stack: Vec<String> = point["fs"].as_array().unwrap().iter().map(name).collect();
        let sum = sums.entry(stack.join(" ")).or_insert((0, 0));
        *sum = (sum.0 + point["tb"].as_u64().unwrap(), sum.1 + point["tbk"].as_u64().unwrap());
    }
    sums
}

#[test]
fn copies_and_events_are_added_up_by_their_stacks() {
    let bench = Bench::new();
    let options =
        ["-O1", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", "-fno-tree-loop-distribute-patterns"];
    let Some(program) = compile(&bench, "copies", &options, COPIES) else { return };
    let run = |mode: &str| {
        let command = lightfoot().within(bench.path()).args(["valgrind", "--tool=dhat", mode]);
        command.args(["--dhat-out-file=out", "--log-file=log"]).arg(&program).run().ends_with(0);
        let log = std::fs::read_to_string(bench.join("log")).unwrap();
        (points(&json(&std::fs::read(bench.join("out")).unwrap())), log)
    };
    let (copies, _) = run("--mode=copy");
    assert_eq!(copies["often main"], (1045, 10), "{copies:?}");
    assert_eq!(copies["within main"], (1000, 2), "{copies:?}");
    assert_eq!(copies["memmove within main"], (1000, 2), "one calls the other: {copies:?}");
    let (events, log) = run("--mode=ad-hoc");
    let expected = [("happens main".to_owned(), (95, 11))];
    assert_eq!(events, BTreeMap::from(expected));
    assert_eq!(sums(&log, &["Total"]), ["Total: 95 units in 11 events"]);
}

#[test]
fn a_function_that_is_left_by_a_jump_is_no_caller() {
    // `outer` calls `leaf`, which calls `deep`, and then jumps to `tail`, which allocates from a
    // deeper frame than that of `leaf`.
    const SOURCE: &str = r#"
#include <stdlib.h>
void outer(void);
__asm__(".text\n"
  ".globl deep\n.type deep,@function\ndeep: ret\n.size deep,.-deep\n"
  ".globl leaf\n.type leaf,@function\nleaf: call deep\n ret\n.size leaf,.-leaf\n"
  ".globl outer\n.type outer,@function\nouter: sub $8,%rsp\n call leaf\n add $8,%rsp\n jmp tail\n.size outer,.-outer\n"
  ".globl tail\n.type tail,@function\ntail: sub $104,%rsp\n mov $48,%edi\n call malloc@plt\n add $104,%rsp\n ret\n.size tail,.-tail\n");
int main(void) { outer(); return 0; }
"#;
    let bench = Bench::new();
    let Some(program) = compile(&bench, "jumps", &["-O1"], SOURCE) else { return };
    let heap = Heap::of(&bench, &program);
    let stack = heap.sites("tail")[0]["stack"].as_array().unwrap();
    assert_eq!(stack.iter().map(|frame| heap.name(frame)).collect::<Vec<_>>(), ["tail", "main"]);
}

/// A program that allocates, forks a child that does and frees what it inherited, and starts
/// itself, which allocates too.
const FAMILY: &str = r#"
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define APART __attribute__((noinline))
APART char *first(void) { char *own = malloc(1000); *own = 1; return own; }
APART char *second(void) { char *own = malloc(500); *own = 1; return own; }
APART char *third(void) { char *own = malloc(70); *own = 1; return own; }
APART void happens(long units) {
    volatile long words[6] = { 0x44480000, units, 0, 0, 0, 0 }; long answer = 7;
    __asm__ volatile("rol $3,%%rdi\n rol $13,%%rdi\n rol $61,%%rdi\n rol $51,%%rdi\n xchg %%rbx,%%rbx"
        : "+d"(answer) : "a"(words) : "cc", "memory"); }
int main(int count, char **words) {
    char *again[] = { words[0], "again", 0 }; pid_t child; int status;
    if (count > 1) return *third() != 1;
    char *own = first(); happens(10);
    if (!fork()) { char *more = second(); happens(3); free(own); _exit(*more != 1); }
    wait(&status);
    if (status || posix_spawn(&child, words[0], 0, 0, again, environ)) return 1;
    waitpid(child, &status, 0); return status + *own - 1; }
"#;

#[test]
fn heaps_of_children_go_on_from_their_makers() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "family", &["-O1", "-g", "-D_GNU_SOURCE"], FAMILY) else { return };
    let run = |folder: &str, options: &[&str]| {
        let folder = bench.join(folder);
        std::fs::create_dir(&folder).unwrap();
        let command = lightfoot().within(&folder).args(["valgrind", "--log-file=log.%p"]).args(options);
        command.arg(&program).run().ends_with(0);
        let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let (logs, files): (Vec<_>, Vec<_>) = names.partition(|path| path.file_stem().unwrap() == "log");
        assert_eq!(logs.len(), files.len(), "{files:?}");
        let mut texts: Vec<_> = files.iter().map(|path| std::fs::read(path).unwrap()).collect();
        // The program that was started has least, and the forked child most.
        texts.sort_by_key(|text| points_of_size(text));
        texts
    };
    let children = "--trace-children=yes";
    let heaps: Vec<Value> = run("dhat", &["--tool=dhat", children]).iter().map(|text| json(text)).collect();
    let expected: [&[(&str, (u64, u64))]; 3] = [
        &[("third main", (70, 1))],
        &[("first main", (1000, 1))],
        &[("first main", (1000, 1)), ("second main", (500, 1))],
    ];
    assert_eq!(heaps.len(), expected.len());
    for (heap, expected) in heaps.iter().zip(expected) {
        let own = points(heap).into_iter().filter(|(stack, _)| stack.ends_with(" main"));
        let expected = expected.iter().map(|(stack, sum)| ((*stack).to_owned(), *sum));
        assert_eq!(own.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
    let at_end =
        |heap: &Value| heap["pps"].as_array().unwrap().iter().map(|p| p["eb"].as_u64().unwrap()).sum();
    let at_end: Vec<u64> = heaps.iter().map(at_end).collect();
    assert_eq!((at_end[1] + 500 - 1000, at_end[0] + 430), (at_end[2], at_end[2]), "{at_end:?}");
    assert_eq!(run("alone", &["--tool=dhat"]).len(), 1, "without the option children run natively");

    let events = run("events", &["--tool=dhat", "--mode=ad-hoc", children]);
    let mut sums: Vec<u64> =
        events.iter().map(|text| points(&json(text)).values().map(|sum| sum.0).sum()).collect();
    sums.sort_unstable();
    assert_eq!(sums, [0, 10, 13]);
    let snapshots = run("massif", &["--tool=massif", children]);
    let texts: Vec<_> = snapshots.iter().map(|text| String::from_utf8_lossy(text)).collect();
    let having = |line: &str| texts.iter().filter(|text| text.contains(line)).count();
    assert_eq!(["70\n", "1000\n", "1500\n"].map(|bytes| having(&format!("mem_heap_B={bytes}"))), [1, 2, 1]);
}

/// The bytes that a file of DHAT has in all; 0 of other files.
fn points_of_size(text: &[u8]) -> u64 {
    let file: Value = serde_json::from_slice(text).unwrap_or_default();
    file["pps"].as_array().into_iter().flatten().map(|point| point["tb"].as_u64().unwrap()).sum()
}
