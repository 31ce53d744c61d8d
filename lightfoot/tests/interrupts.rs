//! Ctrl-C, as a terminal sends it: to the measuring process and the program at once.
//!
//! A program that handles it decides itself how it ends, and its measurement is whole; one that it
//! ends is partial; one that ignores it is ended by the second.

mod bench;

use bench::{compile, lightfoot, Bench, Job};
use std::time::Duration;

/// Waits for Ctrl-C, says so, and ends by itself with status 7.
const HANDLES: &str = "#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\nstatic volatile int n;static void h(int s){n=1;}\n\
    int main(){signal(SIGINT,h);puts(\"ready\");fflush(stdout);while(!n)usleep(1000);puts(\"handled\");return 7;}";

/// Ignores Ctrl-C and never ends; counts without system calls.
const IGNORES: &str = "#include <signal.h>\n#include <stdio.h>\n\
    int main(){signal(SIGINT,SIG_IGN);puts(\"ready\");fflush(stdout);for(volatile long n=0;;n++);}";

/// Handles Ctrl-C as often as it comes, and ends at the third.
const PATIENT: &str =
    "#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\nstatic volatile int n;\n\
    static void h(int s){n++;write(1,\"again\\n\",6);}\n\
    int main(){signal(SIGINT,h);puts(\"ready\");fflush(stdout);while(n<3)usleep(1000);return 9;}";

/// Of commands, the words before the program.
const COMMANDS: [&[&str]; 4] = [
    &["count"],
    &["cache", "--machine", "cachegrind"],
    &["count", "--follow-children"],
    &["tool", "opcode-mix"],
];

/// Longer than two copies of one signal are apart.
fn a_moment() {
    std::thread::sleep(Duration::from_millis(1500));
}

fn interrupt(job: &Job) {
    job.signal("INT");
}

#[test]
fn a_program_that_handles_the_interrupt_ends_as_it_wants() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "handles", &[], HANDLES) else { return };
    for words in COMMANDS {
        let job = lightfoot().args(words).arg("--").arg(&program).start_job();
        interrupt(&job);
        let ran = job.finish();
        ran.ends_with(7);
        assert!(!ran.said().contains("partial"), "{words:?}: {}", ran.said());
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "ready\nhandled\n", "{words:?}");
    }
}

#[test]
fn a_program_that_the_interrupt_ends_is_partial() {
    let bench = Bench::new();
    let source =
        "#include <stdio.h>\nint main(){puts(\"ready\");fflush(stdout);for(volatile long n=0;;n++);}";
    let Some(program) = compile(&bench, "spins", &[], source) else { return };
    for words in COMMANDS {
        let job = lightfoot().args(words).arg("--").arg(&program).start_job();
        interrupt(&job);
        job.finish().ends_with(130);
    }
    let job = lightfoot().arg("count").arg("--").arg(&program).start_job();
    interrupt(&job);
    job.finish().ends_with(130).says("interrupted: partial");
}

#[test]
fn the_second_interrupt_ends_a_program_that_ignores_it() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "ignores", &[], IGNORES) else { return };
    let trace = bench.join("trace");
    let traced = ["trace", "--engine", "native", "-o", trace.to_str().unwrap()];
    for words in COMMANDS.into_iter().chain([&traced[..]]) {
        let job = lightfoot().args(words).arg("--").arg(&program).start_job();
        interrupt(&job);
        a_moment();
        interrupt(&job);
        job.finish().ends_with(130);
    }
    let job = lightfoot().arg("count").arg("--").arg(&program).start_job();
    interrupt(&job);
    a_moment();
    interrupt(&job);
    job.finish().ends_with(130).says("interrupted: partial");
}

#[test]
fn a_program_that_handles_interrupts_is_never_ended_by_them() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "patient", &[], PATIENT) else { return };
    let job = lightfoot().arg("count").arg("--").arg(&program).start_job();
    for _ in 0..3 {
        interrupt(&job);
        a_moment();
    }
    let ran = job.finish();
    ran.ends_with(9);
    assert!(!ran.said().contains("partial"), "{}", ran.said());
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "ready\nagain\nagain\nagain\n");
}

#[test]
fn a_trace_of_a_program_that_handles_the_interrupt_is_whole() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "handles", &[], HANDLES) else { return };
    let trace = bench.join("trace.json");
    for engine in ["native", "probe"] {
        let job = lightfoot()
            .args([
                "trace",
                "--engine",
                engine,
                "--software",
                "fn:main",
                "--runs",
                "3",
                "--format",
                "json",
                "-o",
            ])
            .arg(&trace)
            .arg("--")
            .arg(&program);
        let job = if engine == "native" {
            lightfoot()
                .args(["trace", "--engine", engine, "--runs", "3", "--format", "json", "-o"])
                .arg(&trace)
                .arg("--")
                .arg(&program)
        } else {
            job
        };
        let job = job.start_job();
        interrupt(&job);
        let ran = job.finish();
        ran.ends_with(7);
        // One interrupt ends the series, though each program decides for itself.
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "ready\nhandled\n", "{engine}");
    }
}
