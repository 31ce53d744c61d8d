//! The interpreter of a file: the one in a script's first line, or the one that an ELF program
//! names.
//!
//! If a program exists and its interpreter does not, the kernel answers "no such file". To explain
//! that error, this module reads the interpreter's name as the kernel does: from the first 256
//! bytes of a script, or from the program headers of an ELF file.

use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The most bytes of a script's first line that the kernel reads.
const LINE_BYTES: usize = 256;
/// The most bytes of a path.
const PATH_BYTES: u64 = 4096;
const PT_INTERP: u32 = 3;

/// The program that a script's first line names; `None` if the file has no such line, or the line
/// no name.
pub(crate) fn of_script(file: &File) -> Option<PathBuf> {
    let mut head = [0u8; LINE_BYTES];
    let got = read_up_to(file, &mut head, 0);
    let line = head[..got].strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n' || byte == 0).next()?;
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let name = line.split(is_space).find(|word| !word.is_empty())?;
    Some(path(name))
}

/// The interpreter that a 64-bit ELF program names; `None` if it names none.
pub(crate) fn of_elf(file: &File) -> Option<PathBuf> {
    let mut header = [0u8; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    let (at, size) = (word(&header, 32), usize::from(half(&header, 54)));
    for index in 0..u64::from(half(&header, 56)) {
        let mut entry = [0u8; 56];
        if size < entry.len() {
            return None;
        }
        file.read_exact_at(&mut entry, at.checked_add(index * size as u64)?).ok()?;
        if entry[..4] == PT_INTERP.to_le_bytes() {
            let mut name = vec![0u8; word(&entry, 32).min(PATH_BYTES) as usize];
            file.read_exact_at(&mut name, word(&entry, 8)).ok()?;
            return Some(path(name.split(|&byte| byte == 0).next()?));
        }
    }
    None
}

fn path(name: &[u8]) -> PathBuf {
    std::ffi::OsString::from_vec(name.to_vec()).into()
}

fn read_up_to(file: &File, into: &mut [u8], from: u64) -> usize {
    let mut got = 0;
    while got < into.len() {
        match file.read_at(&mut into[got..], from + got as u64) {
            Ok(0) | Err(_) => break,
            Ok(more) => got += more,
        }
    }
    got
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::Path;

    fn script(text: &[u8]) -> Option<PathBuf> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        of_script(&file)
    }

    #[test]
    fn a_line_names_one_program() {
        assert_eq!(script(b"#!/bin/sh -e\necho"), Some("/bin/sh".into()));
        assert_eq!(script(b"#! \t/usr/bin/env\tperl -w\n"), Some("/usr/bin/env".into()));
        assert_eq!(script(b"#!/bin/sh\r\n"), Some("/bin/sh\r".into()));
        assert_eq!(script(b"#!/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(script(b"#!  \n/bin/sh"), None);
        assert_eq!(script(b"echo #!/bin/sh"), None);
    }

    #[test]
    fn this_program_names_its_interpreter_as_it_was_linked() {
        let file = File::open("/proc/self/exe").unwrap();
        let named = of_elf(&file).expect("tests are linked dynamically");
        assert!(named.is_absolute() && Path::new(&named).exists(), "{named:?}");
        assert_eq!(of_elf(&tempfile::tempfile().unwrap()), None);
    }
}
