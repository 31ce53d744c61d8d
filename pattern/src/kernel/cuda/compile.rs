//! Compiles CUDA C to an image that a card can load. Images are cached in the process and, if a
//! folder is given, in files.
//!
//! A file begins with its key (compiler, target, source), so a file with another key under the same
//! name is only a miss. [`kept`](super::kept) checks the owners of folder and file.

use super::compiler::{Form, RuntimeCompiler};
use super::error::CudaError;
use super::kept::Folder;
use std::path::Path;

/// Options that only save time and that compilers before 12.9 do not know: they leave out features
/// that no kernel here uses (a tenth of the time), and files of the compiler's own, because the
/// folder replaces them.
const WISHES: &[&str] = &["--minimal", "--no-cache"];

/// Leaves out passes that take a third of the time and gain nothing for a few dozen operations.
/// Larger programs need the passes that allocate registers: without them six hundred operations ran
/// at a seventh of their speed on an H100.
const QUICK: &str = "--Ofast-compile=min";

/// Sources up to this length are compiled quickly: the device text and some hundred operations.
const QUICK_BYTES: usize = 26_000;

/// A compiled source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The image that the driver loads.
    pub image: Vec<u8>,
    /// The target of the code: `sm_90`, or `compute_90` for code that the driver translates.
    pub target: String,
    /// Whether it came from a file.
    pub was_cached: bool,
}

/// Compiles a source for a card, or takes it from `folder`.
pub(super) fn compile(
    compiler: &RuntimeCompiler,
    source: &str,
    capability: u32,
    folder: Option<&Path>,
) -> Result<Compiled, CudaError> {
    let (form, target) = target(&compiler.capabilities(), capability)?;
    let (major, minor) = compiler.version();
    let key = format!("NVRTC {major}.{minor}, {target}, lightfoot {}\n{source}\0", env!("CARGO_PKG_VERSION"));
    let name = format!("{:016x}.cuda", fnv(key.as_bytes()));
    let saved = folder.and_then(|folder| Folder::open(folder)?.read(&name));
    if let Some(image) = saved.and_then(|file| file.strip_prefix(key.as_bytes()).map(<[u8]>::to_vec)) {
        return Ok(Compiled { image, target, was_cached: true });
    }
    let options = [format!("--gpu-architecture={target}"), String::from("--std=c++14")];
    // What no program is special to is compiled once for all.
    let is_program = source.contains("lf_step(");
    let quick = (is_program && source.len() <= QUICK_BYTES).then_some(QUICK);
    let wishes: Vec<&str> = WISHES.iter().copied().chain(quick).collect();
    let image = compiler.compile(source, &options, &wishes, form)?;
    // A cache that cannot be written costs time, nothing else.
    if let Some(folder) = folder.and_then(Folder::make) {
        folder.write(&name, &[key.as_bytes(), &image]);
    }
    Ok(Compiled { image, target, was_cached: false })
}

/// The form and target of the code: the card's own code if the compiler knows the card; else code
/// for the newest older card, which the driver translates.
fn target(known: &[u32], card: u32) -> Result<(Form, String), CudaError> {
    match known.iter().copied().filter(|&one| one <= card).max() {
        Some(one) if one == card => Ok((Form::Cubin, format!("sm_{card}"))),
        Some(one) => Ok((Form::Ptx, format!("compute_{one}"))),
        None => Err(CudaError::Capability { card }),
    }
}

/// Fowler, Noll and Vo's hash: a name for a file, which is compared as a whole.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_gets_its_own_code_or_that_of_the_newest_before_it() {
        let known = [75, 80, 86, 89, 90, 100];
        assert_eq!(target(&known, 90), Ok((Form::Cubin, String::from("sm_90"))));
        assert_eq!(target(&known, 103), Ok((Form::Ptx, String::from("compute_100"))));
        assert_eq!(target(&known, 61), Err(CudaError::Capability { card: 61 }));
    }
}
