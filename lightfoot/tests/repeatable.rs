//! Declared processors, and runs that repeat exactly.

mod bench;

use bench::{json, lightfoot, Bench};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes everything that a run is to repeat: clocks, random bytes, numbers, addresses.
const ALL: &str = r#"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static volatile int caught;
static void handler(int signal) { caught = signal; }

static void clocks(void) {
    struct timespec time_now;
    for (int clock = 0; clock < 8; clock++) {
        clock_gettime(clock, &time_now);
        printf("clock %d: %ld.%09ld\n", clock, (long)time_now.tv_sec, time_now.tv_nsec);
    }
    struct timeval day;
    gettimeofday(&day, 0);
    struct tms used;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld %ld %ld %ld %ld\n", (long)day.tv_sec, (long)day.tv_usec, (long)time(0),
           (long)times(&used), (long)usage.ru_maxrss);
    unsigned low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    printf("tsc %u %u\n", low, high);
}

static void chance(void) {
    unsigned long bytes[2];
    getrandom(bytes, sizeof bytes, 0);
    printf("random %lx %lx\n", bytes[0], bytes[1]);
    int file = open("/dev/urandom", O_RDONLY);
    if (read(file, bytes, sizeof bytes) != sizeof bytes) abort();
    close(file);
    printf("urandom %lx %lx\n", bytes[0], bytes[1]);
    unsigned long *start = (unsigned long *)getauxval(AT_RANDOM);
    printf("auxiliary %lx %lx\n", start[0], start[1]);
}

static void numbers(void) {
    printf("task %d %d\n", getpid(), getppid());
    signal(SIGUSR1, handler);
    printf("kill %d", kill(getpid(), SIGUSR1));
    printf(" caught %d\n", caught);
    printf("absent %d\n", kill(getpid() + 1000, 0));
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", getpid());
    FILE *name = fopen(path, "r");
    char text[64] = "";
    if (!name || !fgets(text, sizeof text, name)) abort();
    printf("named %s", text);
}

static void selects(void) {
    int ends[2];
    fd_set set;
    struct timeval left = {5, 0};
    if (pipe(ends) || write(ends[1], "x", 1) != 1) abort();
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    printf("selected %d", select(ends[0] + 1, &set, 0, 0, &left));
    printf(" left %ld.%06ld\n", (long)left.tv_sec, (long)left.tv_usec);
    close(ends[0]);
    close(ends[1]);
}

static void *waits(void *nothing) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec before, after, part = {0, 20000000};
    clock_gettime(CLOCK_MONOTONIC, &before);
    nanosleep(&part, 0);
    poll(0, 0, 10);
    clock_gettime(CLOCK_MONOTONIC, &after);
    after.tv_nsec += 5000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &after, 0);
    clock_gettime(CLOCK_REALTIME, &after);
    after.tv_nsec += 7000000;
    pthread_mutex_lock(&lock);
    printf("condition %d\n", pthread_cond_timedwait(&never, &lock, &after));
    pthread_mutex_unlock(&lock);
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("slept %ld\n", (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec);
    return nothing;
}

int main(int count, char **arguments) {
    int here;
    printf("stack %p heap %p\n", (void *)&here, malloc(10));
    clocks();
    chance();
    numbers();
    waits(0);
    selects();
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    printf("processors %ld %d %d\n", sysconf(_SC_NPROCESSORS_ONLN), CPU_COUNT(&set), sched_getcpu());
    printf("%d %s\n", count, getenv("VARIABLE") ? "set" : "not set");
    return arguments[0] == 0;
}
"#;

/// Writes what CPUID, XGETBV and `/proc/cpuinfo` say, and binds a function late, for which the
/// loader saves the processor's states.
const PROCESSOR: &str = r#"
#include <cpuid.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
int main(int count, char **arguments) {
    unsigned eax, ebx, ecx, edx, low = 0, high = 0;
    __cpuid_count(7, 0, eax, ebx, ecx, edx);
    printf("avx2 %u avx512f %u\n", ebx >> 5 & 1, ebx >> 16 & 1);
    __cpuid(1, eax, ebx, ecx, edx);
    if (ecx >> 27 & 1) __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    printf("states %x, rdrand %u\n", low, ecx >> 30 & 1);
    char line[4096];
    FILE *file = fopen("/proc/cpuinfo", "r");
    int processors = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (!strncmp(line, "model name", 10)) fputs(line, stdout);
        processors += !strncmp(line, "processor", 9);
    }
    printf("processors %d, %.3f\n", processors, sin(count));
    return arguments[0] == 0;
}
"#;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn compiled(bench: &Bench, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let (file, program) = (bench.join(&format!("{name}.c")), bench.join(name));
    std::fs::write(&file, source).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-D_GNU_SOURCE"])
        .arg(&file)
        .arg("-o")
        .arg(&program)
        .args(options)
        .status();
    assert!(built.unwrap().success());
    program
}

/// Output and instructions of a run under `count`.
fn counted(program: &Path, options: &[&str], environment: &[(&str, &str)]) -> (String, u64, Vec<String>) {
    let mut command = lightfoot().arg("count").args(options).args(["--format", "json"]).arg(program);
    for (name, value) in environment {
        command = command.env(name, value);
    }
    let ran = command.run();
    assert_eq!(ran.status, 0, "{}", text(&ran.stderr));
    let report = json(&ran.stderr);
    let warnings = report["warnings"].as_array().unwrap();
    let warnings = warnings.iter().map(|warning| warning.as_str().unwrap().to_owned()).collect();
    (text(&ran.stdout), report["totals"]["instructions"].as_u64().unwrap(), warnings)
}

#[test]
fn clocks_chance_and_numbers_repeat() {
    let bench = Bench::new();
    let program = compiled(&bench, "all", ALL, &["-pthread"]);
    let first = counted(&program, &["--repeatable"], &[]);
    for _ in 0..3 {
        assert_eq!(counted(&program, &["--repeatable"], &[]), first);
    }
    let has = |line: &str| assert!(first.0.contains(line), "{line} is not in\n{}", first.0);
    has("task 4200000 4199999\n");
    has("kill 0 caught 10\n");
    has("absent -1\n");
    has("named all\n");
    // Sleeps take their length: 20 + 10 + 5 + 7 ms, and some readings of clocks.
    has("condition 110\n");
    let slept: u64 = first.0.split("slept ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    assert!((42_000_000..42_100_000).contains(&slept), "{slept}");
    has("selected 1 left 5.000000\n");
    has("processors 1 1 0\n");
    assert_eq!(first.2, [""; 0], "nothing is left open");
}

#[test]
fn other_variables_of_equal_count_move_no_address() {
    let bench = Bench::new();
    let program = compiled(&bench, "all", ALL, &["-pthread"]);
    let stack = |value: &str| {
        let (output, ..) = counted(&program, &["--repeatable"], &[("VARIABLE", value)]);
        output.lines().next().unwrap().to_owned()
    };
    assert_eq!(stack("a"), stack(&"long ".repeat(1000)));
}

#[test]
fn runs_without_the_option_differ() {
    let bench = Bench::new();
    let program = compiled(&bench, "all", ALL, &["-pthread"]);
    assert_ne!(counted(&program, &[], &[]).0, counted(&program, &[], &[]).0);
}

#[test]
fn threads_of_a_run_that_repeats_are_named() {
    let bench = Bench::new();
    let source = ALL.replace(
        "    waits(0);",
        "    pthread_t one; pthread_create(&one, 0, waits, 0); pthread_join(one, 0);",
    );
    let program = compiled(&bench, "threads", &source, &["-pthread"]);
    let first = counted(&program, &["--repeatable"], &[]);
    assert!(first.2.iter().any(|warning| warning.contains("several threads")), "{:?}", first.2);
    assert_eq!(counted(&program, &["--repeatable"], &[]).0, first.0);
}

/// Four threads take numbers from a queue, sleep now and then, and write who took which.
const QUEUE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int queue, done;
static unsigned long order;
static void *work(void *number) {
    long own = (long)number;
    struct timespec part = {0, own * 100000};
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!queue && !done) pthread_cond_wait(&filled, &lock);
        int ends = !queue;
        if (!ends) queue--, order = order * 31 + own;
        pthread_mutex_unlock(&lock);
        if (ends) return 0;
        if (order % 16 == 0) nanosleep(&part, 0);
        for (volatile long turn = 0; turn < 1000 * own; turn++) {}
    }
}
int main(void) {
    pthread_t threads[4];
    for (long index = 0; index < 4; index++) pthread_create(&threads[index], 0, work, (void *)(index + 1));
    for (int number = 0; number < 300; number++) {
        pthread_mutex_lock(&lock);
        queue++;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
        if (number % 50 == 0) sched_yield();
    }
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&lock);
    for (int index = 0; index < 4; index++) pthread_join(threads[index], 0);
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%lx %ld\n", order, (long)end.tv_nsec);
    return 0;
}
"#;

#[test]
fn threads_in_turns_repeat() {
    let bench = Bench::new();
    let program = compiled(&bench, "queue", QUEUE, &["-pthread"]);
    let first = counted(&program, &["--repeatable", "--turns"], &[]);
    assert_eq!(first.2, [""; 0], "nothing is left open");
    for _ in 0..5 {
        assert_eq!(counted(&program, &["--repeatable", "--turns"], &[]), first);
    }
}

/// Two threads wait for each other by reading memory.
const SPINS: &str = r#"
#include <pthread.h>
static volatile long whose;
static void *work(void *own) {
    for (int turn = 0; turn < 50; turn++) {
        while (whose != (long)own) {}
        whose = 1 - (long)own;
    }
    return 0;
}
int main(void) {
    pthread_t one;
    pthread_create(&one, 0, work, (void *)1);
    work(0);
    pthread_join(one, 0);
    return 0;
}
"#;

#[test]
fn turns_with_a_length_end_while_threads_wait_for_memory() {
    let bench = Bench::new();
    let program = compiled(&bench, "spins", SPINS, &["-pthread"]);
    let options = ["--repeatable", "--turns", "--quantum", "1000"];
    let first = counted(&program, &options, &[]);
    assert!(first.1 > 100 * 500, "each of a hundred waits takes a turn: {}", first.1);
    for _ in 0..3 {
        assert_eq!(counted(&program, &options, &[]), first);
    }
    for (options, expected) in [
        (&["--quantum", "1000"][..], "--repeatable --turns"),
        (&["--repeatable", "--turns", "--quantum", "7"], "expected 100"),
        (&["--repeatable", "--turns", "--quantum", "1000", "--region", "r"], "leave out --region"),
    ] {
        let ran = lightfoot().arg("count").args(options).arg(&program).run();
        let said = text(&ran.stderr);
        assert!(ran.status != 0 && said.contains(expected), "{said}");
    }
}

#[test]
fn a_declared_processor_is_shown_everywhere() {
    let bench = Bench::new();
    let program = compiled(&bench, "processor", PROCESSOR, &["-Wl,-z,lazy", "-lm"]);
    let shown = |name: &str| counted(&program, &["--virtual-cpu", name], &[]).0;
    let level2 = shown("x86-64-v2");
    assert!(level2.starts_with("avx2 0 avx512f 0\nstates 0, rdrand 0\n"), "{level2}");
    assert!(level2.ends_with("model name\t: x86-64-v2\nprocessors 1, 0.841\n"), "{level2}");
    if std::arch::is_x86_feature_detected!("avx2") {
        let level3 = shown("x86-64-v3");
        assert!(level3.starts_with("avx2 1 avx512f 0\nstates 7, rdrand 0\n"), "{level3}");
        let valgrinds = shown("valgrind");
        assert!(valgrinds.contains("i7-4910MQ"), "{valgrinds}");
    }
    if std::arch::is_x86_feature_detected!("avx512vl") {
        assert!(shown("x86-64-v4").starts_with("avx2 1 avx512f 1\nstates e7, rdrand 0\n"));
    }
}

#[test]
fn the_simulated_bytes_of_saved_states_are_the_declared_ones() {
    if !std::arch::is_x86_feature_detected!("avx2") {
        return;
    }
    let bench = Bench::new();
    let program = compiled(&bench, "processor", PROCESSOR, &["-Wl,-z,lazy", "-lm"]);
    let options = ["--virtual-cpu", "x86-64-v3", "--repeatable", "--format", "json"];
    let run = || {
        let ran =
            lightfoot().arg("cache").args(["--machine", "cachegrind"]).args(options).arg(&program).run();
        assert_eq!(ran.status, 0, "{}", text(&ran.stderr));
        json(&ran.stderr)["totals"].clone()
    };
    assert_eq!(run(), run());
}

#[test]
fn kept_translations_are_not_mixed() {
    let bench = Bench::new();
    let program = compiled(&bench, "processor", PROCESSOR, &["-lm"]);
    let folder = bench.join("translations");
    let kept = [("LIGHTFOOT_TRANSLATIONS", folder.to_str().unwrap())];
    let native = counted(&program, &[], &kept);
    let level2 = counted(&program, &["--virtual-cpu", "x86-64-v2"], &kept);
    assert!(level2.0.starts_with("avx2 0"), "{}", level2.0);
    assert_eq!(counted(&program, &[], &kept).0, native.0);
    assert_eq!(counted(&program, &["--virtual-cpu", "x86-64-v2"], &kept), level2);
}

#[test]
fn unknown_processors_are_refused() {
    let ran = lightfoot().args(["count", "--virtual-cpu", "pentium", "/bin/true"]).run();
    assert_eq!(ran.status, 125);
    assert!(text(&ran.stderr).contains("there is no processor 'pentium': choose one of x86-64-v2"));
}

#[test]
fn layouts_give_median_and_spread() {
    let bench = Bench::new();
    let program = compiled(&bench, "processor", PROCESSOR, &["-lm"]);
    let ran = lightfoot()
        .args(["cache", "--machine", "cachegrind", "--layouts", "4", "--format", "json"])
        .arg(&program)
        .run();
    assert_eq!(ran.status, 0, "{}", text(&ran.stderr));
    assert_eq!(text(&ran.stdout).matches("avx2").count(), 4, "each layout is a run");
    let report = json(&ran.stderr);
    let spread = &report["layouts"]["instructions"];
    assert_eq!(spread["layouts"], 4);
    let [least, median, most] = ["least", "median", "most"].map(|name| spread[name].as_u64().unwrap());
    assert!(least <= median && median <= most && least > 10_000);
    let misses = &report["layouts"]["l1d_load_misses"];
    assert!(misses["least"].as_u64() < misses["most"].as_u64(), "{misses}");
    let refused = lightfoot().args(["count", "--layouts", "1", "/bin/true"]).run();
    assert!(text(&refused.stderr).contains("2 to 1000"));
}

#[test]
fn processes_that_the_program_starts_are_named() {
    let bench = Bench::new();
    let source = "#include <sys/wait.h>\n#include <unistd.h>\n\
                  int main(void) { if (fork() == 0) _exit(0); wait(0); return 0; }\n";
    let program = compiled(&bench, "parent", source, &[]);
    let (_, _, warnings) = counted(&program, &["--repeatable"], &[]);
    assert!(warnings.iter().any(|warning| warning.contains("starts processes")), "{warnings:?}");
    assert_eq!(counted(&program, &[], &[]).2, [""; 0]);
}
