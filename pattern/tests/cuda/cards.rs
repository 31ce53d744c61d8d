//! The cards that tests run on: the machine's own where there is one, and an emulated one.

use lightfoot_pattern::kernel::cuda::{Cuda, CudaError, CudaOptions, GpuProgram, GpuText, Reach, Width};
use lightfoot_pattern::kernel::{Kernel, Scanner};
use lightfoot_pattern::program::BitProgram;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const EMULATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cuda/emulator.c");

/// The emulated card has one set of fibers: one test at a time.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder of this run's own; those of runs that are long over go.
pub(crate) fn folder() -> PathBuf {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let entries = std::fs::read_dir(env!("CARGO_TARGET_TMPDIR")).into_iter().flatten().flatten();
        for old in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("cuda-")) {
            let age = old.metadata().and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age.as_secs() > 3600) {
                let _ = std::fs::remove_dir_all(old.path());
            }
        }
    });
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Builds an emulated card with the faults that are named; nothing where there is no C compiler.
pub(crate) fn emulator(faults: &[&str]) -> Option<PathBuf> {
    let folder = folder();
    let library = folder.join(format!("emulator{}.so", faults.join("-")));
    if library.exists() {
        return Some(library);
    }
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-w", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", "-DOPTIMISE=\"-O0\""])
        .arg(format!("-DFOLDER=\"{}\"", folder.display()))
        .args(faults.iter().map(|fault| format!("-D{fault}")))
        .arg("-o")
        .args([&library, Path::new(EMULATOR)])
        .arg("-ldl")
        .status();
    match built {
        Ok(status) => {
            assert!(status.success(), "the emulated card does not compile");
            Some(library)
        }
        Err(error) => {
            eprintln!("skipped: no C compiler for the emulated card ({error})");
            None
        }
    }
}

pub(crate) fn emulated(library: &Path, options: CudaOptions) -> Result<Arc<Cuda>, CudaError> {
    let library = Some(library.to_owned());
    Cuda::open(CudaOptions {
        driver: library.clone(),
        compiler: library,
        cache: Some(folder().join("cache")),
        ..options
    })
}

/// How texts are cut, so that small ones have many segments.
pub(crate) fn shapes() -> Vec<CudaOptions> {
    let shape = |width, chain_width, segment_bytes| CudaOptions {
        width,
        chain_width,
        segment_bytes: Some(segment_bytes),
        ..CudaOptions::default()
    };
    vec![
        shape(Width::WARP, Width::PAPER, 4096),
        shape(Width::PAPER, Width::WARP, 8192),
        shape(Width::BLOCK, Width::BLOCK, 16384),
    ]
}

/// All cards that can be had, with these options; where `PATTERN_REAL_CARD_ONLY` is set, not the
/// emulated one, which takes longer than the real one's thousand patterns.
pub(crate) fn cards(options: &CudaOptions) -> Vec<Arc<Cuda>> {
    let mut all = Vec::new();
    let emulates = std::env::var_os("PATTERN_REAL_CARD_ONLY").is_none();
    if let Some(library) = emulates.then(|| emulator(&[])).flatten() {
        all.push(emulated(&library, options.clone()).unwrap());
    }
    match Cuda::open(options.clone()) {
        Ok(card) => all.push(card),
        Err(error) => {
            static ONCE: std::sync::Once = std::sync::Once::new();
            ONCE.call_once(|| eprintln!("skipped: tests on a real card: {error}"));
        }
    }
    all
}

pub(crate) fn line_ends(program: &BitProgram, text: &[u8]) -> Vec<u64> {
    let mut ends = Vec::new();
    let _ = Scanner::with_kernel(program, Kernel::Portable).unwrap().for_each_line_end(text, |end| {
        ends.push(end as u64);
        ControlFlow::Continue(())
    });
    ends
}

/// A card finds what the processor finds, in each way of asking.
pub(crate) fn check(cuda: &Arc<Cuda>, program: &BitProgram, reach: Reach, text: &[u8], what: &str) {
    let expected = line_ends(program, text);
    let on_card = GpuProgram::new(cuda, program, reach).unwrap();
    let resident = GpuText::upload(cuda, text, program.terminator).unwrap();
    assert_eq!(on_card.line_ends(&resident).unwrap(), expected, "{what}\n{program}");
    assert_eq!(on_card.count_lines(&resident).unwrap(), expected.len() as u64, "{what}: count");
}
