//! Programs of C against the header and the shared library, one for each type of keys.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The types of the header.
const TYPES: [(&str, &str); 10] = [
    ("u8", "uint8_t"),
    ("i8", "int8_t"),
    ("u16", "uint16_t"),
    ("i16", "int16_t"),
    ("u32", "uint32_t"),
    ("i32", "int32_t"),
    ("u64", "uint64_t"),
    ("i64", "int64_t"),
    ("f32", "float"),
    ("f64", "double"),
];

/// The folder of this build, which has the shared library.
fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    test.parent().expect("a folder").to_path_buf()
}

/// Compiles `program` with all warnings as errors; returns the executable.
fn compiled(folder: &Path, compiler: &str, program: &str, definitions: &[String]) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let executable = folder.join("program");
    let libraries = build_folder();
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror", "-Wno-type-limits", "-O1", "-o"]).arg(&executable);
    command.arg(crate_folder.join("tests").join(program)).arg("-I").arg(crate_folder.join("include"));
    command.args(definitions).arg("-L").arg(&libraries).arg("-llightfoot_index");
    command.arg(format!("-Wl,-rpath,{}", libraries.display()));
    let output = command.output().expect("a C compiler runs");
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    executable
}

#[test]
fn programs_of_c_get_the_right_answers() {
    for (name, key) in TYPES {
        let folder = tempfile::tempdir().expect("a folder");
        let definitions = [format!("-DNAME={name}"), format!("-DKEY={key}")];
        let program = compiled(folder.path(), "cc", "program.c", &definitions);
        let output = Command::new(program).arg(folder.path()).output().expect("the program runs");
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.ends_with("agrees\n"), "{name}: {text}{errors}");
    }
}

#[test]
fn the_readme_s_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(readme).expect("the README");
    let program = text.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let source = folder.path().join("readme.c");
    std::fs::write(&source, program).expect("a file");
    // A path that is not relative stands for itself.
    let program = compiled(folder.path(), "cc", source.to_str().expect("UTF-8"), &[]);
    let output = Command::new(program).output().expect("the program runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 1 4\n");
}

#[test]
fn the_header_is_one_of_cpp_too() {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("skipped: there is no compiler of C++");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("empty.cpp");
    std::fs::write(&source, "#include \"lightfoot_index.h\"\n").expect("a file");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let output = Command::new("c++")
        .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
        .arg(include)
        .arg(source)
        .output()
        .expect("the compiler runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_header_declares_what_the_library_defines() {
    let read = |path: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file")
    };
    let (header, functions) = (read("include/lightfoot_index.h"), read("src/functions.rs"));
    // Function names of the header's macro: what follows `##NAME##_` up to a parenthesis.
    let declared: Vec<&str> = header
        .split("##NAME##_")
        .skip(1)
        .filter_map(|rest| rest.split_once('('))
        .map(|(name, _)| name)
        .filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        .collect();
    assert_eq!(declared.len(), 18, "{declared:?}");
    for (name, _) in TYPES {
        for function in &declared {
            assert!(functions.contains(&format!("lfindex_{name}_{function},")), "{name}_{function}");
        }
        let prefix = format!("lfindex_{name}_");
        assert_eq!(functions.matches(&prefix).count(), declared.len(), "{name}");
    }
}
