//! From CUDA C to something that a card loads, remembered in the process and, where a folder is given, in files.
//!
//! A file holds the key (compiler, target, source) in front of the image, so a file of another key under the same name is only a miss. Files appear whole: written beside
//! and renamed.

use super::compiler::{Compiler, Form};
use super::error::CudaError;
use std::path::{Path, PathBuf};

/// What the compiler made of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// What the driver loads.
    pub image: Vec<u8>,
    /// What it was compiled for: `sm_90`, or `compute_90` for code that the driver translates.
    pub target: String,
    /// Whether a file had it.
    pub was_cached: bool,
}

/// Compiles a source for a card, or takes it from `folder`.
pub(super) fn compile(
    compiler: &Compiler,
    source: &str,
    capability: u32,
    folder: Option<&Path>,
) -> Result<Compiled, CudaError> {
    let (form, target) = target(&compiler.capabilities(), capability)?;
    let (major, minor) = compiler.version();
    let key = format!("NVRTC {major}.{minor}, {target}, lightfoot {}\n{source}\0", env!("CARGO_PKG_VERSION"));
    let path = folder.map(|folder| folder.join(format!("{:016x}.cuda", fnv(key.as_bytes()))));
    let saved = path.as_ref().and_then(|path| std::fs::read(path).ok());
    if let Some(image) = saved.and_then(|file| file.strip_prefix(key.as_bytes()).map(<[u8]>::to_vec)) {
        return Ok(Compiled { image, target, was_cached: true });
    }
    let mut options = vec![format!("--gpu-architecture={target}"), String::from("--std=c++14")];
    if (major, minor) >= (12, 9) {
        // Without features that no kernel here uses: a tenth of the time. Older compilers may not know it.
        options.push(String::from("--minimal"));
    }
    let image = compiler.compile(source, &options, form)?;
    if let Some(path) = path {
        // A cache that cannot be written costs time, nothing else.
        let _ = save(&path, key.as_bytes(), &image);
    }
    Ok(Compiled { image, target, was_cached: false })
}

/// The card's own code where the compiler knows the card; else code for the newest card before it, which the driver translates.
fn target(known: &[u32], card: u32) -> Result<(Form, String), CudaError> {
    match known.iter().copied().filter(|&one| one <= card).max() {
        Some(one) if one == card => Ok((Form::Cubin, format!("sm_{card}"))),
        Some(one) => Ok((Form::Ptx, format!("compute_{one}"))),
        None => Err(CudaError::Capability { card }),
    }
}

fn save(path: &Path, key: &[u8], image: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let beside: PathBuf = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&beside, [key, image].concat())?;
    std::fs::rename(&beside, path)
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
