//! `--collect-jumps=yes`: how often each jump within a function was taken, and where it leads.

mod bench;

use bench::{compile, lightfoot, Bench};
use std::collections::BTreeMap;
use std::path::Path;

/// `walks(n)` goes round n times, a multiple of 4, with one jump of each kind; the program prints
/// the addresses of its jumps' targets.
const WALKS: &str = "#include <stdio.h>
    void walks(long times);
    extern const unsigned long marks[];
    __asm__(\".text\\n.globl walks\\n.type walks,@function\\nwalks: mov %rdi,%rcx\\n\"
            \".Lloop: test $1,%cl\\n jz .Leven\\n nop\\n jmp .Ljoin\\n.Leven: nop\\n\"
            \".Ljoin: mov %ecx,%eax\\n and $3,%eax\\n lea table(%rip),%rdx\\n jmp *(%rdx,%rax,8)\\n\"
            \".Lcase0: nop\\n jmp .Lnext\\n.Lcase1: nop\\n jmp .Lnext\\n.Lcase2: nop\\n jmp .Lnext\\n.Lcase3: nop\\n\"
            \".Lnext: dec %rcx\\n jnz .Lloop\\n ret\\n.size walks,.-walks\\n\"
            \".section .rodata\\n.align 8\\ntable: .quad .Lcase0,.Lcase1,.Lcase2,.Lcase3\\n\"
            \".globl marks\\nmarks: .quad .Lloop,.Leven,.Ljoin,.Lcase0,.Lcase1,.Lcase2,.Lcase3,.Lnext\\n.text\");
    int main(void) { walks(100); for (int i = 0; i < 8; i++) printf(\"%lx \", marks[i]); return 0; }";

/// The jumps of a function: the words of their lines up to the target, and the target.
fn jumps(path: &Path, function: &str) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut present = "";
    let mut jumps = Vec::new();
    let mut is_source = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            present = name;
        } else if line.starts_with("jump=") || line.starts_with("jcnd=") {
            let (words, target) = line.trim_end().split_once(" 0x").unwrap();
            if present == function {
                jumps.push((words.to_owned(), u64::from_str_radix(target, 16).unwrap()));
            }
            is_source = true;
        } else if std::mem::take(&mut is_source) {
            // The place of the jump stands alone: it is no line of costs.
            assert!(line.starts_with("0x") && line.trim_end().split(' ').count() == 1, "{line}");
        }
    }
    jumps
}

#[test]
fn jumps_have_their_numbers_and_targets() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "walks", &["-O1", "-no-pie"], WALKS) else { return };
    let plain = ["--tool=callgrind", "--callgrind-out-file=out", "--compress-strings=no", "--dump-instr=yes"];
    let plain = [&plain[..], &["--dump-line=no", "--collect-jumps=yes"]].concat();
    // The second run with the same caches has kept translations.
    for more in [&[][..], &[], &["--cache-sim=yes"], &["--toggle-collect=walks"], &["--calls=no"]] {
        let ran =
            lightfoot().within(bench.path()).arg("valgrind").args(&plain).args(more).arg(&program).run();
        let printed = String::from_utf8_lossy(&ran.ends_with(0).stdout).into_owned();
        let marks: Vec<u64> =
            printed.split_whitespace().map(|mark| u64::from_str_radix(mark, 16).unwrap()).collect();
        let [around, even, join, zero, one, two, three, next] = marks[..].try_into().unwrap();
        let (jump, half) = (|times: u32| format!("jump={times}"), "jcnd=50/100".to_owned());
        let mut expected = vec![(half, even), (jump(50), join)];
        if !more.contains(&"--calls=no") {
            expected.extend([zero, one, two, three].map(|case| (jump(25), case)));
        }
        expected.extend([0; 3].map(|_| (jump(25), next)));
        expected.push(("jcnd=99/100".to_owned(), around));
        assert_eq!(jumps(&bench.path().join("out"), "walks"), expected, "{more:?}");
    }
}

#[test]
fn jumps_change_no_costs_and_have_lines_where_they_are_asked_for_alone() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "walks", &["-O1", "-g"], WALKS) else { return };
    let costs = |option: &str| {
        let words = ["--tool=callgrind", "--callgrind-out-file=out", "--repeatable=yes", option];
        lightfoot().within(bench.path()).arg("valgrind").args(words).arg(&program).run().ends_with(0);
        let text = std::fs::read_to_string(bench.path().join("out")).unwrap();
        // Without addresses all jumps between the same two lines are one.
        let mut lines: BTreeMap<String, u32> = BTreeMap::new();
        let (mut found, mut is_source) = (0, false);
        for line in text.lines().filter(|line| !line.starts_with("pid:")) {
            if line.starts_with("jump=") || line.starts_with("jcnd=") {
                (found, is_source) = (found + 1, true);
            } else if !std::mem::take(&mut is_source) && !line.starts_with("jfi=") {
                *lines.entry(line.to_owned()).or_default() += 1;
            }
        }
        (found, lines)
    };
    let ((none, without), (some, with)) = (costs("--collect-jumps=no"), costs("--collect-jumps=yes"));
    assert!(none == 0 && some > 50, "{none} {some}");
    let names_apart = |lines: BTreeMap<String, u32>| -> Vec<(String, u32)> {
        // A name is written where it is met first, which may be at a jump.
        lines.into_iter().filter(|(line, _)| line.starts_with(|first: char| first.is_ascii_digit())).collect()
    };
    assert_eq!(names_apart(without), names_apart(with));
}

#[test]
fn the_annotator_reads_files_with_jumps() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "walks", &["-O1", "-g"], WALKS) else { return };
    let words = ["--tool=callgrind", "--callgrind-out-file=out", "--dump-instr=yes", "--collect-jumps=yes"];
    lightfoot().within(bench.path()).arg("valgrind").args(words).arg(&program).run().ends_with(0);
    let Ok(annotated) =
        std::process::Command::new("callgrind_annotate").arg(bench.path().join("out")).output()
    else {
        println!("skipped: there is no callgrind_annotate");
        return;
    };
    let said = String::from_utf8_lossy(&annotated.stdout);
    assert!(annotated.status.success() && said.contains(":walks ["), "{said}");
}
