//! References over many lines: each line that misses counts.

mod bench;

use bench::{json, lightfoot, Bench};
use std::process::Command;

/// Two hundred areas of 512 bytes that nobody has touched, saved into by `fxsave`, one after the
/// other.
const SAVES: &str = "
.bss
.balign 4096
room: .skip 102400
.text
.globl _start
_start:
    lea room(%rip), %rdi
    mov $200, %ecx
1:  fxsave (%rdi)
    add $512, %rdi
    dec %ecx
    jnz 1b
    mov $60, %eax
    xor %edi, %edi
    syscall
";

#[test]
fn fxsave_misses_once_for_each_of_its_lines() {
    let bench = Bench::new();
    let (source, program) = (bench.file("program.s", SAVES.as_bytes(), 0o644), bench.join("program"));
    let built = Command::new("cc").args(["-nostdlib", "-static", "-o"]).arg(&program).arg(&source).output();
    match built {
        Ok(out) => assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr)),
        Err(_) => return eprintln!("skipped: there is no C compiler (cc) here"),
    }
    for machine in ["zen4", "zen4-victim"] {
        let ran = lightfoot().args(["cache", "--machine", machine, "--format", "json"]).arg(&program).run();
        let report = json(&ran.ends_with(0).stderr);
        let total = |field: &str| report["totals"][field].as_u64().unwrap();
        assert_eq!(total("stores"), 200, "{machine}: a save is one reference");
        // Eight lines each.
        assert_eq!(total("l1d_store_misses"), 1600, "{machine}");
        assert_eq!(total("dtlb_misses"), 102_400 / 4096, "{machine}");
        assert!(total("l2_misses") >= 1600, "{machine}");
    }
}
