//! Ways of asking: from the host, lines, many patterns, the engine by its name.

use crate::cards::{cards, check, emulator, folder, line_ends, shapes, turn};
use crate::missing::sentence;
use crate::texts::{program, text};
use lightfoot_pattern::kernel::cuda::{
    Cuda, CudaError, CudaOptions, GpuProgram, GpuText, HostText, PinnedText, Reach,
};
use lightfoot_pattern::kernel::Scanner;
use lightfoot_pattern::program::BitProgram;
use lightfoot_pattern::{Regex, RegexBuilder};
use std::ops::ControlFlow;

#[test]
fn texts_of_the_host_go_through_in_pieces() {
    let _turn = turn();
    for options in shapes() {
        let options = CudaOptions { piece_bytes: 20_000, ..options };
        for cuda in cards(&options) {
            for (seed, pattern) in
                ["[a-z]+ing", "^[^x]*x[^y]*y", r"\p{Lu}\w+ ", "x(?:a|bc)*y", "a{60}"].into_iter().enumerate()
            {
                let mut text = text(150_000, seed as u64 + 1);
                text.splice(70_000..70_000, std::iter::repeat_n(b'a', 60_000));
                let program = program(pattern);
                let expected = line_ends(&program, &text);
                let on_card = GpuProgram::new(&cuda, &program, Reach::Line).unwrap();
                // Uploads go through the same buffers, piece by piece.
                check(&cuda, &program, Reach::Line, &text, pattern);
                let mut pinned = PinnedText::new(&cuda, text.len()).unwrap();
                pinned.bytes_mut().unwrap()[..text.len()].copy_from_slice(&text);
                for host in [HostText::Pageable(&text), HostText::Pinned(&pinned)] {
                    assert_eq!(on_card.line_ends_from_host(host).unwrap(), expected, "{pattern}");
                    assert_eq!(
                        on_card.count_lines_from_host(host).unwrap(),
                        expected.len() as u64,
                        "{pattern}: count"
                    );
                }
            }
        }
    }
}

#[test]
fn lines_come_back() {
    let _turn = turn();
    for cuda in cards(&shapes()[0]) {
        for pattern in ["sing", "^a*$", "zzz", "$"] {
            let text = text(30_000, 3);
            let program = program(pattern);
            let resident = GpuText::upload(&cuda, &text, b'\n').unwrap();
            let on_card = GpuProgram::new(&cuda, &program, Reach::Line).unwrap();
            let lines = on_card.matching_lines(&resident).unwrap();
            let mut expected = (Vec::new(), Vec::new());
            let _ = Scanner::new(&program).for_each_matching_line(&text, |line| {
                expected.0.push(line.start as u64..line.end as u64);
                expected.1.extend_from_slice(&text[line]);
                ControlFlow::Continue(())
            });
            assert_eq!((lines.places, lines.bytes), expected, "{pattern}");
        }
    }
}

#[test]
fn small_texts_and_ends_of_texts() {
    let _turn = turn();
    for cuda in cards(&CudaOptions::default()) {
        for pattern in ["", "a", "^$", "a$", "x*"] {
            let program = program(pattern);
            for text in [&b""[..], b"\n", b"a", b"a\n", b"\n\n", b"b\na", &[b'a'; 2048], &[b'a'; 16384]] {
                check(&cuda, &program, Reach::Line, text, pattern);
                let on_card = GpuProgram::new(&cuda, &program, Reach::Line).unwrap();
                let expected = line_ends(&program, text);
                assert_eq!(
                    on_card.line_ends_from_host(HostText::Pageable(text)).unwrap(),
                    expected,
                    "{pattern:?}"
                );
            }
        }
    }
}

#[test]
fn many_patterns_search_one_text() {
    let _turn = turn();
    for cuda in cards(&shapes()[0]) {
        let text = text(20_000, 11);
        let resident = GpuText::upload(&cuda, &text, b'\n').unwrap();
        assert_eq!((resident.len(), resident.is_empty()), (text.len(), false));
        for pattern in ["a", "sing", "[0-9]+", "x.*y"] {
            let program = program(pattern);
            let on_card = GpuProgram::new(&cuda, &program, Reach::Line).unwrap();
            let (count, seconds) = on_card.count_lines_timed(&resident).unwrap();
            assert_eq!(count, line_ends(&program, &text).len() as u64, "{pattern}");
            assert!(seconds > 0.0);
        }
        let zero = BitProgram { terminator: 0, ..program("a") };
        let on_card = GpuProgram::new(&cuda, &zero, Reach::Line).unwrap();
        let refused = on_card.count_lines(&resident);
        assert_eq!(refused, Err(CudaError::Terminator { text: 10, program: 0 }));
    }
}

/// The engine that a plan gives by name, on the card that the process shares.
#[test]
fn the_engine_called_cuda_gives_the_same_lines() {
    let _turn = turn();
    let Some(library) = emulator(&[]) else { return };
    let (driver, cache) = (Some(library.clone()), Some(folder().join("cache")));
    Cuda::share(CudaOptions { driver: driver.clone(), compiler: driver, cache, ..CudaOptions::default() })
        .unwrap();
    let text = text(50_000, 5);
    for pattern in ["[a-z]+ing", r"\p{Lu}\w+ ", "sing|the", "^$"] {
        let asked = RegexBuilder::new().engine("cuda").build(pattern).unwrap();
        assert_eq!(asked.engine(), "cuda", "{pattern}");
        assert!(asked.explain().contains("\ncard: emulated card 0\n"), "{}", asked.explain());
        let usual = Regex::new(pattern).unwrap();
        let lines = |regex: &Regex| {
            let mut lines = Vec::new();
            let _ = regex.matching_lines(&text, |line| {
                lines.push(line);
                ControlFlow::Continue(())
            });
            lines
        };
        assert_eq!(lines(&asked), lines(&usual), "{pattern}");
        assert_eq!(asked.count_lines(&text), usual.count_lines(&text), "{pattern}");
    }
    // What has no exact program stays where it was, and says why.
    let ahead = RegexBuilder::new().engine("cuda").build(r"\B.x").unwrap();
    assert_ne!(ahead.engine(), "cuda");
    assert!(sentence(&ahead.on_card().unwrap_err()).contains("would have to be confirmed"));
}
