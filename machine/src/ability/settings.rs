//! Rows about the kernel's settings and the machine's resources.

use super::row::{Ability, Facts, State};
use crate::host::{tree_cpus, value};

/// Number of the capability in the effective set of `/proc/self/status`.
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

fn status(facts: &Facts, key: &str) -> Option<String> {
    let text = facts.tree.text("proc/self/status")?;
    value(&text, key).map(str::to_string)
}

fn has_capability(facts: &Facts, number: u32) -> bool {
    let set = status(facts, "CapEff").and_then(|text| u64::from_str_radix(&text, 16).ok());
    set.unwrap_or(0) >> number & 1 == 1
}

fn is_filtered(facts: &Facts) -> bool {
    status(facts, "Seccomp").is_some_and(|mode| mode != "0")
}

/// Whether the settings allow tracing a child. Level 1 of Yama still allows one's own children.
pub(super) fn ptrace(facts: &Facts) -> Ability {
    let name = "run a program under ptrace";
    let scope = facts.tree.number("proc/sys/kernel/yama/ptrace_scope");
    let fix = "sudo sysctl kernel.yama.ptrace_scope=1";
    match scope {
        Some(2) if !has_capability(facts, CAP_SYS_PTRACE) => {
            let reason = "kernel.yama.ptrace_scope is 2: only with CAP_SYS_PTRACE";
            Ability::new(name, State::No, reason).with_remedy(fix)
        }
        Some(scope) if scope >= 3 => {
            let reason = format!("kernel.yama.ptrace_scope is {scope}: nobody, until the next boot");
            Ability::new(name, State::No, reason).with_remedy("boot with kernel.yama.ptrace_scope=1")
        }
        _ if is_filtered(facts) => {
            let reason = "the settings allow it, but a seccomp filter is active and may refuse it";
            Ability::new(name, State::Partly, reason)
                .with_remedy("in a container: --cap-add=SYS_PTRACE --security-opt seccomp=unconfined")
        }
        Some(scope) => Ability::new(name, State::Yes, format!("kernel.yama.ptrace_scope is {scope}")),
        None => Ability::new(name, State::Yes, "the kernel has no Yama restriction"),
    }
}

/// Whether address randomisation can be switched off, so that addresses are equal in every run.
pub(super) fn fixed_addresses(facts: &Facts) -> Ability {
    let name = "same addresses in every run";
    let randomize = facts.tree.number("proc/sys/kernel/randomize_va_space");
    if randomize == Some(0) {
        return Ability::new(name, State::Yes, "kernel.randomize_va_space is 0");
    }
    if is_filtered(facts) {
        let reason = "a seccomp filter is active and may refuse personality(ADDR_NO_RANDOMIZE)";
        return Ability::new(name, State::Partly, reason).with_remedy(
            "in a container: --security-opt seccomp=unconfined; else runs use random addresses",
        );
    }
    Ability::new(name, State::Yes, "a program may ask for it with personality(ADDR_NO_RANDOMIZE)")
}

/// Whether the kernel offers a performance-monitoring unit.
pub(super) fn counters(facts: &Facts) -> Ability {
    let name = "hardware counters";
    let folder = "sys/bus/event_source/devices";
    let devices = facts.tree.names(folder);
    // Hybrid cores and Arm name theirs differently.
    let is_core = |name: &&String| {
        matches!(name.as_str(), "cpu" | "cpu_core" | "cpu_atom") || name.starts_with("armv8")
    };
    if let Some(device) = devices.iter().find(is_core) {
        return Ability::new(name, State::Yes, format!("the kernel knows the unit \"{device}\""));
    }
    let reason = match facts.leaves.hypervisor() {
        Some(_) => "the hypervisor hides the performance monitoring unit",
        None => "the kernel knows no performance monitoring unit",
    };
    Ability::new(name, State::No, reason)
        .with_remedy("run on bare metal, or give the guest a virtual PMU; `cache` and `count` need none")
}

/// Whether counters may be opened.
pub(super) fn counter_permission(facts: &Facts) -> Ability {
    let name = "permission to open counters";
    let Some(level) = facts.tree.text("proc/sys/kernel/perf_event_paranoid") else {
        return Ability::new(name, State::No, "the kernel has no perf_event_open")
            .with_remedy("a kernel with CONFIG_PERF_EVENTS");
    };
    let found = format!("kernel.perf_event_paranoid is {level}");
    let fix = "sudo sysctl kernel.perf_event_paranoid=1";
    if has_capability(facts, CAP_PERFMON) || has_capability(facts, CAP_SYS_ADMIN) {
        return Ability::new(name, State::Yes, format!("{found}, and this process is privileged"));
    }
    match level.parse::<i32>() {
        Ok(level) if level <= 1 => Ability::new(name, State::Yes, found),
        Ok(2) => Ability::new(name, State::Partly, format!("{found}: own programs in user mode only"))
            .with_remedy(fix),
        _ => Ability::new(name, State::No, found).with_remedy(fix),
    }
}

/// Whether huge pages are reserved.
pub(super) fn huge_pages(facts: &Facts) -> Ability {
    let name = "reserved huge pages";
    let folder = "sys/kernel/mm/hugepages";
    let count = |size: &String| facts.tree.number(&format!("{folder}/{size}/nr_hugepages")).unwrap_or(0);
    let sizes = facts.tree.names(folder);
    let reserved: Vec<String> =
        sizes.iter().filter(|size| count(size) > 0).map(|size| format!("{} {size}", count(size))).collect();
    if !reserved.is_empty() {
        return Ability::new(name, State::Yes, reserved.join(", "));
    }
    let reason = if sizes.is_empty() { "the kernel offers none" } else { "none are reserved" };
    let row = Ability::new(name, State::No, reason);
    if sizes.is_empty() {
        row
    } else {
        row.with_remedy("sudo sysctl vm.nr_hugepages=512")
    }
}

/// Whether a program gets huge pages by itself or by asking.
pub(super) fn transparent_huge_pages(facts: &Facts) -> Ability {
    let name = "transparent huge pages";
    let text = facts.tree.text("sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(word, _)| word);
    match chosen {
        "always" => Ability::new(name, State::Yes, "always"),
        "madvise" => Ability::new(name, State::Yes, "madvise: where a program asks for them"),
        "never" => Ability::new(name, State::No, "never")
            .with_remedy("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
        _ => Ability::new(name, State::No, "the kernel has none"),
    }
}

/// The number of CPUs: analysis runs beside the program, so a run needs two for its full speed.
pub(super) fn processors(facts: &Facts) -> Ability {
    let name = "a second CPU for the analysis";
    let online = facts.tree.text("sys/devices/system/cpu/online").map_or(0, |list| tree_cpus(&list));
    // A tracer may bind a process more narrowly than it says: the file shows that, the scheduler's
    // answer does not.
    let listed = || status(facts, "Cpus_allowed_list").map_or(online, |list| tree_cpus(&list));
    let allowed = facts.allowed.unwrap_or_else(listed);
    let reason = format!("{online} CPUs online, {allowed} allowed to this process");
    match allowed {
        0 => Ability::new(name, State::Partly, "the number of CPUs is unknown"),
        1 if online > 1 => {
            Ability::new(name, State::Partly, reason).with_remedy("allow more, e.g. taskset -c 0,1")
        }
        1 => Ability::new(name, State::Partly, reason)
            .with_remedy("a machine with two CPUs halves the time of `cache`"),
        _ => Ability::new(name, State::Yes, reason),
    }
}

/// The free memory: traces and code caches need about a gigabyte.
pub(super) fn memory(facts: &Facts) -> Ability {
    let name = "memory";
    let text = facts.tree.text("proc/meminfo").unwrap_or_default();
    let kilobytes = |key| value(&text, key)?.split_whitespace().next()?.parse::<u64>().ok();
    let (Some(total), Some(free)) = (kilobytes("MemTotal"), kilobytes("MemAvailable")) else {
        return Ability::new(name, State::Partly, "the amount is unknown");
    };
    let reason = format!("{} MiB, of which {} MiB are available", total / 1024, free / 1024);
    if free >= 1 << 20 {
        return Ability::new(name, State::Yes, reason);
    }
    Ability::new(name, State::Partly, reason).with_remedy("free a gigabyte before measuring large programs")
}
