//! The agreement runner where the family has its dummy member, `word_by_word`, which is not named
//! below and yet is chosen, run and held against the truth: a member takes its file and its entry.

#[path = "../../tests/agreement/mod.rs"]
mod agreement;

use super::*;
use crate::compile::compile;
use agreement::{check, check_kernels, options, parse};

#[test]
fn the_dummy_member_agrees_as_every_other_member_does() {
    assert!(agreement::kernels().any(|kernel| kernel.name() == "word-by-word"));
    let text = "sing\nsong\n\u{e4}sing\ndancing with bears\n\n".repeat(300);
    for pattern in ["[a-z]+ing", "^s", r"\bwith\b", "(a|b)+c|(s(i|o)n)+g", "\u{e4}.", r"\w{4}$"] {
        check(pattern, text.as_bytes(), b'\n');
    }
}

#[test]
fn agreement_notices_a_wrong_answer() {
    let program = compile(&parse("b"), &options(b'\n')).unwrap();
    check_kernels(&program, b"abc\nxyz\n", &[3], "its own lines");
    let wrong = std::panic::catch_unwind(|| check_kernels(&program, b"abc\nxyz\n", &[7], "others"));
    assert!(wrong.is_err());
}

#[test]
fn names_are_given_once_and_lead_back() {
    for kernel in KERNELS {
        assert_eq!(Kernel::from_name(kernel.name()), Some(*kernel));
    }
    assert!(Kernel::detect().is_available());
}
