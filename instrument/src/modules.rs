//! Which files lie where in the target: trust for the translator, names for the report.
//!
//! `/proc/PID/maps` is read when an address is executed that is not known yet. Text (file-backed, executable, not writable) is
//! trusted while it stays mapped; everything else counts as generated code for good. Leaves out: symbols.

use crate::layout::Range;
use crate::probe::SharedProbes;
use crate::profile::Module;
use crate::translate::{Modules, Trust};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One line of `/proc/PID/maps`.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) executable: bool,
    pub(crate) writable: bool,
    pub(crate) offset: u64,
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
    fields.for_each(drop);
    let path = parts.next().unwrap_or_default().trim_ascii_start().to_vec();
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        executable: permissions.contains('x'),
        writable: permissions.contains('w'),
        offset,
        path,
    })
}

fn path(name: &[u8]) -> PathBuf {
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

/// The modules of one process image.
pub(crate) struct Maps {
    pub(crate) pid: i32,
    /// Current text: start, end, module.
    text: Vec<(u64, u64, u32)>,
    last: (u64, u64, u32),
    generated: HashSet<u64>,
    /// Where the program has changed the mapping of text.
    altered: Vec<(u64, u64)>,
    /// How often what is known of text has changed.
    pub(crate) changes: u64,
    /// Every module ever seen.
    pub(crate) modules: Vec<Module>,
    /// Patches modules before their code is read.
    pub(crate) probes: Option<SharedProbes>,
}

impl Maps {
    pub(crate) fn new(pid: i32) -> Maps {
        Maps {
            pid,
            text: Vec::new(),
            last: (0, 0, 0),
            generated: HashSet::new(),
            altered: Vec::new(),
            changes: 0,
            modules: Vec::new(),
            probes: None,
        }
    }

    /// The same text in a process that was forked off this one.
    pub(crate) fn of_child(&self, pid: i32) -> Maps {
        let generated = self.generated.clone();
        Maps {
            pid,
            text: self.text.clone(),
            last: (0, 0, 0),
            generated,
            altered: self.altered.clone(),
            changes: 0,
            modules: self.modules.clone(),
            probes: None,
        }
    }

    /// Whether a change of `[start, end)` concerns known text.
    pub(crate) fn concerns(&self, start: u64, end: u64) -> bool {
        self.text.iter().any(|t| start < t.1 && end > t.0)
    }

    /// Forgets text that may have changed.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        self.changes += 1;
        self.altered.push((start, end));
        self.text.retain(|t| start >= t.1 || end <= t.0);
        self.last = (0, 0, 0);
    }

    fn read(&mut self, pc: u64) -> Option<Trust> {
        let all = mappings(self.pid);
        let before = std::mem::take(&mut self.text);
        for m in all.iter().filter(|m| trusted(m)) {
            let module = self.module(&m.path, m);
            self.text.push((m.start, m.end, module));
        }
        self.changes += u64::from(before != self.text);
        if let Some(probes) = &self.probes {
            let mut probes = probes.borrow_mut();
            self.text.iter().for_each(|text| probes.module(self.pid, &self.modules[text.2 as usize]));
        }
        let own = all.iter().find(|m| pc >= m.start && pc < m.end && m.executable)?;
        if trusted(own) {
            return Some(Trust::Text);
        }
        let own = own.clone();
        let name: &[u8] = if own.path.is_empty() { b"[anonymous]" } else { &own.path };
        let module = self.module(name, &own);
        self.generated.insert(pc >> 12);
        self.last = (own.start, own.end, module);
        Some(Trust::Generated)
    }

    fn module(&mut self, name: &[u8], m: &Mapping) -> u32 {
        let known = self.modules.iter().position(|k| {
            k.start == m.start
                && k.end == m.end
                && k.file_offset == m.offset
                && k.path.as_os_str().as_bytes() == name
        });
        if let Some(n) = known {
            return n as u32;
        }
        self.modules.push(Module { path: path(name), start: m.start, end: m.end, file_offset: m.offset });
        self.modules.len() as u32 - 1
    }
}

fn trusted(m: &Mapping) -> bool {
    let file =
        m.path.starts_with(b"/") && !m.path.starts_with(b"/memfd:") && !m.path.starts_with(b"/dev/zero");
    m.executable && !m.writable && (file && !m.path.ends_with(b" (deleted)") || m.path == b"[vdso]")
}

impl Modules for Maps {
    fn at(&mut self, pc: u64) -> Option<(Trust, u32)> {
        if pc >= self.last.0 && pc < self.last.1 {
            let known = self.text.iter().any(|t| t.0 == self.last.0 && t.1 == self.last.1);
            if known {
                return Some((Trust::Text, self.last.2));
            }
        }
        if let Some(&t) = self.text.iter().find(|t| pc >= t.0 && pc < t.1) {
            self.last = t;
            return Some((Trust::Text, t.2));
        }
        match self.read(pc)? {
            Trust::Text => self.text.iter().find(|t| pc >= t.0 && pc < t.1).map(|t| (Trust::Text, t.2)),
            Trust::Generated => Some((Trust::Generated, self.last.2)),
        }
    }

    fn module(&self, number: u32) -> Option<&Module> {
        self.modules.get(number as usize)
    }

    fn in_file(&self, pc: u64, module: u32) -> Option<u8> {
        if self.altered.iter().any(|&(start, end)| pc >= start && pc < end) {
            return None;
        }
        // The program may have another root.
        let module = self.modules.get(module as usize)?;
        let path = Path::new("/proc").join(format!("{}/root", self.pid));
        let file = File::open(path.join(module.path.strip_prefix("/").ok()?)).ok()?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, module.file_offset + pc.checked_sub(module.start)?).ok()?;
        Some(byte[0])
    }
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
        assert!(trusted(&m));
        let m = mapping(b"7f00-7f10 rwxp 00000000 00:00 0").expect("parses");
        assert!(m.path.is_empty() && !trusted(&m));
        assert!(mapping(b"nonsense").is_none());
    }
}
