//! Real files: this test itself, the vdso, and a C program with and without its symbols.

use crate::elf::File;
use crate::sparse::Sparse;
use crate::table::Name;
use crate::{plt, vdso, FunctionName, SourceFrame, Symbolizer};
use instrument::Module;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The whole of a file as one module, mapped at `start`.
fn module(path: &Path, start: u64) -> Module {
    Module { path: path.to_owned(), start, end: u64::MAX, file_offset: 0, process: None }
}

fn name(symbols: &mut Symbolizer, module: &Module, ip: u64) -> String {
    let found = symbols.function_at(module, ip);
    assert!(found.range.contains(&ip), "{found:x?} {ip:x}");
    symbols.functions()[found.function].name.to_string()
}

/// Builds a C program; `None` where there is no compiler.
fn compiled(folder: &Path, flags: &[&str]) -> Option<PathBuf> {
    let (source, program) = (folder.join("two.c"), folder.join(format!("two{}", flags.concat())));
    let text =
        "#include <stdlib.h>\n__attribute__((noinline)) int first(int x) { return abs(rand()) + x; }\n\
                int main(int c, char **v) { (void)v; return first(c) & 1; }\n";
    std::fs::write(&source, text).unwrap();
    let status = Command::new("cc")
        .args(["-O1", "-fno-builtin", "-o"])
        .arg(&program)
        .arg(&source)
        .args(flags)
        .status();
    status.is_ok_and(|status| status.success()).then_some(program)
}

/// Address of `function` in `program`, by `nm`.
fn address(program: &Path, function: &str) -> u64 {
    let out = Command::new("nm").arg(program).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" T {function}"))).unwrap();
    u64::from_str_radix(&line[..16], 16).unwrap()
}

#[test]
fn functions_have_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), &[]) else { return };
    let (mut symbols, start) = (Symbolizer::new(), 0x5555_5555_4000);
    let module = module(&program, start);
    for function in ["first", "main"] {
        assert_eq!(name(&mut symbols, &module, start + address(&program, function) + 1), function);
    }
    assert!(!symbols.libraries()[0].is_stripped());
}

#[test]
fn stubs_are_named_for_their_target() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), &[]) else { return };
    let bytes = std::fs::read(program).unwrap();
    let file = File::parse(&*bytes).unwrap();
    let strings = Arc::new(Sparse::whole(bytes.clone()).strings(".dynstr").unwrap());
    let name = |name: Name| match name {
        Name::Stub(offset) => FunctionName::listed(strings.clone(), vec![offset], "@plt").to_string(),
        other => panic!("{other:?} is no stub"),
    };
    for relocations in [plt::relocations(&file), vec![".rela.plt", ".rela.dyn"]] {
        let stubs = plt::stubs(&file, &relocations);
        let names: Vec<String> = stubs.into_iter().map(|stub| name(stub.name)).collect();
        assert!(names.iter().any(|name| name == "rand@plt"), "{names:?}");
    }
}

#[test]
fn a_stripped_program_keeps_its_functions_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(whole), Some(stripped)) = (compiled(folder.path(), &[]), compiled(folder.path(), &["-s"]))
    else {
        return;
    };
    let mut symbols = Symbolizer::new();
    let module = module(&stripped, 0x40_0000);
    let (first, main) = (address(&whole, "first"), address(&whole, "main"));
    let name_of = |symbols: &mut Symbolizer, address| name(symbols, &module, 0x40_0000 + address);
    assert_eq!(name_of(&mut symbols, first), format!("two-s+{first:#x}"));
    assert_eq!(name_of(&mut symbols, first + 2), format!("two-s+{first:#x}"));
    assert_eq!(name_of(&mut symbols, main), format!("two-s+{main:#x}"));
    assert!(symbols.libraries()[0].is_stripped());
}

#[test]
fn debug_information_names_what_no_symbol_does() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), &["-g"]) else { return };
    let first = address(&program, "first");
    let removed = Command::new("objcopy").args(["-N", "first"]).arg(&program).status();
    if !removed.is_ok_and(|status| status.success()) {
        return;
    }
    let (mut symbols, module) = (Symbolizer::new(), module(&program, 0));
    assert_eq!(name(&mut symbols, &module, first + 1), "first");
}

#[test]
fn the_vdso_has_names() {
    let Some(bytes) = vdso::bytes() else { return };
    let file = File::parse(&*bytes).unwrap();
    use object::{Object, ObjectSymbol};
    let clock = file.dynamic_symbols().find(|s| s.name() == Ok("__vdso_clock_gettime")).unwrap().address();
    let start = 0x7fff_f7fc_0000;
    let module = Module { path: "[vdso]".into(), start, end: start + 0x2000, file_offset: 0, process: None };
    let found = name(&mut Symbolizer::new(), &module, start + clock);
    assert!(found.contains("clock_gettime"), "{found}");
}

#[test]
fn code_without_a_file_is_one_function() {
    let mut symbols = Symbolizer::new();
    let generated =
        Module { path: "[anonymous]".into(), start: 0x1000, end: 0x2000, file_offset: 0, process: None };
    assert_eq!(name(&mut symbols, &generated, 0x1234), "[anonymous]");
    let gone = Module { path: "/no/such/lib.so (deleted)".into(), ..generated };
    assert_eq!(name(&mut symbols, &gone, 0x1234), "lib.so (deleted)");
    assert_eq!(symbols.functions().len(), 2);
}

/// The chain that starts with a frame, as texts: numbers depend on what was asked before.
fn frames(symbols: &Symbolizer, number: Option<u32>) -> Vec<(String, u32, Option<String>)> {
    let sources = symbols.sources();
    let frame = |frame: SourceFrame| {
        let inlined = frame.inlined.map(|name| sources.names()[name as usize].clone());
        (sources.files()[frame.file as usize].clone(), frame.line, inlined)
    };
    number.map(|number| sources.chain(number).map(frame).collect()).unwrap_or_default()
}

/// Compiles a program whose two hundred functions are made of functions that are inlined there,
/// with debug information.
fn with_inlined_functions(folder: &Path) -> PathBuf {
    use std::fmt::Write;
    let mut source = String::from(
        "#define INLINED static inline __attribute__((always_inline))\n\
         INLINED int inner(int a, int b) {\n  int s = a ^ b;\n  for (int i = 0; i < b; i++)\n    s = s * 31 + i;\n  return s;\n}\n\
         INLINED int outer(int a, int b) {\n  int s = inner(a, b);\n  return s - inner(b, s & 15);\n}\n",
    );
    for n in 0..200 {
        writeln!(source, "int function{n}(int a) {{\n  int s = outer(a, {n});\n  return s / 3;\n}}").unwrap();
    }
    source += "int main(int count, char **words) {\n  return function7(count);\n}\n";
    let (file, program) = (folder.join("inlined.c"), folder.join("inlined"));
    std::fs::write(&file, source).unwrap();
    let built = Command::new("cc").args(["-g", "-O1", "-o"]).arg(&program).arg(&file).status();
    assert!(built.expect("cc is installed").success());
    program
}

/// Compares the look-up of whole blocks with its slow twin, which takes one address at a time.
#[test]
fn frames_of_a_block_are_those_of_its_instructions() {
    use object::{Object, ObjectSection};
    let folder = tempfile::tempdir().unwrap();
    let path = with_inlined_functions(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    let file = File::parse(&*bytes).unwrap();
    let (start, size) = file.section_by_name(".text").unwrap().file_range().unwrap();
    drop(file);
    let (mut fast, mut slow, module) = (Symbolizer::new(), Symbolizer::new(), module(&path, 0));
    let (mut inlined, mut found) = (0, Vec::new());
    for block in 0..300 {
        let ip = start + size / 301 * block;
        // A shorter piece of the same block afterwards, and a longer one.
        for count in [20, 7, 40] {
            let offsets = || (0..count as u16).map(|offset| offset * 3);
            found.clear();
            fast.frames(&module, ip, offsets(), &mut found);
            assert_eq!(found.len(), count);
            for (offset, frame) in offsets().zip(&found) {
                let expected = slow.frame(&module, ip + u64::from(offset));
                let expected = frames(&slow, expected);
                inlined += usize::from(expected.len() > 1);
                assert_eq!(frames(&fast, *frame), expected, "{ip:#x} + {offset}");
            }
        }
    }
    assert!(inlined > 100, "{inlined}");
}

#[test]
fn kept_tables_name_what_the_file_names() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    // This test is a large program, with symbols or only with a few exported ones.
    let own = std::env::current_exe().unwrap();
    let all = |kept_in: Option<&Path>, start: u64| {
        let (mut symbols, module) = (Symbolizer::new(), module(&own, start));
        symbols.keep_lines_in(kept_in.map(Path::to_owned));
        let found = |at: u64| {
            let found = symbols.function_at(&module, start + 37 * at);
            (symbols.functions()[found.function].name.to_string(), found.range)
        };
        let found: Vec<_> = (0..60_000).map(found).collect();
        symbols.keep_lines();
        found
    };
    let expected = all(None, 0x5555_5555_4000);
    let written = || std::fs::read_dir(place.join("lines")).map_or(0, Iterator::count);
    assert_eq!(written(), 0);
    assert_eq!(all(Some(place), 0x5555_5555_4000), expected);
    let is_large = written() > 0;
    assert_eq!(all(Some(place), 0x5555_5555_4000), expected, "kept: {is_large}");
    // A damaged file is made again.
    for file in std::fs::read_dir(place.join("lines")).into_iter().flatten().flatten() {
        let mut bytes = std::fs::read(file.path()).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file.path(), &bytes).unwrap();
        assert_eq!(all(Some(place), 0x5555_5555_4000), expected);
        bytes[middle] ^= 1;
        assert_eq!(std::fs::read(file.path()).unwrap(), bytes);
    }
}
