//! Rows of recorded machines, and of recorded machines with one file changed.

use super::*;
use std::path::{Path, PathBuf};

fn facts(root: &Path, leaves: &str) -> Facts {
    let (tree, leaves) = (Tree::at(root), Leaves::recorded(leaves));
    let machine = host::read(&tree, &leaves);
    Facts { tree, leaves, machine, allowed: None }
}

fn guest() -> Facts {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kvm-guest");
    facts(&root, include_str!("../../fixtures/kvm-guest/cpuid.txt"))
}

fn row(facts: &Facts, name: &str) -> Ability {
    of(facts).into_iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}"))
}

/// A tree of the given files, removed when the test ends.
struct Made(PathBuf);

impl Made {
    fn new(name: &str, files: &[(&str, &str)]) -> Made {
        let root = std::env::temp_dir().join(format!("lightfoot-ability-{}-{name}", std::process::id()));
        for (path, text) in files {
            let file = root.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Made(root)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// State and remedy of one row of a made tree.
fn state(name: &str, files: &[(&str, &str)]) -> (State, bool) {
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let made = Made::new(&number.to_string(), files);
    let row = row(&facts(&made.0, ""), name);
    assert!(!row.reason.is_empty());
    (row.state, row.remedy.is_some())
}

#[test]
fn a_guest() {
    let facts = guest();
    assert_eq!(row(&facts, "hardware counters").state, State::No);
    assert!(row(&facts, "hardware counters").reason.contains("hypervisor hides"));
    assert_eq!(row(&facts, "TLB sizes of this machine").state, State::Partly);
    assert_eq!(row(&facts, "cache sizes of this machine").state, State::Yes);
    assert_eq!(row(&facts, "vector instructions").state, State::Yes);
    assert_eq!(row(&facts, "AMX tiles").state, State::Yes);
    assert_eq!(row(&facts, "segment bases without a system call").state, State::Yes);
    assert_eq!(row(&facts, "transparent huge pages").reason, "madvise: where a program asks for them");
    assert_eq!(row(&facts, "reserved huge pages").state, State::No);
    assert!(row(&facts, "bare metal").reason.contains("KVMKVMKVM"));
}

#[test]
fn yama() {
    let scope = "proc/sys/kernel/yama/ptrace_scope";
    let name = "run a program under ptrace";
    assert_eq!(state(name, &[(scope, "0\n")]), (State::Yes, false));
    assert_eq!(state(name, &[(scope, "1\n")]), (State::Yes, false));
    assert_eq!(state(name, &[(scope, "2\n")]), (State::No, true));
    assert_eq!(state(name, &[(scope, "3\n")]), (State::No, true));
    let root = ("proc/self/status", "CapEff:\t000001ffffffffff\nSeccomp:\t0\n");
    assert_eq!(state(name, &[(scope, "2\n"), root]), (State::Yes, false));
    assert_eq!(state(name, &[(scope, "3\n"), root]), (State::No, true));
    assert_eq!(state(name, &[("proc/self/status", "Seccomp:\t2\n")]), (State::Partly, true));
}

#[test]
fn addresses() {
    let name = "same addresses in every run";
    let filtered = ("proc/self/status", "Seccomp:\t2\n");
    assert_eq!(state(name, &[filtered]), (State::Partly, true));
    assert_eq!(state(name, &[filtered, ("proc/sys/kernel/randomize_va_space", "0")]), (State::Yes, false));
    assert_eq!(state(name, &[]), (State::Yes, false));
}

#[test]
fn counters() {
    let name = "hardware counters";
    assert_eq!(state(name, &[("sys/bus/event_source/devices/cpu/type", "4")]), (State::Yes, false));
    assert_eq!(state(name, &[("sys/bus/event_source/devices/cpu_core/type", "4")]), (State::Yes, false));
    assert_eq!(state(name, &[("sys/bus/event_source/devices/software/type", "1")]), (State::No, true));
}

#[test]
fn permission() {
    let name = "permission to open counters";
    let level = "proc/sys/kernel/perf_event_paranoid";
    assert_eq!(state(name, &[(level, "-1")]), (State::Yes, false));
    assert_eq!(state(name, &[(level, "2")]), (State::Partly, true));
    assert_eq!(state(name, &[(level, "4")]), (State::No, true));
    assert_eq!(state(name, &[]), (State::No, true));
    assert_eq!(
        state(name, &[(level, "4"), ("proc/self/status", "CapEff: 0000004000000000")]),
        (State::Yes, false)
    );
}

#[test]
fn pages() {
    let enabled = "sys/kernel/mm/transparent_hugepage/enabled";
    assert_eq!(state("transparent huge pages", &[(enabled, "[always] madvise never")]), (State::Yes, false));
    assert_eq!(state("transparent huge pages", &[(enabled, "always madvise [never]")]), (State::No, true));
    assert_eq!(state("transparent huge pages", &[]), (State::No, false));
    let reserved = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    assert_eq!(state("reserved huge pages", &[(reserved, "4")]), (State::Yes, false));
    assert_eq!(state("reserved huge pages", &[(reserved, "0")]), (State::No, true));
    assert_eq!(state("reserved huge pages", &[]), (State::No, false));
}

#[test]
fn processors() {
    let name = "a second CPU for the analysis";
    let online = ("sys/devices/system/cpu/online", "0-3");
    assert_eq!(state(name, &[online, ("proc/self/status", "Cpus_allowed_list:\t2")]), (State::Partly, true));
    assert_eq!(state(name, &[online]), (State::Yes, false));
    assert_eq!(state(name, &[]), (State::Partly, false));
}

#[test]
fn memory() {
    let text = |free| format!("MemTotal: 9000000 kB\nMemAvailable: {free} kB\n");
    assert_eq!(state("memory", &[("proc/meminfo", &text(2_000_000))]), (State::Yes, false));
    assert_eq!(state("memory", &[("proc/meminfo", &text(1000))]), (State::Partly, true));
    assert_eq!(state("memory", &[]), (State::Partly, false));
}

#[test]
fn features() {
    let info = |flags: &str| format!("flags\t\t: {flags}\n");
    let check = |name, flags: &str| state(name, &[("proc/cpuinfo", &info(flags))]).0;
    assert_eq!(check("vector instructions", "sse2"), State::No);
    assert_eq!(check("vector instructions", "avx2"), State::Partly);
    assert_eq!(check("AMX tiles", "amx_tile"), State::Partly);
    assert_eq!(check("AMX tiles", "avx2"), State::No);
    assert_eq!(check("bit manipulation (BMI2)", "bmi1 popcnt abm"), State::No);
    assert_eq!(check("bit manipulation (BMI2)", "bmi1 bmi2 popcnt"), State::Partly);
    assert_eq!(check("segment bases without a system call", "sse2"), State::No);
    assert_eq!(check("bare metal", "hypervisor"), State::Partly);
    assert_eq!(check("bare metal", "sse2"), State::Yes);
}

#[test]
fn this_host_has_every_row_once() {
    let rows = abilities();
    assert_eq!(rows.len(), ROWS.len());
    let mut names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows.len());
}
