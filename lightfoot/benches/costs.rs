//! What one event of the system costs under measurement: a repaired fault, a child, a thread.
//!
//! `cargo bench -p lightfoot --bench costs`. Each program does its event so often, natively and
//! under each command; the time of a run that does it never is subtracted, the least of a few runs
//! counts. Two free cores, or the numbers mean little.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

struct Event {
    name: &'static str,
    rounds: u32,
    source: &'static str,
}

const EVENTS: &[Event] = &[
    Event {
        name: "a SIGSEGV handler repairs a page",
        rounds: 5000,
        source: "#include <signal.h>\n#include <stdlib.h>\n#include <sys/mman.h>\n\
            static char*volatile p;static void h(int s,siginfo_t*i,void*c){mprotect(p,4096,3);}\n\
            int main(int c,char**v){int n=atoi(v[1]);p=mmap(0,4096L*5001,1,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);\n\
            struct sigaction a={0};a.sa_sigaction=h;a.sa_flags=SA_SIGINFO;sigaction(SIGSEGV,&a,0);\n\
            for(int k=0;k<n;k++){*(volatile char*)p=k;p=p+4096;}return 0;}",
    },
    Event {
        name: "a signal to oneself, handled",
        rounds: 5000,
        source: "#include <signal.h>\n#include <stdlib.h>\nstatic void h(int s){}\n\
            int main(int c,char**v){int n=atoi(v[1]);signal(SIGUSR1,h);for(int k=0;k<n;k++)raise(SIGUSR1);return 0;}",
    },
    Event {
        name: "fork, exit, wait",
        rounds: 300,
        source: "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
            int main(int c,char**v){int n=atoi(v[1]);for(int k=0;k<n;k++){if(!fork())_exit(0);wait(0);}return 0;}",
    },
    Event {
        name: "pthread_create, pthread_join",
        rounds: 1000,
        source: "#include <pthread.h>\n#include <stdlib.h>\nstatic void*f(void*p){return p;}\n\
            int main(int c,char**v){int n=atoi(v[1]);pthread_t t;for(int k=0;k<n;k++){pthread_create(&t,0,f,0);pthread_join(t,0);}return 0;}",
    },
];

const COMMANDS: &[&[&str]] =
    &[&[], &["count"], &["cache"], &["count", "--follow-children"], &["cache", "--follow-children"]];

/// Seconds of one run.
fn seconds(program: &Path, command: &[&str], rounds: u32) -> f64 {
    let mut run = match command {
        [] => Command::new(program),
        words => {
            let mut run = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
            run.args(words).args(["-o", "/dev/null", "--"]).arg(program);
            run
        }
    };
    let started = Instant::now();
    let status = run.arg(rounds.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
    started.elapsed().as_secs_f64()
}

fn least(program: &Path, command: &[&str], rounds: u32) -> f64 {
    (0..5).map(|_| seconds(program, command, rounds)).fold(f64::INFINITY, f64::min)
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    for event in EVENTS {
        let (source, program) = (folder.path().join("event.c"), folder.path().join("event"));
        std::fs::write(&source, event.source).unwrap();
        let built =
            Command::new("cc").args(["-O1", "-w", "-pthread", "-o"]).arg(&program).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            return eprintln!("skipped: there is no C compiler (cc) here");
        }
        println!("{}", event.name);
        for command in COMMANDS {
            let each = (least(&program, command, event.rounds) - least(&program, command, 0))
                / f64::from(event.rounds);
            let name = if command.is_empty() { "natively".into() } else { command.join(" ") };
            println!("  {name:<24} {:>9.1} us", each * 1e6);
        }
    }
}
