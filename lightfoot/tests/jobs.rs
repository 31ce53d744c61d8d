//! Job control and refusals of the system: what a shell, a container or a limit does to a
//! measurement.
//!
//! Programs are ours, compiled with `cc`; where there is none the test says so and passes.

mod bench;

use bench::{compile, lightfoot, Bench};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says that it is there, works for a while, then says how often it was continued; it works until
/// that was as often as it is told, for it cannot know how long a busy machine takes to stop it.
const WORKS: &str = "#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\nstatic volatile int n;static void h(int s){n++;}\n\
    static long ms(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1000+t.tv_nsec/1000000;}\n\
    int main(int c,char**v){signal(SIGCONT,h);puts(\"ready\");fflush(stdout);volatile long s=0;\n\
    for(long from=ms();ms()-from<1500||n<atoi(v[1]);)s++;printf(\"%d\\n\",n);return 5;}";

#[test]
fn a_job_stops_and_goes_on() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "works", &[], WORKS) else { return };
    for command in ["count", "cache"] {
        for stop in ["TSTP", "STOP"] {
            let job = lightfoot().args([command, "--"]).arg(&program).arg("1").start_job();
            job.signal(stop);
            job.wait_until_stopped(true);
            job.signal("CONT");
            job.wait_until_stopped(false);
            let ran = job.finish();
            ran.ends_with(5).says("exit status 5");
            assert_eq!(String::from_utf8_lossy(&ran.stdout), "ready\n1\n", "{command} {stop}");
        }
    }
}

#[test]
fn a_job_stops_twice_and_is_interrupted() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "works", &[], WORKS) else { return };
    let job = lightfoot().args(["count", "--"]).arg(&program).arg("1000").start_job();
    for _ in 0..2 {
        job.signal("TSTP");
        job.wait_until_stopped(true);
        job.signal("CONT");
        job.wait_until_stopped(false);
    }
    job.signal("INT");
    job.finish().ends_with(130).says("partial");
}

#[test]
fn more_threads_than_there_is_room_for_are_refused() {
    let source = "#include <pthread.h>\n#include <unistd.h>\nstatic void*f(void*p){pause();return 0;}\n\
        int main(int c,char**v){pthread_t t[600];for(int i=0;i<600;i++)if(pthread_create(t+i,0,f,0))return 7;return 0;}";
    let bench = Bench::new();
    let Some(program) = compile(&bench, "threads", &[], source) else { return };
    if !Command::new(&program).status().unwrap().success() {
        return eprintln!("skipped: this system allows fewer threads");
    }
    lightfoot().arg("count").arg(&program).run().fails_with(125).says("more than 512 threads").in_one_line();
}

/// Runs what follows with system call `v[1]` refused (EPERM), where argument `v[2]` has all bits of
/// `v[3]`.
const REFUSES: &str = "#include <linux/filter.h>\n#include <linux/seccomp.h>\n#include <stddef.h>\n#include <stdlib.h>\n#include <sys/prctl.h>\n\
    #include <unistd.h>\n#define AT(x) BPF_STMT(BPF_LD|BPF_W|BPF_ABS,offsetof(struct seccomp_data,x))\n\
    int main(int c,char**v){unsigned bits=strtoul(v[3],0,0);\n\
    struct sock_filter f[]={AT(nr),BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K,atoi(v[1]),0,4),AT(args[atoi(v[2])]),\n\
    BPF_STMT(BPF_ALU|BPF_AND|BPF_K,bits),BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K,bits,0,1),BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_ERRNO|1),\n\
    BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_ALLOW)};struct sock_fprog p={7,f};\n\
    if(prctl(PR_SET_NO_NEW_PRIVS,1,0,0,0)||prctl(PR_SET_SECCOMP,SECCOMP_MODE_FILTER,&p))return 99;\n\
    execv(v[4],v+4);return 98;}";

#[test]
fn a_refused_system_call_is_named_in_one_sentence() {
    let bench = Bench::new();
    let Some(launcher) = compile(&bench, "refuses", &[], REFUSES) else { return };
    // Number, argument and its bits: mmap at a place that must be free, memfd_create, ptrace's
    // SEIZE, process_vm_readv.
    let refused = [
        ("9", "3", "0x100000", "mmap"),
        ("319", "0", "0", "memfd_create"),
        ("101", "0", "0x4206", "ptrace"),
        ("310", "0", "0", "process_vm_readv"),
    ];
    for (number, argument, bits, name) in refused {
        let (status, said) =
            under(&launcher, &[number, argument, bits], &["true"], &bench.path().join("kept"));
        if status == Some(99) {
            return eprintln!("skipped: system calls cannot be filtered here");
        }
        assert_eq!(status, Some(125), "{name}: {said}");
        assert!(said.starts_with("lightfoot: ") && said.lines().count() == 1, "{name}: {said}");
        assert!(said.contains(name), "{said}");
    }
}

/// `lightfoot count` of a program behind the launcher: its status, and what it says.
fn under(launcher: &PathBuf, filter: &[&str], counted: &[&str], kept: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(launcher);
    command.args(filter).arg(bench::BINARY).arg("count").args(counted);
    let out = command.env("LIGHTFOOT_TRANSLATIONS", kept).output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn refused_personality_leaves_addresses_random_and_says_so() {
    let bench = Bench::new();
    let Some(launcher) = compile(&bench, "refuses", &[], REFUSES) else { return };
    let Some(program) = compile(&bench, "lines", &["-g"], "int main(void) { return 0; }") else { return };
    let kept = bench.path().join("kept");
    let counted = ["--by", "line", program.to_str().unwrap()];
    let (status, said) = under(&launcher, &["135", "0", "0x40000"], &counted, &kept);
    if status == Some(99) {
        return eprintln!("skipped: system calls cannot be filtered here");
    }
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("warning: ") && said.contains("personality"), "{said}");
    // Translations are of addresses; lines are of files, and are kept.
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(&kept), ["lines"]);
    assert_ne!(names(&kept.join("lines")), [""; 0]);
}

/// Forbids itself the system call by which threads wait for each other, then runs code that is new
/// and a child.
const FORBIDS: &str = "#include <linux/filter.h>\n#include <linux/seccomp.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <sys/prctl.h>\n\
    #include <sys/syscall.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    int main(int c,char**v){struct sock_filter f[]={BPF_STMT(BPF_LD|BPF_W|BPF_ABS,offsetof(struct seccomp_data,nr)),\n\
    BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K,SYS_futex,0,1),BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_KILL),BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_ALLOW)};\n\
    struct sock_fprog p={4,f};int w;if(prctl(PR_SET_NO_NEW_PRIVS,1,0,0,0)||(c>1?syscall(SYS_seccomp,SECCOMP_SET_MODE_FILTER,0,&p)\n\
    :prctl(PR_SET_SECCOMP,SECCOMP_MODE_FILTER,&p)))return 99;\n\
    if(!fork())_exit(execl(\"/bin/true\",\"true\",(char*)0));wait(&w);printf(\"%d %d\\n\",w,c);return 0;}";

#[test]
fn a_program_that_forbids_futex_runs_as_natively() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "forbids", &[], FORBIDS) else { return };
    // By prctl, then by seccomp.
    for arguments in [&[][..], &["x"]] {
        let natively = Command::new(&program).args(arguments).output().unwrap();
        if !natively.status.success() {
            return eprintln!("skipped: system calls cannot be filtered here");
        }
        for options in [&["count", "--"][..], &["count", "--follow-children", "--"]] {
            let ran = lightfoot().args(options).arg(&program).args(arguments).run();
            ran.ends_with(0);
            assert_eq!(ran.stdout, natively.stdout, "{options:?} {arguments:?}: {}", ran.said());
        }
    }
}
