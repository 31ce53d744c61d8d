//! Layers inside each crate: a module imports from lower layers and from within itself, never from
//! above and never from beside. The table is the whole rule; to add a file, put its module on the
//! layer above the highest one that it imports from.

use crate::imports::{Imports, Module};
use crate::{code_only, complain, files, members, text};

/// For each crate its layers, the top one first, modules separated by spaces. A module stands for
/// its folder, unless a file of the folder is listed itself; `lib` is the crate's root.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "assembler",
        &[
            "sse",
            "control integer vector",
            "code operand",
            "instruction lib",
        ],
    ),
    (
        "machine",
        &[
            "named",
            "ability preset",
            "check host overrides read",
            "machine",
            "cache tlb",
            "behaviour error feature geometry lib source",
            "replacement",
        ],
    ),
    (
        "event",
        &[
            "check decode",
            "group",
            "complex file",
            "shape sink upcoming",
            "filter lib record sites state",
        ],
    ),
    (
        "region",
        &[
            "lib",
        ],
    ),
    (
        "bench-macros",
        &[
            "setting template",
            "item lib",
        ],
    ),
    (
        "bench",
        &[
            "criterion",
            "runner",
            "bencher process settings",
            "block_on lib request",
        ],
    ),
    (
        "present",
        &[
            "output page",
            "completion manual terminal",
            "csv date exit help lib number order policy progress temporary",
        ],
    ),
    (
        "private-folder",
        &[
            "lib",
        ],
    ),
    ("mapped-file", &["tests", "lib", "fault", "slot"]),
    (
        "plot",
        &[
            "bars curves flame heat_map lines panels scatter tiles timeline",
            "lib svg",
        ],
    ),
    (
        "instrument",
        &[
            "tools",
            "tool",
            "run",
            "host",
            "image",
            "store",
            "translate",
            "emit instrumentation reference",
            "cache plan",
            "code probe",
            "target",
            "outcome",
            "mark",
            "profile",
            "evidence virtual_machine",
            "address_map call error lib room",
        ],
    ),
    (
        "simulate",
        &[
            "simulator",
            "hierarchy reference shelf",
            "bank distance model",
            "front kinds plan refined stage tally traffic",
            "kernel levels",
            "pages",
            "large_pages row_map",
            "cycle geometry miss_log scratch",
            "located",
            "behaviour filter lib limits policy predict report touch",
        ],
    ),
    (
        "measure",
        &[
            "collector plan",
            "counter perturb",
            "chase trace",
            "align error lib phase random rank",
        ],
    ),
    (
        "search",
        &[
            "agree growing intersection map",
            "coded index reference",
            "key strings value",
            "column",
            "plan",
            "choose race",
            "file kernel",
            "reason",
            "layout",
            "copies scale",
            "lane",
            "error memory parallel simd",
            "cut format lib line paper sample",
        ],
    ),
    (
        "pattern",
        &[
            "column",
            "regex/set superset",
            "set",
            "regex/builder regex/find regex/matcher",
            "regex/expression",
            "regex/ends regex/long_line",
            "regex/starts",
            "plan",
            "literal literal/required regex/ascii words",
            "bits line",
            "compile kernel literal/finder reference regex/parse regex/spans words/avx2 words/avx512 words/index words/scalar",
            "lib literal/commonness program regex regex/automaton regex/captures regex/error regex/options transpose words/list words/marks words/tables",
            "vectors",
        ],
    ),
    (
        "matrix",
        &[
            "race vector",
            "mixed factor",
            "gemm mixed/blocks mixed/pairs mixed/reference",
            "mixed/product",
            "mixed/kernel mixed/pack",
            "mixed/narrow mixed/source",
            "transposed",
            "interop tiling view",
            "blocked rate",
            "buffer column_sums partition reference tile_sizes",
            "element layout panel paper strided",
            "error kernel lib transpose",
        ],
    ),
    ("blas", &["cblas fortran lapack", "routine", "arguments lib refuse"]),
    ("search-c", &["functions", "lib status"]),
    (
        "symbol",
        &[
            "names",
            "symbolizer",
            "call_frames wanted",
            "debug_sections generated image listing",
            "kept_symbols",
            "debug_file dwarf generated/jit_dump generated/perf_map kept_lines",
            "frame generated/ranges plt source sparse spelling",
            "demangle elf lib numbers strings table vdso",
        ],
    ),
    (
        "grep",
        &[
            "command",
            "search",
            "worker",
            "direct list",
            "config explain walk",
            "matching",
            "help query say writer",
            "results",
            "card flag stdout",
            "settings",
            "arguments lib main outcome",
        ],
    ),
    ("cycles", &["lib", "rates", "flow graph stall", "core parts step text", "timing words"]),
    ("call-graph", &["lib", "thread", "keys", "stack", "events batch jumps"]),
    ("heap", &["tests", "images", "follow", "ask events heap", "sites thread", "snapshots", "allocator amount lib live word"]),
    (
        "coherence",
        &["tests", "tool", "naive objects rounds", "ask caches", "own", "directory ways", "copies", "associative counts lib placement turn"],
    ),
    (
        "objects",
        &["tool", "field_names names", "fields", "typing uses", "order", "tally", "map", "image", "locals", "recent", "region simulators", "by_image debug globals lib modules place run_sites"],
    ),
    ("contenders", &["lib", "index kernel", "peer"]),
    (
        "study",
        &[
            "all",
            "studies",
            "cycles gemm instrument perturbation regex search_trees tiling validation",
            "journal layout tile",
            "host lib options outcome race workshop",
        ],
    ),
    (
        "lightfoot",
        &[
            "command",
            "report trace",
            "run",
            "bin cli lib main",
        ],
    ),
];

/// Files that import each other are one file in pieces.
const LARGEST_CIRCLE: usize = 1;

fn imports(name: &str) -> Imports {
    let source = format!("{name}/src/");
    let below = files(&["rs"]).into_iter().filter(|file| file.starts_with(&source));
    let read = |file: String| (file[source.len()..].to_owned(), code_only(&text(&file)));
    Imports::read(&below.map(read).collect::<Vec<_>>())
}

fn shown(module: &Module) -> String {
    if module.is_empty() {
        "lib".to_owned()
    } else {
        module.join("/")
    }
}

/// The listed room that a module lies in, and its layer's number from the top.
fn room<'a>(layers: &[&'a str], module: &Module) -> Option<(&'a str, usize)> {
    let path = shown(module);
    let rooms =
        layers.iter().enumerate().flat_map(|(at, layer)| layer.split(' ').map(move |room| (room, at)));
    let holds =
        |room: &str| path == room || path.strip_prefix(room).is_some_and(|rest| rest.starts_with('/'));
    rooms.filter(|(room, _)| holds(room)).max_by_key(|(room, _)| room.len())
}

/// What is wrong with one import, if anything.
fn wrong(layers: &[&str], from: &Module, to: &Module) -> Option<String> {
    let unlisted = |module: &Module| Some(format!("{} stands on no layer", shown(module)));
    let Some((above, upper)) = room(layers, from) else { return unlisted(from) };
    let Some((below, lower)) = room(layers, to) else { return unlisted(to) };
    let allowed = above == below || upper < lower;
    (!allowed).then(|| format!("{} imports {}, which is not below it", shown(from), shown(to)))
}

#[test]
fn modules_import_from_lower_layers_only() {
    let mut complaints = Vec::new();
    for name in members() {
        let Some((_, layers)) = LAYERS.iter().find(|(listed, _)| *listed == name) else {
            complaints.push(format!("{name} has no layers in {}", file!()));
            continue;
        };
        for (from, targets) in &imports(&name).of {
            let found = targets.iter().filter_map(|to| wrong(layers, from, to));
            complaints.extend(found.map(|said| format!("{name}: {said}")));
        }
    }
    complain("layers", &complaints);
}

#[test]
fn circles_are_small() {
    let mut complaints = Vec::new();
    for name in members() {
        let circles = imports(&name).circles();
        for circle in circles.iter().filter(|circle| circle.len() > LARGEST_CIRCLE) {
            let names = circle.iter().map(shown).collect::<Vec<_>>();
            complaints.push(format!("{name}: {} files: {}", names.len(), names.join(" ")));
        }
    }
    complain("files that import each other", &complaints);
}

#[test]
fn the_layer_check_can_fail() {
    let files = [
        ("lib.rs", "mod high; mod low; mod middle; pub use high::High;"),
        ("high.rs", "use crate::middle::{inner::Deep, Shown as Other}; #[cfg(test)] mod tests { use super::super::none::N; }"),
        ("middle/mod.rs", "pub mod inner; pub use crate::low::Low as Shown; use std::fmt;"),
        ("middle/inner.rs", "fn f() { super::super::low::g(); }"),
        ("low.rs", "use crate::middle; fn g() { middle::inner::h(); }"),
    ];
    let files = files.map(|(path, code)| (path.to_owned(), code.to_owned()));
    let imports = Imports::read(&files);
    assert!(imports.of[&Vec::new()].is_empty());
    let of = |name: &str| {
        let module: Module = name.split('/').map(str::to_owned).collect();
        imports.of[&module].iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(of("high"), ["low", "middle/inner"]);
    assert_eq!(of("middle"), ["low"]);
    assert_eq!(of("low"), ["middle/inner"]);
    let circles = imports.circles();
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].iter().map(shown).collect::<Vec<_>>(), ["low", "middle/inner"]);
    let layers = ["lib", "high", "middle", "low"];
    let module = |name: &str| vec![name.to_owned()];
    assert!(wrong(&layers, &module("high"), &module("low")).is_none());
    assert!(wrong(&layers, &module("low"), &module("high")).is_some());
    assert!(wrong(&layers, &module("low"), &module("other")).is_some());
    assert!(wrong(&["a b"], &module("a"), &module("b")).is_some());
}
