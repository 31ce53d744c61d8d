//! Programs that map, protect or unmap memory where the engine's lies: answered as natively, or
//! ended with a sentence.

mod bench;

use bench::{compile, lightfoot, Bench, Ran};
use std::process::Command;

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#define PAGE 4096ul

static void told(const char *what, long result) { printf("%s %ld %s\n", what, result, result < 0 ? strerror(errno) : ""); }
static int mapped(char *at) { return msync(at, PAGE, MS_ASYNC) == 0; }

/* Prints where something of the engine's lies. */
static void where(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[600];
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        sscanf(line, "%lx-%lx", &start, &end);
        if (strstr(line, "memfd:lightfoot")) printf("%lx %lx\n", start, end);
    }
}

int main(int argc, char **argv) {
    if (argc == 1) { where(); return 0; }
    char *at = (char *)strtoul(argv[2], 0, 16), *beside = at - PAGE;
    unsigned long bytes = strtoul(argv[3], 0, 16) - (unsigned long)at;
    int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (!strcmp(argv[1], "take")) {
        char *got = mmap(at + bytes - PAGE, PAGE, PROT_READ | PROT_WRITE, fixed, -1, 0);
        *got = 1;
        puts("taken");
        return 0;
    }
    if (!strcmp(argv[1], "move")) {
        char *own = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *got = mremap(own, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at);
        *got = 1;
        puts("moved");
        return 0;
    }
    told("munmap", munmap(at, bytes));
    told("munmap of a page", munmap(at + bytes - PAGE, PAGE));
    told("mprotect", mprotect(at, bytes, PROT_READ));
    told("pkey_mprotect", syscall(SYS_pkey_mprotect, at, PAGE, PROT_NONE, -1));
    told("mremap", (long)mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    told("munmap of nothing", munmap(at, 0));
    told("munmap of half a page", munmap(at + 5, PAGE));
    /* A page of the program's own directly before. */
    told("beside", mmap(beside, PAGE, PROT_READ | PROT_WRITE, fixed, -1, 0) == beside);
    *beside = 7;
    told("mprotect of both", mprotect(beside, 3 * PAGE, PROT_READ));
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[600], own[32];
    sprintf(own, "%lx-", (unsigned long)beside);
    while (fgets(line, sizeof line, maps)) if (!strncmp(line, own, strlen(own))) printf("%.4s\n", strchr(line, ' ') + 1);
    told("munmap of both", munmap(beside, bytes + PAGE));
    told("is mapped", mapped(beside));
    told("reservation", mmap(beside, bytes + PAGE, PROT_NONE, fixed | MAP_NORESERVE, -1, 0) == beside);
    told("is mapped", mapped(beside));
    return 4;
}
"#;

fn run(words: &[&str]) -> Ran {
    lightfoot().args(["count", "--no-translation-cache", "-o", "/dev/null", "--"]).args(words).run()
}

/// The program, and the places of the engine in it.
fn places(bench: &Bench) -> Option<(String, Vec<[String; 2]>)> {
    if !bench::repeatable() {
        return None;
    }
    let program = compile(bench, "program", &[], PROGRAM)?.to_str().unwrap().to_string();
    let ran = run(&[&program]);
    ran.ends_with(0);
    let lines = String::from_utf8(ran.stdout.clone()).unwrap();
    let place = |line: &str| line.split_once(' ').map(|(start, end)| [start, end].map(String::from));
    // Mappings that follow each other are one place: the page before it is not the engine's.
    let mut places: Vec<[String; 2]> = Vec::new();
    for [start, end] in lines.lines().filter_map(place) {
        match places.last_mut().filter(|last| last[1] == start) {
            Some(last) => last[1] = end,
            None => places.push([start, end]),
        }
    }
    assert!(places.len() >= 5, "{lines}");
    Some((program, places))
}

#[test]
fn what_is_not_there_natively_cannot_be_taken_away() {
    let bench = Bench::new();
    let Some((program, places)) = places(&bench) else { return };
    for [start, end] in &places {
        let words = [&program, "do", start, end];
        let native = Command::new("setarch").args(["x86_64", "-R"]).args(words).output().unwrap();
        assert_eq!(native.status.code(), Some(4));
        let ran = run(&words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&ran.stdout), text(&native.stdout), "{start} to {end}");
        ran.ends_with(4);
        assert_eq!(ran.said(), "");
    }
}

#[test]
fn a_program_that_takes_our_place_is_told_in_a_sentence() {
    let bench = Bench::new();
    let Some((program, places)) = places(&bench) else { return };
    for [start, end] in &places {
        for how in ["take", "move"] {
            let ran = run(&[&program, how, start, end]);
            ran.fails_with(125).in_one_line().says("where lightfoot's own memory lies");
        }
    }
}
