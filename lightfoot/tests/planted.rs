//! A program that tries to change its own translations: nothing of that happens, then or in later
//! runs.
//!
//! Its function returns a constant, which stands in its translation too. The program looks for the
//! constant there, and tries to write another one by every way that a process has.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static unsigned char code[5] = {0xb8, 0x78, 0x56, 0x34, 0x12}, bad[5] = {0xb8, 0xef, 0xbe, 0xad, 0x0b};
__attribute__((noinline, noipa)) int answer(void) { int r; __asm__ volatile(".byte 0xb8,0x78,0x56,0x34,0x12" : "=a"(r)); return r; }

static int found;
/* What is known of the place of a constant: where, in which file, at which byte of it. */
static void plant(char *at, unsigned long inode, off_t offset) {
    unsigned long page = (unsigned long)at & ~4095ul;
    found++;
    if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) memcpy(at, bad, 5);
    int self = open("/proc/self/mem", O_RDWR);
    if (self >= 0) { pwrite(self, bad, 5, (off_t)at); close(self); }
    struct iovec from = {bad, 5}, to = {at, 5};
    process_vm_writev(getpid(), &from, 1, &to, 1, 0);
    char path[600], link[600];
    sprintf(path, "/proc/%d/fd", getppid());
    DIR *all = opendir(path);
    for (struct dirent *e; all && (e = readdir(all));) {
        sprintf(path, "/proc/%d/fd/%s", getppid(), e->d_name);
        int n = readlink(path, link, sizeof link - 1);
        if (n < 0) continue;
        link[n] = 0;
        if (!strstr(link, "memfd:lightfoot")) continue;
        int fd = open(path, O_RDWR);
        if (fd < 0) continue;
        struct stat s;
        fstat(fd, &s);
        int cut = ftruncate(fd, 0);
        if (cut == 0) printf("cut short\n");
        if (ftruncate(fd, s.st_size * 2) == 0) printf("made longer\n");
        if (s.st_ino == inode) {
            pwrite(fd, bad, 5, offset);
            fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset & ~4095, 8192);
            char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset & ~4095);
            if (m != MAP_FAILED) memcpy(m + (offset & 4095), bad, 5);
            m = mmap(0, 8192, PROT_READ, MAP_SHARED, fd, offset & ~4095);
            if (m != MAP_FAILED && mprotect(m, 8192, PROT_READ | PROT_WRITE) == 0) memcpy(m + (offset & 4095), bad, 5);
        }
        close(fd);
    }
}

static void attack(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[600];
    unsigned long places[64][4]; int n = 0;
    while (fgets(line, sizeof line, maps) && n < 64) {
        unsigned long start, end, offset, inode; char mode[8];
        sscanf(line, "%lx-%lx %7s %lx %*s %lu", &start, &end, mode, &offset, &inode);
        if (!strstr(line, "memfd:lightfoot") || mode[2] != 'x') continue;
        places[n][0] = start; places[n][1] = end; places[n][2] = offset; places[n][3] = inode; n++;
    }
    for (int i = 0; i < n; i++) {
        char *start = (char *)places[i][0], *p = start;
        size_t room = places[i][1] - places[i][0];
        if (room > 4 << 20) room = 4 << 20;
        while ((p = memmem(p, start + room - p, code, 5))) {
            plant(p, places[i][3], places[i][2] + (p - start));
            p += 5;
        }
    }
}

int main(int argc, char **argv) {
    int first = answer();
    if (argc > 2) { setgroups(0, 0); if (setgid(65534) || setuid(65534)) return 9; }
    if (argc > 1) attack();
    printf("%x %x\n", first, answer());
    if (argc > 1) fprintf(stderr, "%d\n", found);
    return 0;
}
"#;

fn run(bench: &Bench, folder: &Path, words: &[&str]) -> (String, String, Value) {
    let report = bench.join("report.json");
    let ran = lightfoot()
        .env("LIGHTFOOT_TRANSLATIONS", folder)
        .args(["count", "--format", "json", "--by", "function,line", "-o"])
        .arg(&report)
        .arg("--")
        .args(words)
        .run();
    ran.ends_with(0);
    let report = json(&fs::read(report).unwrap());
    (String::from_utf8(ran.stdout.clone()).unwrap(), ran.said(), report)
}

fn fragments(report: &Value) -> u64 {
    report["engine"]["fragments"].as_u64().unwrap()
}

#[test]
fn a_program_cannot_change_its_translations() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = compile(&bench, "plants", &[], PROGRAM) else { return };
    let program = program.to_str().unwrap();
    // Names of one length: they are part of the environment, and move the stack.
    let (empty, folder) = (bench.join("nothing-kept"), bench.join("translations"));
    let clean = "12345678 12345678\n";
    let alone = run(&bench, &empty, &[program]);
    assert_eq!(alone.0, clean);
    for _ in 0..2 {
        let (output, found, _) = run(&bench, &folder, &[program, "attack"]);
        assert_eq!(output, clean);
        assert_ne!(found, "0\n", "the program did not find its translation");
        let (output, said, report) = run(&bench, &folder, &[program]);
        assert_eq!((output.as_str(), said.as_str()), (clean, ""));
        assert_eq!(report["totals"], alone.2["totals"]);
        // What ran is what was kept.
        assert!(fragments(&report) * 2 < fragments(&alone.2), "{} fragments", fragments(&report));
    }
}

#[test]
fn nothing_is_kept_of_a_program_that_became_somebody_else() {
    let bench = Bench::new();
    fs::set_permissions(bench.path(), Permissions::from_mode(0o755)).unwrap();
    if chown(bench.path(), Some(65534), None).is_err() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    chown(bench.path(), Some(0), None).unwrap();
    // Its lines and its many symbols would be kept too.
    let source = PROGRAM.to_owned() + &bench::idle_functions(5000);
    let Some(program) = compile(&bench, "plants", &["-g"], &source) else { return };
    let program = program.to_str().unwrap();
    let folder = bench.join("translations");
    let files = || fs::read_dir(&folder).map_or(0, |entries| entries.count());
    let (output, found, _) = run(&bench, &folder, &[program, "attack", "as nobody"]);
    assert_eq!(output, "12345678 12345678\n");
    assert_ne!(found, "0\n", "the program did not find its translation");
    assert_eq!(files(), 0);
    // Who is somebody else from the beginning.
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program];
    let (output, ..) = run(&bench, &folder, &nobody);
    assert_eq!(output, "12345678 12345678\n");
    assert_eq!(files(), 0);
    let (output, ..) = run(&bench, &folder, &[program]);
    assert_eq!(output, "12345678 12345678\n");
    assert_ne!(files(), 0);
    assert_ne!(fs::read_dir(folder.join("lines")).unwrap().count(), 0);
}
