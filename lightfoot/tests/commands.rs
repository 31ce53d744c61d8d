//! The command as a user meets it: the real binary, real programs, one sentence per promise.
//!
//! Programs come from any Linux system (`sh`, `true`, `printf`, `sleep`); what a test lacks (root,
//! a compiler) makes it say so and pass.

mod bench;

use bench::{json, lightfoot, Bench, Ran};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

// Programs that cannot be run.

#[test]
fn a_program_that_does_not_exist_is_127() {
    let ran = lightfoot().args(["count", "no-such-program-anywhere"]).run();
    ran.fails_with(127).says("no-such-program-anywhere").in_one_line();
}

#[test]
fn a_path_that_does_not_exist_is_127() {
    lightfoot()
        .args(["count", "/no/such/program"])
        .run()
        .fails_with(127)
        .says("/no/such/program")
        .in_one_line();
}

#[test]
fn a_file_without_execute_permission_is_126() {
    let bench = Bench::new();
    let file = bench.file("plain", b"#!/bin/sh\n", 0o644);
    let ran = lightfoot().arg("count").arg(&file).run();
    ran.fails_with(126).says("plain").says("execut").in_one_line();
}

#[test]
fn a_directory_is_126() {
    let bench = Bench::new();
    lightfoot().arg("count").arg(bench.path()).run().fails_with(126).says("directory").in_one_line();
}

#[test]
fn a_text_without_interpreter_is_126() {
    let bench = Bench::new();
    let file = bench.file("letter", b"Dear reader,\n", 0o755);
    lightfoot().arg("count").arg(&file).run().fails_with(126).says("letter").says("ELF").in_one_line();
}

#[test]
fn an_empty_file_is_126() {
    let bench = Bench::new();
    let file = bench.file("empty", b"", 0o755);
    lightfoot().arg("count").arg(&file).run().fails_with(126).says("empty").in_one_line();
}

#[test]
fn a_32_bit_program_is_126() {
    let bench = Bench::new();
    let file = bench.file("old", &bench::elf_header(bench::Class::Bits32, 3), 0o755);
    lightfoot().arg("count").arg(&file).run().fails_with(126).says("32-bit").in_one_line();
}

#[test]
fn a_program_for_another_architecture_is_126() {
    let bench = Bench::new();
    let aarch64 = 183;
    let file = bench.file("other", &bench::elf_header(bench::Class::Bits64, aarch64), 0o755);
    lightfoot().arg("count").arg(&file).run().fails_with(126).says("AArch64").in_one_line();
}

#[test]
fn a_setuid_program_is_126() {
    let bench = Bench::new();
    let Some(program) = bench.setuid_copy("/bin/true") else { return };
    lightfoot().arg("count").arg(&program).run().fails_with(126).says("setuid").in_one_line();
}

// Command lines that cannot be right.

#[test]
fn nothing_to_run_is_our_own_failure() {
    lightfoot().args(["count"]).run().fails_with(125);
}

#[test]
fn a_misspelt_option_is_not_taken_for_a_program() {
    lightfoot().args(["count", "--tpo", "3", "true"]).run().fails_with(125).says("--tpo").in_one_line();
}

#[test]
fn a_usage_error_of_a_file_command_is_2() {
    lightfoot().args(["doctor", "--no-such-option"]).run().fails_with(2);
    lightfoot().args(["study", "no-such-study"]).run().fails_with(2).says("no-such-study").says("instrument");
}

#[test]
fn an_unknown_preset_lists_the_known_ones() {
    let ran = lightfoot().args(["cache", "--machine", "no-such-machine", "true"]).run();
    ran.fails_with(125).says("no-such-machine").says("pentium").in_one_line();
}

#[test]
fn a_machine_file_with_a_wrong_field_names_file_line_and_field() {
    let bench = Bench::new();
    let file = bench.file("mine.toml", b"name = \"mine\"\nl1d_colour = \"red\"\n", 0o644);
    let ran = lightfoot().args(["cache", "--machine"]).arg(&file).arg("true").run();
    ran.fails_with(125).says("mine.toml").says("2").says("l1d_colour").in_one_line();
}

#[test]
fn a_geometry_that_cannot_be_names_the_value() {
    let ran = lightfoot().args(["cache", "--l1d", "32K,8", "true"]).run();
    ran.fails_with(125).says("32K,8").in_one_line();
}

// Places a report cannot go to.

#[test]
fn a_missing_folder_is_said_before_the_program_runs() {
    let bench = Bench::new();
    let ran =
        lightfoot().args(["count", "-o", "/no/such/folder/out", "--", "touch"]).arg(bench.join("ran")).run();
    ran.fails_with(125).says("/no/such/folder").in_one_line();
    assert!(!bench.join("ran").exists(), "the program ran");
}

#[test]
fn a_full_device_is_said_and_the_report_is_not_lost() {
    let ran = lightfoot().args(["count", "-o", "/dev/full", "true"]).run();
    ran.fails_with(125).says("/dev/full").says("instructions");
}

#[test]
fn a_full_disk_keeps_the_old_file() {
    let bench = Bench::new();
    let script = "mount -t tmpfs -o size=16k none \"$1\" && cd \"$1\" && echo old >out && \
                  { dd if=/dev/zero of=filler bs=4k 2>/dev/null; \
                  \"$2\" count --format json -o out true 2>said; echo $?; cat out; ls -A | wc -l; }";
    let shell = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(bench.path())
        .arg(bench::BINARY)
        .output();
    let Ok(out) = shell else { return eprintln!("skipped: no unshare") };
    let words: Vec<String> =
        String::from_utf8_lossy(&out.stdout).split_whitespace().map(String::from).collect();
    if words.is_empty() {
        return eprintln!("skipped: a small file system cannot be mounted here");
    }
    assert_eq!(words[..2], ["125", "old"], "{out:?}");
    assert_eq!(words[2], "3", "something was left behind: {out:?}");
}

#[test]
fn a_closed_pipe_is_silence() {
    let status = lightfoot().args(["count", "sh", "-c", "sleep 0.2; exit 4"]).run_with_closed_stderr();
    assert_eq!(status, Some(4));
}

// How a program ended.

#[test]
fn the_exit_status_is_the_programs_own() {
    for status in [0, 1, 42, 255] {
        let ran = lightfoot().args(["count", "sh", "-c"]).arg(format!("exit {status}")).run();
        ran.ends_with(status).says("instructions");
    }
}

#[test]
fn a_signal_is_128_and_its_number_with_a_full_report() {
    let ran = lightfoot().args(["count", "--format", "json", "sh", "-c", "kill -SEGV $$"]).run();
    ran.ends_with(139);
    let report = json(&ran.stderr);
    assert_eq!((&report["signal"], &report["exit_status"]), (&11.into(), &139.into()));
    assert_eq!(report["partial"], false);
    assert!(report["totals"]["instructions"].as_u64() > Some(1000));
}

#[test]
fn an_interrupted_measurement_is_partial_and_130() {
    let job =
        lightfoot().args(["count", "--format", "json", "sh", "-c", "echo ready; exec sleep 600"]).start_job();
    job.signal("INT");
    let ran = job.finish();
    ran.ends_with(130);
    let report = json(&ran.stderr);
    assert_eq!(report["partial"], true);
    assert!(report["totals"]["instructions"].as_u64() > Some(1000));
    assert!(ran.seconds < 500.0, "the program was waited for");
}

// What passes through untouched.

#[test]
fn output_is_the_programs_own() {
    let ran = lightfoot().args(["count", "sh", "-c", "echo out; echo err >&2"]).run();
    ran.ends_with(0);
    assert_eq!(ran.stdout, b"out\n");
    assert!(ran.stderr.starts_with(b"err\n"), "{}", ran.said());
}

#[test]
fn with_a_file_standard_error_is_the_programs_alone() {
    let bench = Bench::new();
    let out = bench.join("out.json");
    let ran = lightfoot()
        .args(["count", "--format", "json", "-o"])
        .arg(&out)
        .args(["sh", "-c", "echo err >&2"])
        .run();
    ran.ends_with(0);
    assert_eq!(ran.stderr, b"err\n");
    assert_eq!(json(&std::fs::read(out).unwrap())["exit_status"], 0);
}

#[test]
fn standard_input_is_the_programs_own() {
    let ran = lightfoot().args(["count", "cat"]).run_with_input(b"hello");
    ran.ends_with(0);
    assert_eq!(ran.stdout, b"hello");
}

#[test]
fn arguments_arrive_byte_for_byte() {
    let odd = OsStr::from_bytes(b"\xff\xfe --top\n");
    let ran = lightfoot().args(["count", "printf", "%s|%s|%s", "--format", "-o"]).arg(odd).run();
    ran.ends_with(0);
    assert_eq!(ran.stdout, b"--format|-o|\xff\xfe --top\n");
}

#[test]
fn a_double_dash_belongs_to_us_once() {
    let ran = lightfoot().args(["count", "--", "printf", "%s", "--", "x"]).run();
    assert_eq!(ran.stdout, b"--x");
}

#[test]
fn a_program_is_found_in_the_search_path_and_through_links() {
    let bench = Bench::new();
    let link = bench.join("name with space");
    symlink("/bin/true", &link).unwrap();
    lightfoot().arg("count").arg(&link).run().ends_with(0).says("name with space");
    lightfoot().env("PATH", bench.path()).args(["count", "name with space"]).run().ends_with(0);
}

#[test]
fn a_script_runs_through_its_interpreter() {
    let bench = Bench::new();
    let script = bench.file("script", b"#!/bin/sh\nexit 7\n", 0o755);
    lightfoot().arg("count").arg(&script).run().ends_with(7);
}

// What a report says.

fn report(words: &[&str]) -> serde_json::Value {
    let ran = lightfoot().args(words).run();
    json(&ran.ends_with(0).stderr)
}

#[test]
fn count_has_every_promised_field() {
    let report = report(&["count", "--format", "json", "true"]);
    for field in ["schema", "version", "command", "exit_status", "partial", "machine", "totals", "functions"]
    {
        assert!(!report[field].is_null(), "{field}");
    }
    for field in ["instructions", "loads", "stores"] {
        assert!(report["totals"][field].as_u64() > Some(0), "{field}");
    }
    assert_eq!(report["command"], serde_json::json!(["true"]));
}

#[test]
fn cache_has_every_promised_number_or_its_reason() {
    let report = report(&["cache", "--format", "json", "true"]);
    for field in
        ["l1i_misses", "l1d_load_misses", "l1d_store_misses", "l2_misses", "l3_misses", "dtlb_misses"]
    {
        let value = &report["totals"][field];
        assert!(value.is_u64() || report["null_reasons"][field].is_string(), "{field}: {value}");
    }
    assert!(report["totals"]["l1d_load_misses"].as_u64() > Some(0));
}

#[test]
fn branches_and_write_backs_are_counted_where_asked_for() {
    if !bench::repeatable() {
        return;
    }
    let plain = report(&["cache", "--machine", "cachegrind", "--format", "json", "true"]);
    for field in ["write_backs", "conditional_branches"] {
        assert!(plain[field].is_null() && plain["null_reasons"][field].is_string(), "{field}");
    }
    let asked = report(&[
        "cache",
        "--machine",
        "cachegrind",
        "--branches",
        "--write-backs",
        "--format",
        "json",
        "true",
    ]);
    let (branches, wrong) = (&asked["conditional_branches"], &asked["totals"]["branch_mispredictions"]);
    assert!(branches.as_u64() > wrong.as_u64() && wrong.as_u64() > Some(0), "{wrong} of {branches}");
    assert!(asked["write_backs"]["l1"].as_u64() > Some(0), "{}", asked["write_backs"]);
    for field in ["instructions", "loads", "stores", "l1i_misses", "l1d_load_misses", "l1d_store_misses"] {
        assert_eq!(plain["totals"][field], asked["totals"][field], "{field}");
    }
}

#[test]
fn declared_cycles_are_a_sum_of_events() {
    let report = report(&["cache", "--machine", "sapphire-rapids", "--format", "json", "true"]);
    let declared = &report["cycles"]["declared"];
    let terms = declared["terms"].as_array().unwrap();
    let cycles =
        |term: &serde_json::Value| term["count"].as_f64().unwrap() * term["cycles_each"].as_f64().unwrap();
    let sum: f64 = terms.iter().map(cycles).sum();
    assert_eq!(declared["total"].as_f64(), Some(sum.round()));
    assert!(terms.iter().any(|term| term["of"] == "L2 misses"), "{terms:?}");
}

#[test]
fn parts_of_estimated_cycles_add_up_and_so_do_functions() {
    let report = report(&["cache", "--branches", "--format", "json", "--top", "0", "ls", "/"]);
    let sum = |parts: &serde_json::Value| -> u64 {
        parts.as_object().unwrap().values().map(|part| part.as_u64().unwrap()).sum()
    };
    let cycles = &report["cycles"];
    assert_eq!(cycles["total"].as_u64(), Some(sum(&cycles["parts"])));
    assert_eq!(cycles["total"], report["totals"]["estimated_cycles"]);
    assert_eq!(cycles["parts"], report["totals"]["cycle_parts"]);
    for part in ["base", "fetch", "branches"] {
        assert!(cycles["parts"][part].as_u64() > Some(0), "{part}: {cycles}");
        let functions = report["functions"].as_array().unwrap().iter();
        let of_functions: u64 = functions.map(|row| row["cycle_parts"][part].as_u64().unwrap()).sum();
        assert_eq!(Some(of_functions), cycles["parts"][part].as_u64(), "{part}");
    }
    // Without a predictor branches cost nothing, and everything else stays.
    let without = self::report(&["cache", "--format", "json", "--top", "0", "ls", "/"]);
    assert_eq!(without["cycles"]["parts"]["branches"].as_u64(), Some(0));
}

#[test]
fn misses_behind_an_exec_are_those_of_the_program_itself() {
    let rows = |words: &[&str]| {
        let report = report(words);
        let ours = |row: &&serde_json::Value| row["name"].as_str().unwrap().ends_with("bin/sort");
        let row = report["libraries"].as_array().unwrap().iter().find(ours).cloned().unwrap();
        ["instructions", "l1i_misses"].map(|field| row[field].as_u64().unwrap())
    };
    let alone = rows(&["cache", "--machine", "cachegrind", "--format", "json", "sort", "/dev/null"]);
    let behind =
        rows(&["cache", "--machine", "cachegrind", "--format", "json", "sh", "-c", "exec sort /dev/null"]);
    assert!(alone[0].abs_diff(behind[0]) * 50 < alone[0], "{alone:?} {behind:?}");
    assert!(alone[1].abs_diff(behind[1]) * 10 < alone[1], "{alone:?} {behind:?}");
}

#[test]
fn a_stock_tool_runs_by_name() {
    let listed = lightfoot().args(["tool"]).run();
    assert!(String::from_utf8_lossy(&listed.ends_with(0).stdout).contains("opcode-mix"));
    let ran = lightfoot().args(["tool", "instruction-count", "--", "sh", "-c", "exit 6"]).run();
    ran.ends_with(6).says("  instructions\n");
    lightfoot().args(["tool", "nothing", "--", "sh", "-c", "kill -TERM $$"]).run().ends_with(143);
    lightfoot().args(["tool", "no-such-tool", "true"]).run().fails_with(125).says("branch-mix").in_one_line();
    lightfoot().args(["tool", "opcode-mix"]).run().fails_with(125).says("program").in_one_line();
    lightfoot().args(["tool", "memory-trace", "true"]).run().fails_with(125).says("-o").in_one_line();
}

#[test]
fn a_machine_without_a_level_gives_null_and_a_reason() {
    let report = report(&["cache", "--machine", "ladner2002", "--format", "json", "true"]);
    assert!(report["totals"]["l3_misses"].is_null());
    assert!(report["null_reasons"]["l3_misses"].is_string());
}

#[test]
fn the_rows_add_up_to_the_totals() {
    let report = report(&["cache", "--format", "json", "true"]);
    for rows in ["functions", "libraries", "opcodes"] {
        for field in ["instructions", "loads", "stores", "l1d_load_misses", "l1i_misses"] {
            let rows = report[rows].as_array().unwrap();
            let sum: u64 = rows.iter().map(|row| row[field].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), report["totals"][field].as_u64(), "{field}");
        }
    }
}

#[test]
fn two_runs_count_the_same() {
    if !bench::repeatable() {
        return;
    }
    let count = || report(&["count", "--format", "json", "true"])["totals"].clone();
    assert_eq!(count(), count());
}

#[test]
fn a_slowdown_is_measured_where_asked_for() {
    let asked = report(&["count", "--compare-native", "--format", "json", "true"]);
    assert!(asked["slowdown"].as_f64() > Some(0.0));
    let not = report(&["count", "--format", "json", "true"]);
    assert!(not["slowdown"].is_null() && not["null_reasons"]["slowdown"].is_string());
}

#[test]
fn csv_starts_with_the_total() {
    let ran = lightfoot().args(["count", "--format", "csv", "--by", "library", "true"]).run();
    ran.ends_with(0);
    let text = ran.said();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("name,library,address,instructions,blocks,loads,stores"));
    assert!(lines.next().unwrap().starts_with("(total),,,"));
}

#[test]
fn every_table_fits_eighty_columns() {
    for command in [&["count"][..], &["cache"], &["cache", "--machine", "ladner2002"]] {
        for by in ["function", "library", "opcode"] {
            let ran = lightfoot().args(command).args(["--by", by, "true"]).run();
            let text = ran.ends_with(0).said();
            let table = text.lines().filter(|line| !line.starts_with("warning: "));
            table.for_each(|line| assert!(line.chars().count() <= 80, "{line}"));
        }
    }
}

// Commands that run no program.

#[test]
fn doctor_describes_this_machine() {
    let ran = lightfoot().args(["doctor"]).run();
    ran.ends_with(0);
    assert!(String::from_utf8_lossy(&ran.stdout).contains("L1"), "{}", ran.said());
    let ran = lightfoot().args(["doctor", "--format", "json"]).run();
    assert!(json(&ran.ends_with(0).stdout)["machine"].is_object());
}

#[test]
fn machines_are_listed_and_shown() {
    let ran = lightfoot().args(["machines"]).run();
    ran.ends_with(0);
    let list = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(list.starts_with("host ") && list.contains("\nzen5 "), "{list}");
    let ran = lightfoot().args(["machines", "granite-rapids"]).run();
    ran.ends_with(0);
    assert!(String::from_utf8_lossy(&ran.stdout).contains("480 MiB"), "{}", ran.said());
    // A description is where one's own begins: what is written is read.
    let bench = Bench::new();
    let toml = lightfoot().args(["machines", "zen4", "--toml"]).run();
    let file = bench.file("own.toml", &toml.ends_with(0).stdout, 0o644);
    let shown = |name: &str| lightfoot().args(["machines", name]).run().ends_with(0).stdout.clone();
    assert_eq!(shown(file.to_str().unwrap()), shown("zen4"));
    lightfoot().args(["machines", "zen99"]).run().fails_with(125).says("zen99").in_one_line();
}

#[test]
fn study_lists_the_studies() {
    let ran: Ran = lightfoot().args(["study", "--list"]).run();
    ran.ends_with(0);
    assert!(String::from_utf8_lossy(&ran.stdout).contains("instrument"));
}

// Tile sizes.

#[test]
fn tile_shows_both_models_and_the_simulation() {
    let ran = lightfoot()
        .args(["tile", "--n", "64", "--machine", "xeon-dp", "--type", "f32", "--no-measure"])
        .run();
    ran.ends_with(0);
    for word in ["MBaLt", "L1 simulated", "loops   paper", "kernel  plan", "--no-measure"] {
        assert!(String::from_utf8_lossy(&ran.stdout).contains(word), "{word}");
    }
}

#[test]
fn tile_says_what_a_machine_lacks() {
    let ran = lightfoot().args(["tile", "--n", "64", "--machine", "ladner2002", "--no-measure"]).run();
    ran.ends_with(0);
    assert!(String::from_utf8_lossy(&ran.stdout)
        .contains("missing: the machine description has no second-level cache"));
}

#[test]
fn tile_refuses_a_probability_above_one() {
    let ran = lightfoot().args(["tile", "--branches", "2", "--no-measure"]).run();
    ran.fails_with(2).says("--branches 2").in_one_line();
}

#[test]
fn tile_loop_names_the_loops() {
    let ran = lightfoot().args(["tile-loop", "--loop", "none", "--n", "8", "--tile", "8"]).run();
    ran.fails_with(2).says("naive, LaLt, MBaLt").in_one_line();
}
