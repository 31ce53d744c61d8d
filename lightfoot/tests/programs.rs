//! Programs that people use, under `count` and `cache`: their output and exit status are what they
//! are natively.
//!
//! Translations are kept from round to round in a folder of each program's own, as they are for
//! users: the first round makes them, the others run them. What each must do natively is not
//! written down here: it is run. A program that this system lacks is named and skipped; small
//! inputs keep the whole file below a minute. Sources of our own are compiled with `cc`, and said
//! to be skipped where there is none.

mod bench;

use bench::{compile, json, lightfoot, Bench, Job};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// How often each program is measured: once without kept translations, then with those of the
/// rounds before.
const ROUNDS: usize = 3;
const COMMANDS: &[&[&str]] = &[&["count"], &["cache"], &["cache", "--machine", "cachegrind"]];

/// Runs `program` natively and under every command, in `bench`; `None` where this system lacks it.
fn alike(bench: &Bench, program: &str, arguments: &[&str]) -> Option<Output> {
    let kept = Bench::new();
    let run = |words: &[&OsStr]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(bench.path()).stdin(Stdio::null());
        command.env("LIGHTFOOT_TRANSLATIONS", kept.join("translations"));
        bench::git_by_itself(&mut command).env("PYTHONHASHSEED", "0").env("PERL_HASH_SEED", "0").output()
    };
    let mut words = vec![OsStr::new(program)];
    words.extend(arguments.iter().map(OsStr::new));
    let Ok(native) = run(&words) else {
        eprintln!("skipped: there is no {program} here");
        return None;
    };
    for _ in 0..ROUNDS {
        for options in COMMANDS {
            let mut measured = vec![OsStr::new(bench::BINARY)];
            measured.extend(options.iter().map(OsStr::new));
            measured.extend(["--format", "json", "-o", "report.json", "--"].map(OsStr::new));
            measured.extend(&words);
            same(&format!("{options:?} {program} {arguments:?}"), &run(&measured).unwrap(), &native);
            reported(bench, &native);
        }
    }
    Some(native)
}

fn same(what: &str, measured: &Output, native: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
    // A shell says 128+n where a parent sees a signal; so do we.
    let status = |output: &Output| {
        use std::os::unix::process::ExitStatusExt;
        output.status.code().or_else(|| output.status.signal().map(|n| 128 + n))
    };
    assert_eq!(text(&measured.stderr), text(&native.stderr), "{what}: standard error");
    assert!(measured.stdout == native.stdout, "{what}: output differs: {}", text(&measured.stdout));
    assert_eq!(status(measured), status(native), "{what}: exit status");
}

/// The report beside the run is whole.
fn reported(bench: &Bench, native: &Output) {
    let report = json(&std::fs::read(bench.join("report.json")).unwrap());
    assert_eq!(report["partial"], false);
    assert!(report["totals"]["instructions"].as_u64() > Some(1000), "{}", report["totals"]);
    if let Some(code) = native.status.code() {
        assert_eq!(report["exit_status"], code);
    }
}

/// Runs a C source of ours like any other program.
fn compiled_alike(name: &str, options: &[&str], source: &str, arguments: &[&str]) -> Option<Output> {
    let bench = Bench::new();
    let program = compile(&bench, name, options, source)?;
    alike(&bench, program.to_str().unwrap(), arguments)
}

/// Text that compresses and compiles: the same every time.
fn text(lines: usize) -> String {
    let mut text = String::new();
    let mut state = 1u64;
    for line in 0..lines {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let _ = writeln!(text, "{line} {} the quick brown fox {:x}", state >> 60, state >> 48);
    }
    text
}

fn with_text() -> Bench {
    let bench = Bench::new();
    bench.file("text", text(6000).as_bytes(), 0o644);
    bench
}

// Programs of the system.

#[test]
fn bzip2_compresses() {
    alike(&with_text(), "bzip2", &["-9", "-c", "text"]);
}

#[test]
fn xz_compresses() {
    alike(&with_text(), "xz", &["-3", "-c", "text"]);
}

#[test]
fn xz_compresses_with_two_threads() {
    alike(&with_text(), "xz", &["-T2", "--block-size=100000", "-3", "-c", "text"]);
}

#[test]
fn zstd_compresses_with_two_threads() {
    alike(&with_text(), "zstd", &["-T2", "-q", "-c", "text"]);
}

#[test]
fn python_interprets() {
    let script =
        "import json,re,collections\nd={str(i):[i]*3 for i in range(500)}\nprint(len(json.dumps(d)))\n\
                  print(sum(collections.Counter(re.findall('[0-9]',json.dumps(d))).values()))";
    alike(&Bench::new(), "python3", &["-c", script]);
}

#[test]
fn python_runs_threads_and_leaves_with_its_status() {
    let script = "import threading,sys\nr=[]\ndef f(n): r.append(sum(i*i for i in range(n)))\n\
                  t=[threading.Thread(target=f,args=(9000+k,)) for k in range(6)]\n[x.start() for x in t]\n[x.join() for x in t]\n\
                  print(sorted(r))\nsys.exit(9)";
    alike(&Bench::new(), "python3", &["-c", script]);
}

#[test]
fn sqlite_queries() {
    let query =
        "create table t(a,b);with recursive c(x) as (select 1 union all select x+1 from c where x<3000) \
                 insert into t select x,x*7%1001 from c;select sum(a),b%10 from t group by 2;";
    alike(&Bench::new(), "sqlite3", &[":memory:", query]);
}

#[test]
fn perl_hashes() {
    let script = "my %h;$h{$_%97}.=$_ for 1..5000;print length(join ',',map{\"$_=$h{$_}\"} sort keys %h),\"\\n\";exit 3";
    alike(&Bench::new(), "perl", &["-e", script]);
}

/// A source large enough that the compiler compiles.
fn source() -> String {
    (0..12).fold(String::new(), |mut text, n| {
        let _ = writeln!(
            text,
            "int f{n}(int a,char*b){{int s=0;for(int i=0;i<a;i++){{s+=b[i]*{n};if(s&1)s^=i;}}return s;}}"
        );
        text
    })
}

#[test]
fn gcc_compiles_through_its_driver_and_by_itself() {
    let bench = Bench::new();
    bench.file("source.c", source().as_bytes(), 0o644);
    if alike(&bench, "gcc", &["-O1", "-S", "-o", "-", "source.c"]).is_none() {
        return;
    }
    let path = Command::new("gcc").arg("-print-prog-name=cc1").output().unwrap().stdout;
    let path = String::from_utf8(path).unwrap();
    alike(&bench, path.trim(), &["-quiet", "-O1", "source.c", "-o", "-"]);
}

#[test]
fn git_says_the_status_of_a_repository() {
    let bench = Bench::new();
    let prepare = "git init -q . && echo 1 >a && git add a && \
                   git -c user.name=n -c user.email=n@example.org commit -qm first && echo 2 >a && echo 3 >b";
    let mut shell = Command::new("sh");
    let prepared = bench::git_by_itself(&mut shell).args(["-c", prepare]).current_dir(bench.path()).status();
    if !prepared.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: there is no git here");
    }
    alike(&bench, "git", &["status", "--", "a"]);
    alike(&bench, "git", &["log", "-p"]);
}

#[test]
fn rust_programs_run() {
    alike(&Bench::new(), bench::BINARY, &["cache", "--help"]);
    alike(&Bench::new(), env!("CARGO"), &["--version"]);
}

#[test]
fn lightfoot_measures_lightfoot() {
    alike(&Bench::new(), bench::BINARY, &["count", "-o", "inner.txt", "sh", "-c", "echo nested; exit 5"]);
}

#[test]
fn pipelines_and_subshells_keep_their_statuses() {
    alike(&Bench::new(), "sh", &["-c", "printf '3\\n1\\n2\\n' | sort -r | head -2; (exit 9)"]);
}

#[test]
fn arguments_may_be_empty_or_anything() {
    let bench = Bench::new();
    alike(&bench, "printf", &["[%s]", "", "--", "-o", " a\tb ", "é"]);
}

// Programs of our own, for what the system's do not do.

#[test]
fn a_program_may_close_every_descriptor() {
    let source = "#include <unistd.h>\nint main(){for(int i=0;i<1024;i++)close(i);int s=0;for(volatile int k=0;k<1000;k++)s+=k;_exit(s==499500?7:8);}";
    compiled_alike("closer", &[], source, &[]);
}

const DEEP: &str = "#include <stdio.h>\n#include <stdlib.h>\nint f(int n){volatile char b[32];b[0]=n;return n?f(n-1)+b[0]%2:0;}\n\
                    int main(int c,char**v){printf(\"%d\\n\",f(atoi(v[1])));return 0;}";

#[test]
fn deep_recursion_runs_dynamic_static_and_stripped() {
    for options in [&["-s"][..], &["-static"], &["-no-pie"]] {
        compiled_alike("deep", options, DEEP, &["80000"]);
    }
}

#[test]
fn recursion_without_end_dies_as_natively() {
    compiled_alike("deep", &[], DEEP, &["2000000000"]);
}

#[test]
fn children_run_and_an_exec_takes_over() {
    let source = "#include <unistd.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <stdlib.h>\n\
        int main(){for(int i=0;i<10;i++){if(!fork()){volatile int s=0;for(int k=0;k<1000;k++)s+=k;_exit(i);}int t;wait(&t);printf(\"%d \",WEXITSTATUS(t));}\n\
        fflush(stdout);if(!vfork()){execlp(\"echo\",\"echo\",\"vforked\",(char*)0);_exit(1);}wait(0);\n\
        execlp(\"sh\",\"sh\",\"-c\",\"echo exec; exit 6\",(char*)0);}";
    compiled_alike("forks", &[], source, &[]);
}

#[test]
fn thirty_threads_add_up() {
    let source = "#include <pthread.h>\n#include <stdio.h>\nstatic long s;static void*f(void*p){for(int i=0;i<5000;i++)__sync_fetch_and_add(&s,1);return 0;}\n\
        int main(){pthread_t t[30];for(int i=0;i<30;i++)pthread_create(t+i,0,f,0);for(int i=0;i<30;i++)pthread_join(t[i],0);printf(\"%ld\\n\",s);return 0;}";
    compiled_alike("threads", &[], source, &[]);
}

#[test]
fn faults_that_are_handled_are_handled() {
    let source = "#include <setjmp.h>\n#include <signal.h>\n#include <stdio.h>\n#include <string.h>\nstatic sigjmp_buf b;static void h(int s){siglongjmp(b,s);}\n\
        int main(){int n=0;struct sigaction a;memset(&a,0,sizeof a);a.sa_handler=h;sigaction(SIGSEGV,&a,0);sigaction(SIGFPE,&a,0);\n\
        for(volatile int i=0;i<50;i++){int s=sigsetjmp(b,1);if(!s){if(i&1)*(volatile int*)8=1;else{volatile int z=0;z=1/z;}}else n+=s;}printf(\"%d\\n\",n);return 5;}";
    compiled_alike("faults", &[], source, &[]);
}

#[test]
fn alarms_reach_a_busy_program() {
    let source = "#include <signal.h>\n#include <stdio.h>\n#include <sys/time.h>\nstatic volatile int n;static void h(int s){n++;}\n\
        int main(){signal(SIGALRM,h);struct itimerval t={{0,1000},{0,1000}};setitimer(ITIMER_REAL,&t,0);\n\
        volatile double x=1;while(n<20)x=x*1.0000001;t.it_value.tv_usec=t.it_interval.tv_usec=0;setitimer(ITIMER_REAL,&t,0);puts(\"twenty\");return 20;}";
    compiled_alike("alarms", &[], source, &[]);
}

#[test]
fn code_that_is_written_anew_runs_anew() {
    let source = "#include <sys/mman.h>\n#include <stdio.h>\n#include <string.h>\n\
        int main(){unsigned char*p=mmap(0,4096,7,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);int s=0;\n\
        for(int i=0;i<200;i++){unsigned char c[]={0xb8,i,0,0,0,0xc3};memcpy(p,c,6);s+=((int(*)(void))p)();}printf(\"%d\\n\",s);return 0;}";
    compiled_alike("anew", &[], source, &[]);
}

/// A branch leads to code that first needs no flags, and then needs those from before the branch.
/// Once the program has one thread, and once two.
#[test]
fn code_that_is_written_anew_has_the_flags_from_before() {
    let source = "#include <pthread.h>\n#include <stdio.h>\n#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
        static void*rest(void*n){pause();return 0;}\n\
        static int run(unsigned char*p){int(*f)(int)=(int(*)(int))p,s=0;\n\
        unsigned char a[]={0x83,0xff,5,0x75,27,0xb8,7,0,0,0,0xc3},b[]={0x31,0xc0,0xc3},c[]={0xb8,0,0,0,0,0x0f,0x9c,0xc0,0xc3};\n\
        memcpy(p,a,11);memcpy(p+32,b,3);for(int i=0;i<20;i++)s+=f(i);memcpy(p+32,c,9);for(int i=0;i<20;i++)s+=f(i);return s;}\n\
        int main(){unsigned char*p=mmap(0,8192,7,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);pthread_t t;printf(\"%d\\n\",run(p));\n\
        pthread_create(&t,0,rest,0);printf(\"%d\\n\",run(p+4096));return 0;}";
    compiled_alike("flags", &[], source, &[]);
}

/// Three threads run a function that returns a number, while a fourth one counts the number up in
/// the function's code.
#[test]
fn code_that_threads_run_is_written_anew() {
    let source = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n\
        static unsigned char*p;static volatile int end,ran[3];\n\
        static void*run(void*n){int last=0,k;while(!end){k=((int(*)(void))p)();if(k<last)abort();last=k;ran[(long)n]++;}return 0;}\n\
        int main(){p=mmap(0,8192,7,MAP_PRIVATE|MAP_ANONYMOUS,-1,0);pthread_t t[3];\n\
        unsigned char c[]={0x90,0x90,0x90,0xb8,0,0,0,0,0xc3};memcpy(p,c,9);for(long i=0;i<3;i++)pthread_create(t+i,0,run,(void*)i);\n\
        for(int i=0;i<3;i++)while(!ran[i])sched_yield();\n\
        for(int i=1;i<=1500;i++){*(volatile int*)(p+4)=i;if(((int(*)(void))p)()!=i)abort();}end=1;\n\
        for(int i=0;i<3;i++)pthread_join(t[i],0);printf(\"%d\\n\",((int(*)(void))p)());return 0;}";
    compiled_alike("anew", &["-D_GNU_SOURCE"], source, &[]);
}

#[test]
fn threads_outlive_the_first() {
    let source = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
        static int order(const void*a,const void*b){return*(int*)a-*(int*)b;}\n\
        static void*late(void*p){usleep(50000);int a[]={3,1,2};qsort(a,3,4,order);char*e=getenv(\"PATH\");printf(\"%d %d\\n\",a[0],e!=0);\n\
        if(!fork())_exit(3);exit(4);}\n\
        int main(){pthread_t t;pthread_create(&t,0,late,0);pthread_exit(0);}";
    compiled_alike("outlives", &[], source, &[]);
}

#[test]
fn avx_512_runs() {
    if !has_avx512() {
        return eprintln!("skipped: this processor lacks AVX-512");
    }
    let source = "#include <immintrin.h>\n#include <stdio.h>\nint main(){static int a[4096];for(int i=0;i<4096;i++)a[i]=i*7;\n\
        __m512i s=_mm512_setzero_si512(),x=_mm512_setr_epi32(0,3,6,9,12,15,18,21,24,27,30,33,36,39,42,45);\n\
        for(int i=0;i<4032;i+=16){s=_mm512_add_epi32(s,_mm512_loadu_si512(a+i));s=_mm512_mask_add_epi32(s,0x5555,s,_mm512_i32gather_epi32(x,a+i,4));}\n\
        printf(\"%d\\n\",_mm512_reduce_add_epi32(s));return 12;}";
    compiled_alike("wide", &["-mavx512f"], source, &[]);
}

fn has_avx512() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" avx512f "))
}

// Signals from outside.

const COUNTS_INTERRUPTS: &str = "#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\n#include <time.h>\nstatic volatile int n;static void h(int s){n++;}\n\
    int main(){signal(SIGINT,h);signal(SIGTERM,h);puts(\"ready\");fflush(stdout);struct timespec t={0,10000000};while(!n)nanosleep(&t,0);\n\
    t.tv_nsec=500000000;while(nanosleep(&t,&t));printf(\"%d\\n\",n);return n;}";

/// Starts the program that counts under `count`, sends `signal` once it is ready, and gives its
/// status and output.
fn counted(program: &Path, signal: &str, send: fn(&Job, &str)) -> (i32, String) {
    let job = lightfoot().args(["count", "--"]).arg(program).start_job();
    send(&job, signal);
    let ran = job.finish();
    (ran.status, String::from_utf8(ran.stdout).unwrap())
}

#[test]
fn a_signal_to_the_group_or_to_us_reaches_the_program_once() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "counts", &[], COUNTS_INTERRUPTS) else { return };
    for _ in 0..5 {
        for send in [Job::signal, Job::signal_to_us] {
            // Who handles the signal and ends by itself has a status of its own.
            assert_eq!(counted(&program, "INT", send), (1, "ready\n1\n".into()));
            assert_eq!(counted(&program, "TERM", send), (1, "ready\n1\n".into()));
        }
    }
}
