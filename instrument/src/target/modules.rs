//! The modules of a process: they say which code the translator may trust, and name code in
//! reports.
//!
//! `/proc/PID/maps` is read when an unknown address is executed. Text (file-backed, executable, not
//! writable) is trusted as long as it stays mapped. All other code counts as generated code for the
//! whole run. Leaves out: symbols.

use super::mappings::{mappings, path, trusted, FileNumber, Mapping};
use super::trust::{Modules, Trust};
use crate::profile::Module;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

/// Sees modules before their code is read, so that probes can patch them.
pub(crate) trait TextWatcher {
    /// `module` is mapped as text of process `pid`.
    fn text_mapped(&mut self, pid: i32, module: &Module);
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
    /// The file of each module.
    pub(crate) files: Vec<FileNumber>,
    /// Is shown text before its code is read.
    pub(crate) watcher: Option<Rc<RefCell<dyn TextWatcher>>>,
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
            files: Vec::new(),
            watcher: None,
        }
    }

    /// The modules of a process that was forked off this one: its text is this one's.
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
            files: self.files.clone(),
            watcher: None,
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
        if let Some(watcher) = &self.watcher {
            let mut watcher = watcher.borrow_mut();
            self.text.iter().for_each(|text| watcher.text_mapped(self.pid, &self.modules[text.2 as usize]));
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
        let known = self.modules.iter().zip(&self.files).position(|(k, file)| {
            k.start == m.start
                && k.end == m.end
                && k.file_offset == m.offset
                && *file == m.file
                && k.path.as_os_str().as_bytes() == name
        });
        if let Some(n) = known {
            return n as u32;
        }
        self.modules.push(Module { path: path(name), start: m.start, end: m.end, file_offset: m.offset });
        self.files.push(m.file);
        self.modules.len() as u32 - 1
    }

    /// The numbers of the modules that are text where the program has them now.
    pub(crate) fn current(&self) -> impl Iterator<Item = u32> + '_ {
        self.text.iter().map(|text| text.2)
    }
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

    fn is_text(&self, number: u32) -> bool {
        self.current().any(|current| current == number)
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
impl Maps {
    /// As if the file that holds `pc` held the page of `pc` only.
    pub(crate) fn cut_to_page(&mut self, pc: u64) {
        let text = self.text.iter_mut().find(|text| (text.0..text.1).contains(&pc)).expect("text");
        (text.0, text.1) = (pc & !0xfff, (pc & !0xfff) + 0x1000);
        let module = &mut self.modules[text.2 as usize];
        module.file_offset += text.0 - module.start;
        (module.start, module.end) = (text.0, text.1);
        self.last = (0, 0, 0);
    }
}
