//! Truths about the tree that no compiler checks, as tests: floors, places of unsafe code,
//! documents that name what exists.
//!
//! Truths only, never taste: nothing here counts lines. To add a crate, a file with unsafe code or
//! a document, edit the tables at the top. Sources are read as text with comments and literals
//! blanked, which is enough for words and needs no parser. Source of the idea: rust-analyzer's and
//! TigerBeetle's tidy tests.

mod comments;
mod errors;
mod imports;
mod layers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates by floor, and what each may use: look down, never sideways. `*` is everything below.
const FLOORS: &[(&str, u8, &[&str])] = &[
    ("assembler", 0, &[]),
    ("machine", 0, &[]),
    ("event", 0, &[]),
    ("region", 0, &[]),
    ("bench-macros", 0, &[]),
    ("bench", 1, &["bench-macros", "region"]),
    ("instrument", 1, &["assembler", "event", "private-folder"]),
    ("simulate", 1, &["event", "machine"]),
    ("measure", 1, &["machine"]),
    ("search", 1, &["machine"]),
    ("pattern", 1, &["assembler", "machine", "private-folder"]),
    ("matrix", 1, &["machine"]),
    ("blas", 2, &["matrix"]),
    ("search-c", 2, &["search"]),
    ("plot", 0, &[]),
    ("present", 0, &[]),
    ("private-folder", 0, &[]),
    ("mapped-file", 0, &[]),
    ("symbol", 2, &["instrument", "private-folder"]),
    ("grep", 2, &["mapped-file", "pattern", "present"]),
    ("cycles", 2, &["instrument", "machine", "simulate"]),
    ("call-graph", 3, &["event", "instrument", "simulate", "symbol"]),
    ("heap", 3, &["event", "instrument", "symbol"]),
    ("coherence", 4, &["event", "heap", "instrument", "simulate", "symbol"]),
    ("contenders", 2, &["search"]),
    (
        "study",
        3,
        &[
            "contenders",
            "event",
            "machine",
            "matrix",
            "measure",
            "pattern",
            "plot",
            "present",
            "region",
            "search",
            "simulate",
        ],
    ),
    ("objects", 4, &["event", "heap", "instrument", "simulate", "symbol"]),
    ("lightfoot", 5, &["*"]),
];

/// Files that may hold unsafe code, one per line; a listed file without any is to be taken off the
/// list.
const UNSAFE_FILES: &[&str] = &[
    "bench/src/process.rs",
    "bench/src/request.rs",
    "instrument/src/host/affinity.rs",
    "instrument/src/host/ring/wide.rs",
    "instrument/src/target/allocator.rs",
    "instrument/src/target/bell.rs",
    "instrument/src/target/handover.rs",
    "instrument/src/target/inherited.rs",
    "instrument/src/target/interrupt.rs",
    "instrument/src/target/file_bytes.rs",
    "instrument/src/target/memory.rs",
    "instrument/src/target/ptrace.rs",
    "instrument/src/target/pulse.rs",
    "instrument/src/reference/trace.rs",
    "instrument/src/target/rights.rs",
    "mapped-file/src/fault.rs",
    "mapped-file/src/lib.rs",
    "mapped-file/src/tests.rs",
    "pattern/benches/columns/vectorscan.rs",
    "pattern/src/bits/kernel.rs",
    "pattern/src/kernel/ascii.rs",
    "pattern/src/kernel/avx2.rs",
    "pattern/src/kernel/avx512.rs",
    "pattern/src/kernel/cuda/compiler.rs",
    "pattern/src/kernel/cuda/driver.rs",
    "pattern/src/kernel/cuda/library.rs",
    "pattern/src/kernel/jit/memory.rs",
    "pattern/src/kernel/jit/mod.rs",
    "pattern/src/kernel/popcount.rs",
    "pattern/src/literal/finder/avx2.rs",
    "pattern/src/literal/finder/avx512.rs",
    "pattern/src/transpose/avx2.rs",
    "pattern/src/transpose/avx512.rs",
    "pattern/src/transpose/neon.rs",
    "pattern/src/transpose/sse2.rs",
    "pattern/src/words/avx2.rs",
    "pattern/src/words/avx512.rs",
    "python/src/arrow.rs",
    "python/src/buffer.rs",
    "python/src/export.rs",
    "region/src/lib.rs",
    "search-c/src/functions.rs",
    "search-c/src/status.rs",
    "search/benches/pages/main.rs",
    "search/src/choose.rs",
    "search/src/kernel/avx2.rs",
    "search/src/kernel/avx512.rs",
    "search/src/kernel/define.rs",
    "search/src/kernel/mod.rs",
    "search/src/kernel/neon.rs",
    "search/src/line.rs",
    "search/src/memory.rs",
    // Words that were checked where they were stored: the paper's searches in C check none either.
    "search/src/paper/aware.rs",
    "search/src/paper/brodal.rs",
    "search/src/paper/classic.rs",
    "search/src/paper/lookup.rs",
    "search/src/paper/oblivious.rs",
    "search/tests/files.rs",
    "matrix/src/blocked.rs",
    "matrix/src/buffer.rs",
    "matrix/src/column_sums.rs",
    "matrix/src/factor/block.rs",
    "matrix/src/factor/near.rs",
    "matrix/src/gemm/direct.rs",
    "matrix/src/gemm/job.rs",
    "matrix/src/gemm/multiplication.rs",
    "matrix/src/gemm/placement.rs",
    "matrix/src/gemm/pool.rs",
    "matrix/src/gemm/prepared.rs",
    "matrix/src/gemm/scale.rs",
    "matrix/src/gemm/small.rs",
    "matrix/src/gemm/source.rs",
    "matrix/src/gemm/threads.rs",
    "matrix/src/gemm/tile.rs",
    "matrix/src/interop.rs",
    "matrix/src/kernel/avx2.rs",
    "matrix/src/kernel/avx512.rs",
    "matrix/src/kernel/direct.rs",
    "matrix/src/kernel/direct_avx2.rs",
    "matrix/src/kernel/direct_avx512.rs",
    "matrix/src/kernel/factor/array.rs",
    "matrix/src/kernel/factor/avx512.rs",
    "matrix/src/kernel/factor/cholesky.rs",
    "matrix/src/kernel/factor/lanes.rs",
    "matrix/src/kernel/factor/lu.rs",
    "matrix/src/kernel/factor/mod.rs",
    "matrix/src/kernel/factor/reflect.rs",
    "matrix/src/kernel/factor/solve.rs",
    "matrix/src/kernel/factor/strips.rs",
    "matrix/src/kernel/factor/triangle.rs",
    "matrix/src/kernel/microkernel.rs",
    "matrix/src/kernel/neon.rs",
    "matrix/src/kernel/scalar.rs",
    "matrix/src/kernel/tests.rs",
    "matrix/src/kernel/thin_avx512.rs",
    "blas/src/arguments.rs",
    "blas/src/cblas.rs",
    "blas/src/fortran.rs",
    "blas/src/lapack.rs",
    "blas/src/refuse.rs",
    "blas/src/routine.rs",
    "blas/tests/routines.rs",
    "matrix/benches/mixed/peers.rs",
    "matrix/src/mixed/blocks.rs",
    "matrix/src/mixed/kernel/amx.rs",
    "matrix/src/mixed/kernel/avx2.rs",
    "matrix/src/mixed/kernel/avx512.rs",
    "matrix/src/mixed/kernel/scalar.rs",
    "matrix/src/mixed/kernel/tile.rs",
    "matrix/src/mixed/mod.rs",
    "matrix/src/mixed/pack.rs",
    "matrix/src/mixed/product.rs",
    "matrix/src/mixed/source.rs",
    "matrix/src/mixed/tests.rs",
    "matrix/src/panel.rs",
    "matrix/src/partition.rs",
    "matrix/src/race/crates.rs",
    "matrix/src/race/dynamic.rs",
    "matrix/src/race/lapack.rs",
    "matrix/src/race/peak.rs",
    "matrix/src/race/registry.rs",
    "matrix/src/strided.rs",
    "matrix/src/transpose.rs",
    "matrix/src/transposed.rs",
    "matrix/src/vector.rs",
    "matrix/tests/guard.rs",
    "measure/src/chase/arena.rs",
    "measure/src/counter/perf.rs",
    "measure/src/counter/ring.rs",
    "simulate/src/kernel/row.rs",
    "simulate/src/kernel/token.rs",
];

/// Documents whose backticks are held against the tree.
const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "LIMITS.md", "CHANGELOG.md"];

/// Subcommands that documents may name while the binary has no help yet.
const PLANNED: &[&str] = &["count", "cache", "study", "doctor", "tile"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Files of the tree with one of the extensions, relative to the root. Build output, wherever it
/// was put, and hidden folders do not belong to it.
fn files(extensions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        if folder.join("CACHEDIR.TAG").exists() {
            continue;
        }
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with('.') && name != ".ci" {
                continue;
            }
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && extensions.iter().any(|e| path.extension().is_some_and(|x| x == *e)) {
                found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_string());
            }
        }
    }
    found.sort();
    assert!(!found.is_empty());
    found
}

fn complain(title: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{title}:\n  {}", complaints.join("\n  "));
}

// --- floors

/// (dependency, whether it is only for development) of a manifest.
fn dependencies(manifest: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_string();
            if let Some((table, name)) = section.rsplit_once("dependencies.") {
                found.push((name.to_string(), table.ends_with("dev-")));
            }
        } else if section.ends_with("dependencies") && !line.starts_with('#') {
            let name: String =
                line.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
            if line[name.len()..].trim_start().starts_with(['=', '.']) {
                found.push((name, section.ends_with("dev-dependencies")));
            }
        }
    }
    found
}

fn members() -> Vec<String> {
    let manifest = text("Cargo.toml");
    let list = manifest.split_once("\nmembers").expect("the workspace lists its members").1;
    let list = list.split_once(']').unwrap().0;
    list.split('"').skip(1).step_by(2).map(str::to_string).collect()
}

fn floor(name: &str) -> Option<&'static (&'static str, u8, &'static [&'static str])> {
    FLOORS.iter().find(|(crate_name, ..)| *crate_name == name)
}

/// What is wrong with one dependency, if anything.
fn sideways(name: &str, used: &str, for_development: bool) -> Option<String> {
    let (_, own, may) = floor(name)?;
    let (_, other, _) = floor(used)?;
    let allowed = if for_development {
        other <= own
    } else {
        other < own && (may.contains(&"*") || may.contains(&used))
    };
    (!allowed).then(|| format!("{name} (floor {own}) may not use {used} (floor {other})"))
}

#[test]
fn crates_look_down_never_sideways() {
    let mut complaints = Vec::new();
    for name in members() {
        if floor(&name).is_none() {
            complaints.push(format!("{name} has no floor: enter it in FLOORS"));
        }
        for (used, for_development) in dependencies(&text(&format!("{name}/Cargo.toml"))) {
            complaints.extend(sideways(&name, &used, for_development));
        }
    }
    complain("floors", &complaints);
}

#[test]
fn the_floor_check_can_fail() {
    let manifest = "[dependencies]\nevent.workspace = true\n[dev-dependencies]\nsimulate = { path = \"x\" }\n\
                    [target.'cfg(unix)'.dependencies]\nmachine = \"1\"\n[dependencies.simulate]\npath = \"y\"\n";
    let found = dependencies(manifest);
    let expected = [("event", false), ("simulate", true), ("machine", false), ("simulate", false)];
    assert_eq!(found, expected.map(|(name, dev)| (name.to_string(), dev)));
    assert!(sideways("instrument", "simulate", false).is_some());
    assert!(sideways("instrument", "machine", false).is_some());
    assert!(sideways("instrument", "lightfoot", true).is_some());
    assert!(sideways("instrument", "simulate", true).is_none());
    assert!(sideways("lightfoot", "simulate", false).is_none());
    assert!(sideways("machine", "serde", false).is_none());
}

// --- sources

/// The text with comments, strings and characters blanked; lines keep their numbers.
fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = skip(source, at);
        if end > at {
            code.extend(source[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            let c = source[at..].chars().next().unwrap();
            code.push(c);
            at += c.len_utf8();
        }
    }
    code
}

/// Where the comment or literal that starts at `at` ends; `at` itself where none starts.
fn skip(source: &str, at: usize) -> usize {
    let rest = &source[at..];
    let word_before = source[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        at + rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        at + block_comment(rest)
    } else if let Some(length) = (!word_before).then(|| raw_string(rest)).flatten() {
        at + length
    } else if rest.starts_with('"') {
        at + quoted(rest, '"')
    } else if rest.starts_with('\'') && is_character(rest) {
        at + quoted(rest, '\'')
    } else {
        at
    }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> Option<usize> {
    let after =
        rest.strip_prefix("br").or_else(|| rest.strip_prefix("cr")).or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.bytes().take_while(|&b| b == b'#').count();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&close).map_or(body.len(), |end| end + close.len());
    Some(rest.len() - body.len() + length)
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => (),
        }
    }
    rest.len()
}

/// Tells `'x'` and `'\n'` from a lifetime.
fn is_character(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    chars.next() == Some('\\') || chars.next() == Some('\'')
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}

#[test]
fn unsafe_code_stays_in_its_place() {
    let mut complaints = Vec::new();
    for file in files(&["rs"]) {
        let listed = UNSAFE_FILES.contains(&file.as_str());
        let holds = has_word(&code_only(&text(&file)), "unsafe");
        if holds && !listed {
            complaints.push(format!("{file} holds unsafe code and is not in UNSAFE_FILES"));
        }
        if listed && !holds {
            complaints.push(format!("{file} is in UNSAFE_FILES and holds none: take it off"));
        }
    }
    complain("unsafe code", &complaints);
}

#[test]
fn nothing_is_left_for_later() {
    let mut complaints = Vec::new();
    for file in files(&["rs"]) {
        let code = code_only(&text(&file));
        for (number, line) in code.lines().enumerate() {
            let dense: String = line.chars().filter(|c| !c.is_whitespace()).collect();
            for left in ["todo!(", "unimplemented!(", "#[ignore"] {
                if dense.contains(left) {
                    complaints.push(format!("{file}:{}: {left}", number + 1));
                }
            }
        }
    }
    complain("left for later", &complaints);
}

#[test]
fn the_source_check_can_fail() {
    let source =
        "a /* x /* unsafe */ unsafe */ b\n\"unsafe \\\" unsafe\" r#\"unsafe \" \"# '\\'' '\"' // unsafe\n\
                  fn f<'a>(x: &'a str) { unsafe { } } b\"todo!()\" unsafe_code \"\u{e9}\" 'é'";
    let code = code_only(source);
    assert_eq!(code.matches("unsafe").count(), 2, "{code}");
    assert!(has_word(&code, "unsafe") && !code.contains("todo!"));
    assert!(!has_word("#![forbid(unsafe_code)]", "unsafe"));
    assert_eq!(code.lines().count(), source.lines().count());
}

#[test]
fn no_tabs_no_conflicts_and_no_secrets() {
    // Written in pieces so that this file does not match itself.
    let secrets =
        [concat!("PRIVATE ", "KEY-----"), concat!("gh", "p_"), concat!("AK", "IA"), concat!("/ro", "ot/")];
    let mut complaints = Vec::new();
    for file in files(&["rs", "toml", "md", "sh", "py", "c", "yml"]) {
        for (number, line) in text(&file).lines().enumerate() {
            let place = format!("{file}:{}", number + 1);
            if line.contains('\t') {
                complaints.push(format!("{place}: a tab"));
            }
            if ["<<<<<<< ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark)) {
                complaints.push(format!("{place}: two versions that nobody chose between"));
            }
            for secret in secrets.iter().filter(|secret| line.contains(**secret)) {
                complaints.push(format!("{place}: {secret} looks like a secret or a private path"));
            }
        }
    }
    complain("tabs, conflicts and secrets", &complaints);
}

// --- documents

/// Inline code spans, link targets and the lines of fenced blocks of a Markdown text.
fn named(markdown: &str) -> (Vec<String>, Vec<String>) {
    let (mut spans, mut fenced, mut prose, mut inside) = (Vec::new(), Vec::new(), String::new(), false);
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            fenced.push(line.trim().to_string());
        } else {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    spans.extend(
        prose.split('`').skip(1).step_by(2).map(|s| s.split_whitespace().collect::<Vec<_>>().join(" ")),
    );
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = links.filter(|link| !link.contains("://") && !link.starts_with('#'));
    spans.extend(targets.map(|link| link.split('#').next().unwrap().to_string()));
    (spans, fenced)
}

/// Whether a span can only be meant as a path of this repository: relative, and with a slash or an
/// extension of our documents.
fn is_path(span: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let relative = !span.starts_with(['/', '-']) && span.chars().all(plain);
    relative && (span.contains('/') || span.ends_with(".md") || span.ends_with(".toml"))
}

/// The subcommand that a span or a line of a shell block calls.
fn subcommand(text: &str) -> Option<&str> {
    let text = text.strip_prefix("$ ").unwrap_or(text);
    let rest = match text.strip_prefix("lightfoot ") {
        Some(rest) => rest,
        None if text.starts_with("cargo run ") => text.split_once(" -- ")?.1,
        None => return None,
    };
    // A report's first line reads `lightfoot cache: program`.
    let word = rest.split_whitespace().next()?.trim_end_matches(':');
    word.starts_with(|c: char| c.is_ascii_lowercase()).then_some(word)
}

/// The subcommands that the binary's help lists; `PLANNED` while it prints no help at all.
fn commands() -> BTreeSet<String> {
    let mut lightfoot = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
    // No wish of the environment's for colours.
    let output = lightfoot.arg("--help").env_clear().output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    if help.trim().is_empty() && output.status.success() {
        return PLANNED.iter().map(|name| name.to_string()).collect();
    }
    listed(&help)
}

/// The first word of each line indented by two under `Commands:`.
fn listed(help: &str) -> BTreeSet<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let block = lines.take_while(|line| line.starts_with(' '));
    let first = |line: &str| {
        let word = line.strip_prefix("  ")?.split(' ').next()?;
        (!word.is_empty()).then(|| word.to_string())
    };
    block.filter_map(first).collect()
}

#[test]
fn documents_name_what_exists() {
    let commands = commands();
    assert!(!commands.is_empty(), "the help lists no commands");
    let mut complaints = Vec::new();
    for document in DOCUMENTS {
        let (spans, fenced) = named(&text(document));
        for span in spans.iter().filter(|span| is_path(span)) {
            if !root().join(span).exists() {
                complaints.push(format!("{document}: there is no {span}"));
            }
        }
        for command in spans.iter().chain(&fenced).filter_map(|text| subcommand(text)) {
            if !commands.contains(command) {
                complaints.push(format!("{document}: lightfoot has no command {command}"));
            }
        }
    }
    complain("documents", &complaints);
}

#[test]
fn the_document_check_can_fail() {
    let (spans, fenced) =
        named("See `a/b.rs` and [c](d.md#e),\n`lightfoot\nfly high`.\n```sh\nlightfoot cache -- x\n```\n");
    assert_eq!(spans, ["a/b.rs", "lightfoot fly high", "d.md"]);
    assert_eq!(fenced, ["lightfoot cache -- x"]);
    assert!(is_path("a/b.rs") && is_path(".ci/run") && is_path("GONE.md"));
    assert!(!is_path("/proc/self") && !is_path("--l1d") && !is_path("cargo test a/b") && !is_path("Profile"));
    assert_eq!(subcommand("lightfoot fly high"), Some("fly"));
    assert_eq!(subcommand("cargo run --release -- cache -- prog"), Some("cache"));
    assert_eq!(subcommand("lightfoot fly: high"), Some("fly"));
    assert_eq!(subcommand("$ lightfoot --help"), None);
    let help =
        "About\n\nCommands:\n  count   Counts\n          and more\n  cache   Misses\n\nOptions:\n  -h\n";
    assert_eq!(listed(help).into_iter().collect::<Vec<_>>(), ["cache", "count"]);
}

#[test]
fn licences_and_documents_are_there() {
    for name in DOCUMENTS.iter().chain(&["LICENSE-MIT", "LICENSE-APACHE", ".ci/run"]) {
        assert!(text(name).len() > 100, "{name} says next to nothing");
    }
}
