//! What is missing or fails is one sentence, and what was compiled is kept.

use crate::cards::{check, emulated, emulator, folder, turn};
use crate::texts::program;
use lightfoot_pattern::kernel::cuda::{Cuda, CudaError, CudaOptions, GpuProgram, HostText, Reach};
use std::path::PathBuf;

pub(crate) fn sentence(error: &CudaError) -> String {
    let said = error.to_string();
    assert!(!said.contains('\n') && said.len() < 400, "not one sentence: {said}");
    said
}

#[test]
fn what_is_missing_is_one_sentence() {
    let _turn = turn();
    let nowhere = Some(PathBuf::from("/nowhere/libcuda.so"));
    let none = Cuda::open(CudaOptions { driver: nowhere.clone(), ..CudaOptions::default() }).unwrap_err();
    assert!(sentence(&none).starts_with("there is no CUDA driver (/nowhere/libcuda.so"), "{none}");
    let Some(whole) = emulator(&[]) else { return };
    let no_compiler =
        Cuda::open(CudaOptions { driver: Some(whole), compiler: nowhere, ..CudaOptions::default() })
            .unwrap_err();
    assert!(sentence(&no_compiler).contains("LIGHTFOOT_NVRTC"), "{no_compiler}");
    for (fault, expected) in [
        ("NO_CARD", "the CUDA driver sees no card"),
        ("BAD_START", "the CUDA driver cannot start: unknown error"),
        ("OLD_DRIVER", "has no cuLaunchKernel: CUDA 11.2 or later is needed"),
    ] {
        let error = emulated(&emulator(&[fault]).unwrap(), CudaOptions::default()).unwrap_err();
        assert!(sentence(&error).contains(expected), "{fault}: {error}");
    }
}

#[test]
fn what_fails_later_is_one_sentence_too() {
    let _turn = turn();
    let search = |fault: &str| -> Option<CudaError> {
        let options = CudaOptions { piece_bytes: 20_000, ..CudaOptions::default() };
        let cuda = emulated(&emulator(&[fault])?, options).unwrap();
        let text = vec![b'a'; 200_000];
        let result = GpuProgram::new(&cuda, &program("a+b"), Reach::Line)
            .and_then(|program| program.count_lines_from_host(HostText::Pageable(&text)));
        Some(result.unwrap_err())
    };
    for (fault, expected) in [
        ("BAD_COMPILER", "the CUDA compiler refuses the program: pattern.cu(1): error: it is Monday"),
        ("BAD_LAUNCH", "the CUDA driver cannot start a kernel: unknown error"),
        (
            "NO_MEMORY_FROM_BYTES=100000",
            "the CUDA driver cannot take memory of the card: out of memory (asked for",
        ),
    ] {
        let Some(error) = search(fault) else { return };
        assert!(sentence(&error).starts_with(expected), "{fault}: {error}");
    }
}

#[test]
fn compiled_programs_are_kept_in_files() {
    let _turn = turn();
    let Some(library) = emulator(&[]) else { return };
    let cache = folder().join("kept");
    let open = || {
        let library = Some(library.clone());
        Cuda::open(CudaOptions {
            driver: library.clone(),
            compiler: library,
            cache: Some(cache.clone()),
            ..CudaOptions::default()
        })
        .unwrap()
    };
    let files = || std::fs::read_dir(&cache).map_or(0, |files| files.count());
    for round in 0..2 {
        let cuda = open();
        check(&cuda, &program("k[e]pt"), Reach::Line, b"kept\nlost\n", "kept");
        // The program, the chain that a text this small never needs left out, and the kernels that
        // all programs share.
        assert_eq!(files(), 2, "round {round}");
    }
    // A file with another program's key is a miss.
    for file in std::fs::read_dir(&cache).unwrap() {
        std::fs::write(file.unwrap().path(), b"something else").unwrap();
    }
    check(&open(), &program("k[e]pt"), Reach::Line, b"kept\nlost\n", "kept");
}
