//! `/proc/PID/maps`: what is mapped where in the target.

use super::layout::Range;
use crate::profile::Module;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A file by its numbers in the system: a path may lead to another file tomorrow. All zero where no
/// file is mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileNumber {
    /// Major and minor number of the device, one behind the other.
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
    /// As bytes: names of files are no text.
    pub(crate) path: Vec<u8>,
}

/// Parses the whole file; lines that do not parse are left out.
pub(crate) fn mappings(pid: i32) -> Vec<Mapping> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(mapping).collect()
}

fn mapping(line: &[u8]) -> Option<Mapping> {
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

/// The ranges that are taken, for planning a layout.
pub(crate) fn ranges(pid: i32) -> Vec<Range> {
    let range = |m: Mapping| Range { start: m.start, end: m.end, stack: m.path == b"[stack]" };
    mappings(pid).into_iter().map(range).collect()
}

/// Files whose code is mapped now.
pub(crate) fn text(pid: i32) -> Vec<Module> {
    let module =
        |m: Mapping| Module { path: path(&m.path), start: m.start, end: m.end, file_offset: m.offset };
    mappings(pid).into_iter().filter(|m| trusted(m) && m.path.starts_with(b"/")).map(module).collect()
}

/// Whether a mapping is text that stays what it is while it is mapped.
pub(super) fn trusted(m: &Mapping) -> bool {
    let file =
        m.path.starts_with(b"/") && !m.path.starts_with(b"/memfd:") && !m.path.starts_with(b"/dev/zero");
    m.executable && !m.writable && (file && !m.path.ends_with(b" (deleted)") || m.path == b"[vdso]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_read_with_any_bytes_in_the_path() {
        let m = mapping(b"7f00-7f10 r-xp 00002000 fd:01 123      /tmp/a \xff").expect("parses");
        assert_eq!(
            (m.start, m.end, m.offset, m.path.as_slice()),
            (0x7f00, 0x7f10, 0x2000, &b"/tmp/a \xff"[..])
        );
        assert!(m.executable && !m.writable);
        assert_eq!(m.file, FileNumber { device: 0xfd_0000_0001, inode: 123 });
        assert!(trusted(&m));
        let m = mapping(b"7f00-7f10 rwxp 00000000 00:00 0").expect("parses");
        assert!(m.path.is_empty() && !trusted(&m));
        assert!(mapping(b"nonsense").is_none());
    }
}
