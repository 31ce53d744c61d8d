//! `/proc/PID/maps`: the mappings of the target.

use super::layout::Range;
use crate::profile::Module;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The numbers by which the system identifies a file; a path may lead to another file later. All
/// are zero if no file is mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileNumber {
    /// The major number of the device in the upper half, the minor number in the lower half.
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// One line of `/proc/PID/maps`.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) executable: bool,
    pub(crate) writable: bool,
    pub(crate) offset: u64,
    pub(crate) file: FileNumber,
    /// The path, as bytes, because names of files need not be valid text.
    pub(crate) path: Vec<u8>,
}

/// The mappings of process `pid`. Lines that cannot be parsed are left out.
pub(crate) fn mappings(pid: i32) -> Vec<Mapping> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut parts = line.splitn(6, |byte| *byte == b' ');
    let mut fields = parts.by_ref().take(5).map(|field| std::str::from_utf8(field).ok());
    let (start, end) = fields.next()??.split_once('-')?;
    let permissions = fields.next()??;
    let offset = u64::from_str_radix(fields.next()??, 16).ok()?;
    let (major, minor) = fields.next()??.split_once(':')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let device = number(major)? << 32 | number(minor)?;
    let inode = fields.next()??.parse().ok()?;
    fields.for_each(drop);
    let path = parts.next().unwrap_or_default().trim_ascii_start().to_vec();
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        executable: permissions.contains('x'),
        writable: permissions.contains('w'),
        offset,
        file: FileNumber { device, inode },
        path,
    })
}

pub(super) fn path(name: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(name))
}

/// The mapped ranges of process `pid`, for planning a layout.
pub(crate) fn ranges(pid: i32) -> Vec<Range> {
    let range = |mapping: Mapping| Range {
        start: mapping.start,
        end: mapping.end,
        stack: mapping.path == b"[stack]",
    };
    mappings(pid).into_iter().map(range).collect()
}

/// The files whose code process `pid` has mapped.
pub(crate) fn text(pid: i32) -> Vec<Module> {
    let module = |mapping: Mapping| Module {
        path: path(&mapping.path),
        start: mapping.start,
        end: mapping.end,
        file_offset: mapping.offset,
        process: None,
    };
    mappings(pid)
        .into_iter()
        .filter(|mapping| trusted(mapping) && mapping.path.starts_with(b"/"))
        .map(module)
        .collect()
}

/// Whether a mapping is text that cannot change while it is mapped.
pub(super) fn trusted(mapping: &Mapping) -> bool {
    let file = mapping.path.starts_with(b"/")
        && !mapping.path.starts_with(b"/memfd:")
        && !mapping.path.starts_with(b"/dev/zero");
    mapping.executable
        && !mapping.writable
        && (file && !mapping.path.ends_with(b" (deleted)") || mapping.path == b"[vdso]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_read_with_any_bytes_in_the_path() {
        let mapping = parse_line(b"7f00-7f10 r-xp 00002000 fd:01 123      /tmp/a \xff").expect("parses");
        assert_eq!(
            (mapping.start, mapping.end, mapping.offset, mapping.path.as_slice()),
            (0x7f00, 0x7f10, 0x2000, &b"/tmp/a \xff"[..])
        );
        assert!(mapping.executable && !mapping.writable);
        assert_eq!(mapping.file, FileNumber { device: 0xfd_0000_0001, inode: 123 });
        assert!(trusted(&mapping));
        let mapping = parse_line(b"7f00-7f10 rwxp 00000000 00:00 0").expect("parses");
        assert!(mapping.path.is_empty() && !trusted(&mapping));
        assert!(parse_line(b"nonsense").is_none());
    }
}
