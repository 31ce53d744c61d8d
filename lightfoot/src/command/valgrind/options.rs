//! The options of Valgrind's tools: which are obeyed, which change no number here, which are
//! refused. This table is what the parser reads and what `docs/valgrind.md` shows.

use super::settings::{self, Settings};
use Effect::{Obeyed, Refused, Same};

/// What an option does.
#[derive(Clone, Copy)]
pub(super) enum Effect {
    /// It changes the settings, or refuses its value with a sentence.
    Obeyed(fn(&mut Settings, &str) -> Result<(), String>),
    /// It is accepted, because it changes no number; the reason.
    Same(&'static str),
    /// It is refused; the reason, and what to do instead. The value `no` is accepted where the
    /// option takes yes and no.
    Refused(&'static str),
}

/// An option.
pub(super) struct Known {
    /// Its name. One that ends with `*` stands for all names that begin so.
    pub(super) name: &'static str,
    pub(super) effect: Effect,
}

const fn obeyed(name: &'static str, set: fn(&mut Settings, &str) -> Result<(), String>) -> Known {
    Known { name, effect: Obeyed(set) }
}

const fn same(name: &'static str, why: &'static str) -> Known {
    Known { name, effect: Same(why) }
}

const fn refused(name: &'static str, why: &'static str) -> Known {
    Known { name, effect: Refused(why) }
}

const NO_SERVER: &str = "there is no server for debuggers";
const NO_ERRORS: &str = "these tools report no errors";
const NO_TREES: &str = "no trees of calls are written; Massif refuses all but none";
const NO_TRANSLATOR: &str = "a setting of Valgrind's translator";
const NO_CONTEXTS: &str = "functions are not told apart by callers; totals are the same";
const CYCLES: &str = "such caches are described by a machine: use lightfoot cache --machine";

/// All options, as their manuals order them: of all tools, callgrind, cachegrind, DHAT, Massif,
/// lackey, and ours.
pub(super) const OPTIONS: &[Known] = &[
    obeyed("--tool", settings::tool),
    obeyed("--trace-children", |all, value| settings::yes_no(&mut all.trace_children, value)),
    obeyed("--trace-children-skip", |all, value| settings::list(&mut all.skipped, value)),
    refused("--trace-children-skip-by-arg", "name executables with --trace-children-skip"),
    same("--child-silent-after-fork", "the log names processes at the end"),
    same("--vgdb", NO_SERVER),
    same("--vgdb-error", NO_SERVER),
    same("--vgdb-stop-at", NO_SERVER),
    same("--vgdb-poll", NO_SERVER),
    same("--vgdb-shadow-registers", NO_SERVER),
    same("--vgdb-prefix", NO_SERVER),
    same("--track-fds", NO_ERRORS),
    same("--time-stamp", "lines of the log have no time"),
    refused("--log-fd", "name a file with --log-file"),
    obeyed("--log-file", |all, value| settings::text(&mut all.log_file, value)),
    refused("--log-socket", "name a file with --log-file"),
    same("--enable-debuginfod", "debug information is read from this machine"),
    obeyed("--verbose", settings::verbose),
    obeyed("-v", settings::verbose),
    obeyed("--quiet", settings::quiet),
    obeyed("-q", settings::quiet),
    obeyed("--command-line-only", |all, value| settings::yes_no(&mut all.command_line_only, value)),
    same("--demangle", "names are demangled"),
    obeyed("--num-callers", |all, value| settings::number(&mut all.callers, (1, 500), value)),
    same("--unw-stack-scan-thresh", NO_ERRORS),
    same("--unw-stack-scan-frames", NO_ERRORS),
    same("--error-limit", NO_ERRORS),
    same("--error-exitcode", NO_ERRORS),
    same("--exit-on-first-error", NO_ERRORS),
    same("--error-markers", NO_ERRORS),
    same("--show-error-list", NO_ERRORS),
    same("-s", NO_ERRORS),
    same("--sigill-diagnostics", NO_ERRORS),
    same("--keep-debuginfo", "names of unloaded libraries are kept"),
    same("--show-below-main", "functions below main are shown"),
    same("--fullpath-after", "files have their full paths"),
    same("--extra-debuginfo-path", "debug information is looked for where the system keeps it"),
    same("--debuginfo-server", "debug information is read from this machine"),
    same("--allow-mismatched-debuginfo", "debug information that does not belong to a file is not read"),
    same("--suppressions", NO_ERRORS),
    same("--gen-suppressions", NO_ERRORS),
    same("--default-suppressions", NO_ERRORS),
    same("--input-fd", NO_ERRORS),
    same("--dsymutil", "an option for another system"),
    same("--max-stackframe", NO_ERRORS),
    same("--main-stacksize", "the program's stack is its own"),
    same("--max-threads", "512 threads run at a time"),
    same("--alignment", "the program's allocator is its own"),
    same("--redzone-size", "the program's allocator is its own"),
    refused("--xml", NO_ERRORS),
    same("--realloc-zero-bytes-frees", "the program's allocator is its own"),
    same("--xtree-memory", NO_TREES),
    same("--xtree-memory-file", NO_TREES),
    same("--smc-check", "code that changes is always noticed"),
    same("--read-inline-info", "inlined code is always told apart"),
    same("--read-var-info", NO_ERRORS),
    same("--run-libc-freeres", "the C library frees what it frees natively"),
    same("--run-cxx-freeres", "the C++ library frees what it frees natively"),
    same("--sim-hints", NO_TRANSLATOR),
    same("--scheduling-quantum", "threads run at the same time"),
    same("--fair-sched", "threads run at the same time"),
    same("--kernel-variant", NO_TRANSLATOR),
    same("--merge-recursive-frames", NO_ERRORS),
    same("--num-transtab-sectors", NO_TRANSLATOR),
    same("--avg-transtab-entry-size", NO_TRANSLATOR),
    same("--aspace-minaddr", NO_TRANSLATOR),
    same("--valgrind-stacksize", NO_TRANSLATOR),
    same("--show-emwarns", NO_TRANSLATOR),
    same("--require-text-symbol", NO_ERRORS),
    same("--soname-synonyms", "the program's allocator is its own"),
    same("--progress-interval", "the log says what it says"),
    same("--vex-*", NO_TRANSLATOR),
    // Callgrind.
    obeyed("--callgrind-out-file", |all, value| settings::text(&mut all.callgrind_file, value)),
    obeyed("--dump-line", |all, value| settings::yes_no(&mut all.lines, value)),
    obeyed("--dump-instr", |all, value| settings::yes_no(&mut all.addresses, value)),
    refused("--dump-bb", "costs are written by line and by instruction"),
    obeyed("--compress-strings", |all, value| settings::yes_no(&mut all.compress_strings, value)),
    same("--compress-pos", "positions are absolute, which every reader takes"),
    same("--compress-mangled", "names are written demangled"),
    same("--mangle-names", "names are written demangled"),
    obeyed("--combine-dumps", |all, value| settings::yes_no(&mut all.combine_dumps, value)),
    refused("--dump-every-bb", "divide a run with requests or --dump-before"),
    obeyed("--dump-before", |all, value| settings::function(&mut all.dump_before, value)),
    obeyed("--dump-after", |all, value| settings::function(&mut all.dump_after, value)),
    obeyed("--zero-before", |all, value| settings::function(&mut all.zero_before, value)),
    obeyed("--instr-atstart", |all, value| settings::yes_no(&mut all.instruments_at_start, value)),
    obeyed("--collect-atstart", |all, value| settings::yes_no(&mut all.collects_at_start, value)),
    obeyed("--toggle-collect", settings::toggle),
    obeyed("--collect-jumps", |all, value| settings::yes_no(&mut all.jumps, value)),
    same("--collect-systime", "system calls are not timed, and their events have no column"),
    refused("--collect-bus", "locked instructions are not counted"),
    obeyed("--separate-threads", |all, value| settings::yes_no(&mut all.separate_threads, value)),
    same("--separate-callers*", NO_CONTEXTS),
    same("--separate-recs*", NO_CONTEXTS),
    same("--skip-plt", "stubs stand as functions of their own"),
    same("--skip-direct-rec", NO_CONTEXTS),
    same("--fn-skip", "costs stay with the function; totals are the same"),
    same("--fn-group*", "functions are not grouped; totals are the same"),
    same("--pop-on-jump", NO_CONTEXTS),
    same("--obj-skip", "costs stay with the object; totals are the same"),
    obeyed("--cache-sim", |all, value| settings::choice(&mut all.simulates, value)),
    obeyed("--simulate-cache", |all, value| settings::choice(&mut all.simulates, value)),
    refused("--branch-sim", "branches are predicted by lightfoot cache --branches"),
    refused("--simulate-wb", "written lines are counted by lightfoot cache --write-backs"),
    refused("--simulate-hwpref", CYCLES),
    refused("--cacheuse", "the use of lines is not followed"),
    same("--cycle-estimation", "cycles are not estimated, and their event has no column"),
    obeyed("--I1", |all, value| settings::cache(all, 0, value)),
    obeyed("--D1", |all, value| settings::cache(all, 1, value)),
    obeyed("--LL", |all, value| settings::cache(all, 2, value)),
    obeyed("--L2", |all, value| settings::cache(all, 2, value)),
    // Cachegrind.
    obeyed("--cachegrind-out-file", |all, value| settings::text(&mut all.cachegrind_file, value)),
    obeyed("--instr-at-start", |all, value| settings::yes_no(&mut all.instruments_at_start, value)),
    // DHAT.
    obeyed("--dhat-out-file", |all, value| settings::text(&mut all.dhat_file, value)),
    obeyed("--mode", settings::mode),
    // Massif.
    obeyed("--massif-out-file", |all, value| settings::text(&mut all.massif_file, value)),
    obeyed("--heap-admin", |all, value| settings::number(&mut all.snapshots.block_bytes, (0, 1024), value)),
    obeyed("--depth", |all, value| settings::number(&mut all.massif.depth, (1, 200), value)),
    obeyed("--alloc-fn", |all, value| settings::function(&mut all.massif.allocating, value)),
    refused("--ignore-fn", "every block is followed"),
    obeyed("--threshold", |all, value| settings::number(&mut all.massif.threshold_percent, (0, 100), value)),
    obeyed("--peak-inaccuracy", |all, value| {
        settings::number(&mut all.snapshots.peak_percent, (0, 100), value)
    }),
    obeyed("--detailed-freq", |all, value| {
        settings::number(&mut all.snapshots.detailed_every, (1, 1000), value)
    }),
    obeyed("--max-snapshots", |all, value| settings::number(&mut all.snapshots.at_most, (10, 1000), value)),
    obeyed("--time-unit", settings::time_unit),
    refused("--stacks", "stacks are not followed"),
    refused("--pages-as-heap", "pages that the program maps itself are not followed"),
    // Lackey.
    obeyed("--basic-counts", |all, value| settings::yes_no(&mut all.basic_counts, value)),
    obeyed("--fnname", |all, value| settings::name(&mut all.function, value)),
    refused(
        "--detailed-counts",
        "operations are Valgrind's own; lightfoot tool opcode-mix counts instructions",
    ),
    refused("--trace-mem", "use lightfoot tool memory-trace"),
    refused("--trace-superblocks", "use lightfoot tool memory-trace, whose records name blocks"),
    // Ours.
    obeyed("--rep", settings::rep),
    obeyed("--calls", |all, value| settings::yes_no(&mut all.calls, value)),
    obeyed("--strict", |all, value| settings::yes_no(&mut all.strict, value)),
    obeyed("--virtual-cpu", settings::processor),
    obeyed("--repeatable", settings::repeatable),
    obeyed("--turns", settings::turns),
    obeyed("--version-number", |all, value| settings::version(&mut all.version, value)),
    obeyed("--fallback", |_, value| settings::text(&mut None, value)),
];

/// Options that Valgrind does not have.
pub(super) const OURS: &[&str] = &[
    "--rep",
    "--calls",
    "--strict",
    "--virtual-cpu",
    "--repeatable",
    "--turns",
    "--version-number",
    "--fallback",
];

/// The table as rows of a document.
pub(super) fn table() -> String {
    let row = |known: &Known| {
        let name = known.name.replace('*', "…");
        match known.effect {
            Obeyed(_) => format!("| `{name}` | obeyed | |\n"),
            Same(why) => format!("| `{name}` | changes no number | {why} |\n"),
            Refused(why) => format!("| `{name}` | refused | {why} |\n"),
        }
    };
    OPTIONS.iter().map(row).collect()
}

/// The option of this name.
pub(super) fn find(name: &str) -> Option<&'static Known> {
    let begins = |known: &&Known| known.name.strip_suffix('*').is_some_and(|start| name.starts_with(start));
    OPTIONS.iter().find(|known| known.name == name).or_else(|| OPTIONS.iter().find(begins))
}

/// The option whose name is nearest, if one is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let distance = |known: &Known| (distance(name, known.name), known.name);
    let (changes, nearest) = OPTIONS.iter().map(distance).min()?;
    (changes <= 3).then_some(nearest)
}

/// The fewest letters to insert, remove or replace between two names.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (at, &else_letter) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != else_letter);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_near_ones_proposed() {
        assert!(find("--toggle-collect").is_some() && find("--separate-callers3").is_some());
        assert!(find("--togle-collect").is_none());
        assert_eq!(nearest("--togle-collect"), Some("--toggle-collect"));
        assert_eq!(nearest("--xyzzy-plugh-frotz"), None);
        assert_eq!((distance("kitten", "sitting"), distance("", "ab")), (3, 2));
    }

    #[test]
    fn each_option_stands_once() {
        let mut names: Vec<&str> = OPTIONS.iter().map(|known| known.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
