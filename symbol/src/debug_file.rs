//! Finds separate debug files, into which distributions move the symbols of stripped programs.
//!
//! The search goes by build id under `/usr/lib/debug/.build-id`, then by the name in
//! `.gnu_debuglink` beside the program, in `.debug` beside it, and under `/usr/lib/debug`. A file
//! that is found by name must have the same build id or, if there is none, the right checksum. No
//! server is queried. Source: the GDB manual, "Debugging Information in Separate Files".

use crate::elf::File;
use crate::sparse::Sparse;
use object::Object;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const ROOT: &str = "/usr/lib/debug";

/// The debug file of `file`, which was read from `path`, with its symbol table loaded.
pub(crate) fn find(file: &File<'_>, path: &Path) -> Option<Sparse> {
    let id = file.build_id().ok().flatten();
    if let Some(found) = id.and_then(|id| open(&by_build_id(id)?)) {
        return Some(found);
    }
    let (name, checksum) = file.gnu_debuglink().ok().flatten()?;
    let folder = path.parent()?;
    let name = OsStr::from_bytes(name);
    let under_root = Path::new(ROOT).join(folder.strip_prefix("/").unwrap_or(folder));
    [folder.to_owned(), folder.join(".debug"), under_root].iter().find_map(|folder| {
        let candidate = folder.join(name);
        let found = (candidate != path).then(|| open(&candidate)).flatten()?;
        belongs(&found, &candidate, id, checksum).then_some(found)
    })
}

fn open(path: &Path) -> Option<Sparse> {
    let mut found = Sparse::open(path)?;
    found.load(|name| [".symtab", ".strtab"].contains(&name) || name.starts_with(".note"));
    Some(found)
}

fn by_build_id(id: &[u8]) -> Option<PathBuf> {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_at_checked(2)?;
    Some(Path::new(ROOT).join(".build-id").join(first).join(format!("{rest}.debug")))
}

fn belongs(found: &Sparse, path: &Path, id: Option<&[u8]>, checksum: u32) -> bool {
    let file = found.parse();
    let theirs = file.as_ref().and_then(|file| file.build_id().ok().flatten());
    match (id, theirs) {
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => std::fs::read(path).is_ok_and(|bytes| crc32(&bytes) == checksum),
    }
}

/// The checksum that `.gnu_debuglink` holds: CRC-32 with polynomial 0x04c11db7, reflected.
fn crc32(bytes: &[u8]) -> u32 {
    let mut table = [0_u32; 256];
    for (index, entry) in table.iter_mut().enumerate() {
        let fold = |crc: u32| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
        *entry = (0..8).fold(index as u32, |crc, _| fold(crc));
    }
    !bytes.iter().fold(!0, |crc, byte| table[((crc ^ u32::from(*byte)) & 255) as usize] ^ (crc >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_build_id_names_a_path() {
        let path = by_build_id(&[0xab, 0xcd, 0xef]).unwrap();
        assert_eq!(path, Path::new("/usr/lib/debug/.build-id/ab/cdef.debug"));
    }
}
