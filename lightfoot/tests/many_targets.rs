//! Programs with more targets of calls than the engine's lookup table has slots.

mod bench;

use bench::{compile, json, lightfoot, Bench};

/// Two threads call 24 functions at addresses that are a mebibyte apart, over and over.
const APART: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#define FUNCTIONS 24L
#define MEBIBYTE (1L << 20)
static unsigned char *code;
static void *calls(void *rounds) {
    long sum = 0;
    for (long round = 0; round < (long)rounds; round++)
        for (long i = 0; i < FUNCTIONS; i++) sum += ((int (*volatile)(void))(code + i * MEBIBYTE))();
    return (void *)sum;
}
int main(void) {
    code = mmap(0, FUNCTIONS * MEBIBYTE, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (code == MAP_FAILED) return 99;
    for (long i = 0; i < FUNCTIONS; i++) {
        unsigned char function[] = {0xb8, (unsigned char)i, 0, 0, 0, 0xc3};
        memcpy(code + i * MEBIBYTE, function, sizeof function);
    }
    mprotect(code, FUNCTIONS * MEBIBYTE, PROT_READ | PROT_EXEC);
    pthread_t thread;
    void *other;
    pthread_create(&thread, 0, calls, (void *)5000L);
    long own = (long)calls((void *)5000L);
    pthread_join(thread, &other);
    printf("%ld %ld\n", own, (long)other);
    return 0;
}
"#;

#[test]
fn a_target_without_a_slot_does_not_ask_for_ever() {
    if !std::arch::is_x86_feature_detected!("bmi2") {
        return eprintln!("skipped: without BMI2 the table does not grow");
    }
    let bench = Bench::new();
    let Some(program) = compile(&bench, "apart", &["-O1", "-pthread"], APART) else { return };
    let report = bench.path().join("report.json");
    let counted = lightfoot().args(["count", "--format", "json", "-o"]).arg(&report);
    let ran = counted.arg("--").arg(&program).run();
    ran.ends_with(0);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "1380000 1380000\n");
    let stops = json(&std::fs::read(&report).unwrap())["engine"]["stops"].as_u64().unwrap();
    // Each of two threads calls twelve functions without a slot 5,000 times.
    assert!(stops < 20_000, "{stops}");
}
