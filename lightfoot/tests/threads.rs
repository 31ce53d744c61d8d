//! `--by thread`: each thread by itself, and their sum.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use serde_json::Value;

/// Three threads, one after the other, count down from 10,000, 20,000 and 30,000, and touch as many
/// bytes of their own.
const COUNTS_DOWN: &str = "#include <pthread.h>\n#include <string.h>\nstatic char room[3][1<<20];\n\
    static void*f(void*p){long n=(long)p;long k=n*10000;__asm__ volatile(\"1: dec %0\\n jnz 1b\":\"+r\"(k));\n\
    for(volatile char*c=room[n-1];c<room[n-1]+n*65536;c+=64)*c=1;return 0;}\n\
    int main(){pthread_t t;for(long n=1;n<4;n++){pthread_create(&t,0,f,(void*)n);pthread_join(t,0);}return 3;}";

fn rows(report: &Value) -> &Vec<Value> {
    assert_eq!(report["by"], json(b"[\"thread\"]"));
    report["rows"].as_array().unwrap()
}

fn number(row: &Value, field: &str) -> u64 {
    row.get(field).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {field} in {row}"))
}

#[test]
fn each_thread_is_counted_and_their_sum_is_the_total() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "down", &[], COUNTS_DOWN) else { return };
    let misses = ["l1i_misses", "l1d_load_misses", "l1d_store_misses", "l2_misses", "dtlb_misses"];
    for (command, misses) in [("count", &[][..]), ("cache", &misses)] {
        for children in [&[][..], &["--follow-children"]] {
            let ran = lightfoot()
                .args([command, "--by", "thread", "--format", "json"])
                .args(children)
                .arg("--")
                .arg(&program)
                .run();
            ran.ends_with(3);
            let report = json(&ran.stderr);
            let rows = rows(&report);
            assert_eq!(rows.len(), 4, "{rows:?}");
            for field in ["instructions", "blocks", "loads", "stores"].iter().chain(misses) {
                let sum: u64 = rows.iter().map(|row| number(row, field)).sum();
                assert_eq!(sum, number(&report["totals"], field), "{command} {field}");
            }
            // The second and the third make the same calls.
            let row = |n: usize| {
                rows.iter().find(|row| row["name"].as_str().unwrap().starts_with(&format!("#{n} of down ")))
            };
            let [second, third] = [3, 4].map(|n| row(n).unwrap());
            let more = number(third, "instructions") - number(second, "instructions");
            assert_eq!(more, 2 * 10_000 + 1024 * loop_instructions(second, third), "{rows:?}");
            if command == "cache" {
                assert!(number(third, "l1d_store_misses") >= number(second, "l1d_store_misses") + 1024);
            }
        }
    }
}

/// Instructions of an iteration of the storing loop, by the compiler's leave: each has one store.
fn loop_instructions(second: &Value, third: &Value) -> u64 {
    let stores = number(third, "stores") - number(second, "stores");
    assert_eq!(stores, 1024);
    (number(third, "instructions") - number(second, "instructions") - 20_000) / stores
}

#[test]
fn signals_and_faults_leave_the_sum_right() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "storm", &[], include_str!("storm/storm.c")) else { return };
    for command in ["count", "cache"] {
        let ran = lightfoot()
            .args([command, "--by", "thread", "--format", "json", "--"])
            .arg(&program)
            .args(["8", "14", "5"])
            .run();
        ran.ends_with(0);
        let report = json(&ran.stderr);
        assert!(rows(&report).len() >= 9);
        for field in ["instructions", "blocks", "loads", "stores"] {
            let sum: u64 = rows(&report).iter().map(|row| number(row, field)).sum();
            assert_eq!(sum, number(&report["totals"], field), "{command} {field}");
        }
    }
}

#[test]
fn text_and_csv_have_a_row_for_each() {
    let text = lightfoot().args(["count", "--by", "thread", "--", "true"]).run();
    text.ends_with(0).says("  thread\n").says("100.0 %").says("#1 of true (");
    let csv = lightfoot().args(["cache", "--by", "thread", "--format", "csv", "--", "true"]).run();
    csv.ends_with(0).says("#1 of true (");
    lightfoot()
        .args(["count", "--by", "thread,function", "true"])
        .run()
        .fails_with(125)
        .says("--by thread stands alone")
        .in_one_line();
}
