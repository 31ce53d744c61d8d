//! The programs that must run: each natively and under `count` and `cache`, with the same output
//! and exit status.
//!
//! A target is a shell script in which `$RUN` stands before the program that is measured: nothing
//! natively, lightfoot under measurement. What it needs is prepared once. A program that is not
//! installed is a printed skip that names its package. `LIGHTFOOT_TARGETS=node,go` picks targets,
//! `LIGHTFOOT_TARGET_ROUNDS=3` repeats them; natively all take ten seconds, measured five minutes
//! on two cores.

mod bench;

use bench::Bench;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// A program that must run.
struct Target {
    name: &'static str,
    /// Debian's package.
    package: &'static str,
    /// Succeeds where it is installed; prepares what it works on.
    prepare: &'static str,
    script: &'static str,
    /// Commands under which it is measured.
    commands: &'static [&'static [&'static str]],
}

const BOTH: &[&[&str]] = &[&["count"], &["cache"]];
const FOLLOWED: &[&[&str]] = &[&["count", "--follow-children"], &["cache"]];

const TARGETS: &[Target] = &[
    Target {
        name: "zstd",
        package: "zstd",
        prepare: "command -v zstd && seq 200000 >text",
        script: "$RUN zstd -T2 -q -c text | cksum",
        commands: BOTH,
    },
    Target {
        name: "pigz",
        package: "pigz",
        prepare: "command -v pigz && seq 100000 >text",
        script: "$RUN pigz -p2 -c <text | cksum",
        commands: BOTH,
    },
    Target {
        name: "xz",
        package: "xz-utils",
        prepare: "command -v xz && seq 100000 >text",
        script: "$RUN xz -T2 -0 --block-size=100000 -c text | cksum",
        commands: BOTH,
    },
    Target {
        name: "shell",
        package: "bash",
        prepare: "command -v bash",
        script: "$RUN bash -c 'for i in 1 2 3; do echo $i | cat | tr 1 2 | wc -c; done; (exit 4) || exit 3'",
        commands: FOLLOWED,
    },
    Target {
        name: "gcc",
        package: "gcc",
        prepare: "command -v gcc && printf 'int f(int a,char*b){int s=0;while(a--)s+=b[a]*3;return s;}' >one.c",
        script: "$RUN gcc -O1 -c one.c -o one.o && cksum <one.o",
        commands: FOLLOWED,
    },
    Target {
        name: "make",
        package: "make",
        prepare: "command -v make && command -v gcc && printf 'int one(void){return 1;}' >one.c && printf 'int main(void){return one();}' >two.c && \
                  printf 'prog: one.o two.o\\n\\tgcc -o $@ one.o two.o\\n%%.o: %%.c\\n\\tgcc -w -c $<\\n' >Makefile",
        script: "rm -f prog *.o; $RUN make -s -j2; ./prog; echo $?",
        commands: FOLLOWED,
    },
    Target {
        name: "git",
        package: "git",
        prepare: "command -v git && git init -q repository && cd repository && seq 1000 >a && git add a && \
                  git -c user.name=n -c user.email=n@example.org commit -qm first",
        script: "rm -rf copy; $RUN git clone -q repository copy && cksum <copy/a",
        commands: FOLLOWED,
    },
    Target {
        name: "openssl",
        package: "openssl",
        prepare: "command -v openssl",
        script: "$RUN openssl speed -seconds 1 -bytes 1024 sha256 2>/dev/null | wc -l; seq 9999 | $RUN openssl dgst -sha3-256",
        commands: BOTH,
    },
    Target {
        name: "perl",
        package: "perl",
        prepare: "command -v perl",
        script: "PERL_HASH_SEED=0 $RUN perl -e 'my %h; $h{$_%1000}.=\"x\" for 1..100000; print length(join \"\",values %h),\"\\n\"; exit 9'",
        commands: BOTH,
    },
    Target {
        name: "sqlite",
        package: "sqlite3",
        prepare: "command -v sqlite3 && echo 'create table t(a,b);with recursive c(x) as (select 1 union all select x+1 from c where x<20000) \
                  insert into t select x,x*7%1001 from c;create index i on t(b);select sum(a),count(*),b%10 from t group by 3;\
                  select count(*) from t x join t y on x.b=y.a;' >script.sql",
        script: "$RUN sqlite3 :memory: <script.sql",
        commands: BOTH,
    },
    Target {
        name: "curl",
        package: "curl",
        prepare: "command -v curl && seq 9999 >text",
        script: "$RUN curl -s \"file://$PWD/text\" | cksum",
        commands: BOTH,
    },
    Target {
        name: "node",
        package: "nodejs",
        prepare: "command -v node",
        script: "$RUN node \"$FILES/workers.js\"",
        commands: BOTH,
    },
    Target {
        name: "java -version",
        package: "default-jdk-headless",
        prepare: "command -v java",
        script: "$RUN java -version 2>&1",
        commands: BOTH,
    },
    Target {
        name: "java",
        package: "default-jdk-headless",
        prepare: "command -v javac && cp \"$FILES/hot.java\" Hot.java && javac Hot.java",
        script: "$RUN java -Xmx256m Hot",
        commands: BOTH,
    },
    Target {
        name: "go",
        package: "golang-go",
        prepare: "command -v go && HOME=$PWD GOFLAGS=-trimpath go build -o goroutines \"$FILES/goroutines.go\"",
        script: "$RUN ./goroutines",
        commands: BOTH,
    },
    Target {
        name: "luajit",
        package: "luajit",
        prepare: "command -v luajit",
        script: "$RUN luajit -e 'local t={} for i=1,50000 do t[i]=(i*7919)%10007 end table.sort(t) local s=0 for i=1,#t do s=s+t[i]*i%13 end print(s)'",
        commands: BOTH,
    },
    Target {
        name: "rustc",
        package: "rustc",
        prepare: "command -v rustc && echo 'pub fn f(v: &[u64]) -> u64 { v.iter().map(|x| x * x).sum() }' >one.rs",
        script: "$RUN rustc --crate-type rlib --emit metadata,mir -o one.rmeta one.rs; echo $?; cksum <one.mir",
        commands: BOTH,
    },
    Target {
        name: "grep",
        package: "grep",
        prepare: "command -v grep && seq 200000 >text",
        script: "$RUN grep -c -E '(1|2)+3[0-9]7' text; $RUN grep -q nothing text",
        commands: BOTH,
    },
    Target {
        name: "ripgrep",
        package: "ripgrep",
        prepare: "command -v rg && mkdir tree && seq 200000 | split -l 20000 - tree/",
        script: "$RUN rg -j2 -c '(1|2)+3[0-9]7' tree | sort; $RUN rg -q nothing tree; echo $?",
        commands: BOTH,
    },
    Target {
        name: "processors",
        package: "coreutils",
        prepare: "command -v nproc && command -v grep",
        script: "$RUN nproc; $RUN grep Cpus_allowed /proc/self/status",
        commands: BOTH,
    },
    Target {
        name: "ffmpeg",
        package: "ffmpeg",
        prepare: "command -v ffmpeg",
        script: "$RUN ffmpeg -v error -f lavfi -i testsrc=d=0.2:s=320x240 -c:v mpeg4 -f rawvideo -threads 2 - | cksum",
        commands: BOTH,
    },
    Target {
        name: "chromium",
        package: "chromium",
        prepare: "command -v chromium",
        script: "$RUN chromium --version",
        commands: BOTH,
    },
    Target {
        name: "python data",
        package: "libpython3.11-testsuite",
        prepare: "python3 -c 'import test.test_json'",
        script: "$RUN python3 -m test -q test_struct test_mmap 2>&1 | grep -a -E '^(Tests? result|Result|All|[0-9]+ test)'",
        commands: BOTH,
    },
    Target {
        name: "python signals",
        package: "libpython3.11-testsuite",
        prepare: "python3 -c 'import test.test_signal'",
        script: "$RUN python3 -m test -q test_signal -m 'PosixTests' -m 'PendingSignalsTests' -m 'WakeupSignalTests' -m 'SiginterruptTest' 2>&1 | \
                 grep -a -E '^(Tests? result|Result|All|[0-9]+ test)'",
        commands: BOTH,
    },
    Target {
        name: "python threads",
        package: "libpython3.11-testsuite",
        prepare: "python3 -c 'import test.test_threading'",
        script: "$RUN python3 -m test -q test_threading -m 'LockTests' -m 'RLockTests' -m 'EventTests' -m 'BarrierTests' -m 'ThreadJoinOnShutdown' \
                 2>&1 | grep -a -E '^(Tests? result|Result|All|[0-9]+ test)'",
        commands: BOTH,
    },
];

fn shell(bench: &Bench, script: &str, run: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(bench.path()).stdin(Stdio::null()).env("RUN", run);
    command.env("FILES", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/targets")).env("PYTHONHASHSEED", "0");
    // What a locale that is not there makes a shell say, or a program sort by, is not what is
    // compared.
    command.env("LC_ALL", "C");
    bench::git_by_itself(bench::unwished(&mut command)).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned()
}

/// Runs one target natively and under its commands.
fn hit(target: &Target) {
    let bench = Bench::new();
    if !shell(&bench, target.prepare, "").status.success() {
        return eprintln!("skipped: there is no {} here (Debian: {})", target.name, target.package);
    }
    // Words of `$RUN` end at spaces, of which the path of the program under test may have some.
    std::os::unix::fs::symlink(bench::BINARY, bench.join("lightfoot")).unwrap();
    let native = shell(&bench, target.script, "");
    for options in target.commands {
        let started = Instant::now();
        let run = format!("./lightfoot {} --format json -o report.json --", options.join(" "));
        let measured = shell(&bench, target.script, &run);
        let what = format!("{} under {options:?}", target.name);
        assert_eq!(text(&measured.stdout), text(&native.stdout), "{what}: {}", text(&measured.stderr));
        assert_eq!(measured.status.code(), native.status.code(), "{what}: {}", text(&measured.stderr));
        let report = bench::json(&std::fs::read(bench.join("report.json")).unwrap());
        assert_eq!(report["partial"], false, "{what}");
        println!("{what}: {:.1} s", started.elapsed().as_secs_f64());
    }
}

#[test]
fn every_target_behaves_as_natively() {
    let wanted = std::env::var("LIGHTFOOT_TARGETS").unwrap_or_default();
    let rounds = std::env::var("LIGHTFOOT_TARGET_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for _ in 0..rounds {
        for target in TARGETS {
            if wanted.is_empty() || wanted.split(',').any(|name| name == target.name) {
                hit(target);
            }
        }
    }
}
