//! Programs with jumps give what programs without them give, wherever a match lies.

use super::*;
use crate::compile::{compile, CompileOptions};
use crate::kernel::jit::{Direction, Skips as Choice, Target, Translation};
use crate::transpose::CHUNK_BYTES;

fn program(pattern: &str) -> BitProgram {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).multi_line(true).build().parse(pattern).unwrap();
    compile(&hir, &CompileOptions::default()).unwrap()
}

/// The output's words for a text of whole chunks, and the translation.
fn marks(program: &BitProgram, target: Target, skips: Choice, text: &[u8]) -> (Vec<u64>, Translation) {
    let translation = Translation::new(program, target, Direction::Forwards, skips).unwrap();
    let mut frame = translation.frame();
    let mut marks = Vec::new();
    for chunk in text.chunks_exact(CHUNK_BYTES) {
        let mut output = vec![0; CHUNK_BYTES / 64];
        translation.run(chunk, &mut frame, &mut output);
        marks.extend(output);
    }
    (marks, translation)
}

fn targets() -> Vec<Target> {
    [Target::Sse2, Target::Avx2]
        .into_iter()
        .filter(|&target| target == Target::Sse2 || is_x86_feature_detected!("avx2"))
        .collect()
}

/// Text without a match, with `hit` at `at`, and lines that end seldom.
fn text_with(hit: &[u8], at: usize) -> Vec<u8> {
    let mut text: Vec<u8> = b"no such word here ".iter().copied().cycle().take(2 * CHUNK_BYTES).collect();
    text.iter_mut().skip(700).step_by(701).for_each(|byte| *byte = b'\n');
    text[at..at + hit.len()].copy_from_slice(hit);
    text
}

#[test]
fn a_match_is_found_wherever_it_lies() {
    let hits: [(&str, &str); 5] = [
        ("mutex_unlock", "mutex_unlock"),
        (r#""[^"]{0,30}[?!.]"#, r#""is it so?"#),
        (r"\bmut\w+ \d+ks$", " mutter 12ks\n"),
        (r"^#define\s+[A-Z_]+\b", "\n#define  ABC "),
        ("(?i)sherlock|holmes|watson", "wAtson"),
    ];
    for (pattern, hit) in hits {
        let program = program(pattern);
        // A letter of two bytes elsewhere makes some blocks run the program for all texts.
        for foreign in [None, Some("é")] {
            for at in (60..700).step_by(3) {
                let mut text = text_with(hit.as_bytes(), at);
                if let Some(letter) = foreign {
                    let from = (at + hit.len() + at % 150).max(2);
                    text[from..from + letter.len()].copy_from_slice(letter.as_bytes());
                }
                for target in targets() {
                    let (with, translation) = marks(&program, target, Choice::Chosen, &text);
                    let (without, _) = marks(&program, target, Choice::None, &text);
                    // More blocks of AVX2 have a quote than jumps are worth.
                    let is_jumped = target == Target::Sse2 || !pattern.starts_with('"');
                    assert_eq!(translation.worth.parts > 0.0, is_jumped, "{pattern}, {target:?}");
                    assert!(without.iter().any(|&word| word != 0), "{pattern} matches at {at}");
                    assert_eq!(with, without, "{pattern} at {at}, {target:?}");
                }
            }
        }
    }
}

#[test]
fn jumps_that_are_worth_nothing_are_given_up() {
    let program = program("mutex_unlock");
    for target in targets() {
        let text =
            |line: &[u8]| -> Vec<u8> { line.iter().copied().cycle().take(256 * CHUNK_BYTES).collect() };
        for (line, is_vain) in [(&b"a mute mutex, mutable\n"[..], true), (b"nothing of that kind\n", false)] {
            let (marks, translation) = marks(&program, target, Choice::Chosen, &text(line));
            assert!(marks.iter().all(|&word| word == 0));
            assert_eq!(translation.is_vain(), is_vain, "{target:?}");
        }
    }
}

#[test]
fn bodies_hold_what_the_condition_governs() {
    let (with, worth) = with_skips(program("mutex_unlock"), 128);
    assert_eq!(worth.parts, 1.0);
    let body = with.body.iter().find_map(|one| one.op.body()).unwrap();
    assert!(
        body.iter().any(owns_carries) && with.body.iter().any(|one| matches!(one.op, Op::Advance { .. }))
    );
    // Nothing is rare in what every line has.
    assert_eq!(with_skips(program(".*"), 128).1.parts, 0.0);
}
