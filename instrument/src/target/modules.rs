//! The modules of a process: they decide which code the translator may trust, and they name code in
//! reports.
//!
//! When an address without a module is executed, the host reads `/proc/PID/maps`. Text
//! (file-backed, executable, not writable) is trusted as long as it stays mapped. All other code
//! counts as generated code for the whole run. **Leaves out** symbols.

use super::mappings::{mappings, path, trusted, FileNumber, Mapping};
use super::trust::{Modules, Trust};
use crate::profile::Module;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

/// Receives modules before their code is read, so that probes can patch them.
pub(crate) trait TextWatcher {
    /// Called when `module` is mapped as text of process `pid`.
    fn text_mapped(&mut self, pid: i32, module: &Module);
}

/// The modules of one process image.
pub(crate) struct Maps {
    pub(crate) pid: i32,
    /// Current text: start, end, module.
    text: Vec<(u64, u64, u32)>,
    /// The range and module of the last query.
    last: (u64, u64, u32),
    /// Executable ranges whose code can change, as last read: start, end, module.
    changeable: Vec<(u64, u64, u32)>,
    /// Ranges in which the program has changed mappings.
    altered: Vec<(u64, u64)>,
    /// The number of changes of `text`.
    pub(crate) changes: u64,
    /// Every module ever seen.
    pub(crate) modules: Vec<Module>,
    /// The file of each module.
    pub(crate) files: Vec<FileNumber>,
    /// Receives text before its code is read, if there is a watcher.
    pub(crate) watcher: Option<Rc<RefCell<dyn TextWatcher>>>,
}

impl Maps {
    pub(crate) fn new(pid: i32) -> Maps {
        Maps {
            pid,
            text: Vec::new(),
            last: (0, 0, 0),
            changeable: Vec::new(),
            altered: Vec::new(),
            changes: 0,
            modules: Vec::new(),
            files: Vec::new(),
            watcher: None,
        }
    }

    /// The modules of a process that this one has forked: it has the text of this one.
    pub(crate) fn of_child(&self, pid: i32) -> Maps {
        Maps {
            pid,
            text: self.text.clone(),
            last: (0, 0, 0),
            changeable: self.changeable.clone(),
            altered: self.altered.clone(),
            changes: 0,
            modules: self.modules.clone(),
            files: self.files.clone(),
            watcher: None,
        }
    }

    /// Whether a change of mappings in `[start, end)` affects known text.
    pub(crate) fn concerns(&self, start: u64, end: u64) -> bool {
        self.text.iter().any(|text| start < text.1 && end > text.0)
    }

    /// Forgets the changeable code that touches `[start, end)`: its mapping changes.
    pub(crate) fn forget_changeable(&mut self, start: u64, end: u64) {
        self.changeable.retain(|range| start >= range.1 || end <= range.0);
    }

    /// Forgets the text in `[start, end)`, which may have changed.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        self.changes += 1;
        self.altered.push((start, end));
        self.text.retain(|text| start >= text.1 || end <= text.0);
        self.last = (0, 0, 0);
    }

    /// Reads the mappings again; returns whether the code at `pc` can change.
    fn read(&mut self, pc: u64) -> Option<Trust> {
        let all = mappings(self.pid);
        let before = std::mem::take(&mut self.text);
        for mapping in all.iter().filter(|mapping| trusted(mapping)) {
            let module = self.module(&mapping.path, mapping);
            self.text.push((mapping.start, mapping.end, module));
        }
        self.changes += u64::from(before != self.text);
        if let Some(watcher) = &self.watcher {
            let mut watcher = watcher.borrow_mut();
            self.text.iter().for_each(|text| watcher.text_mapped(self.pid, &self.modules[text.2 as usize]));
        }
        let own = all.iter().find(|mapping| pc >= mapping.start && pc < mapping.end && mapping.executable)?;
        if trusted(own) {
            return Some(Trust::Text);
        }
        let own = own.clone();
        let name: &[u8] = if own.path.is_empty() { b"[anonymous]" } else { &own.path };
        let module = self.module(name, &own);
        self.last = (own.start, own.end, module);
        self.changeable.push(self.last);
        Some(Trust::Generated)
    }

    /// The number of the module of a mapping; a new module gets a new number.
    fn module(&mut self, name: &[u8], mapping: &Mapping) -> u32 {
        let known = self.modules.iter().zip(&self.files).position(|(module, file)| {
            module.start == mapping.start
                && module.end == mapping.end
                && module.file_offset == mapping.offset
                && *file == mapping.file
                && module.path.as_os_str().as_bytes() == name
        });
        if let Some(number) = known {
            return number as u32;
        }
        self.modules.push(Module {
            path: path(name),
            start: mapping.start,
            end: mapping.end,
            file_offset: mapping.offset,
        });
        self.files.push(mapping.file);
        self.modules.len() as u32 - 1
    }

    /// The numbers of the modules that are mapped as text now.
    pub(crate) fn current(&self) -> impl Iterator<Item = u32> + '_ {
        self.text.iter().map(|text| text.2)
    }
}

impl Modules for Maps {
    fn at(&mut self, pc: u64) -> Option<(Trust, u32)> {
        if pc >= self.last.0 && pc < self.last.1 {
            let known = self.text.iter().any(|text| text.0 == self.last.0 && text.1 == self.last.1);
            if known {
                return Some((Trust::Text, self.last.2));
            }
        }
        if let Some(&text) = self.text.iter().find(|text| pc >= text.0 && pc < text.1) {
            self.last = text;
            return Some((Trust::Text, text.2));
        }
        // A runtime that generates code has hundreds of mappings. They are read again only after a
        // change.
        if let Some(&range) = self.changeable.iter().find(|range| pc >= range.0 && pc < range.1) {
            return Some((Trust::Generated, range.2));
        }
        match self.read(pc)? {
            Trust::Text => {
                self.text.iter().find(|text| pc >= text.0 && pc < text.1).map(|text| (Trust::Text, text.2))
            }
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
    /// Shrinks the module of `pc` to the page of `pc`, as if its file had no other page.
    pub(crate) fn cut_to_page(&mut self, pc: u64) {
        let text = self.text.iter_mut().find(|text| (text.0..text.1).contains(&pc)).expect("text");
        (text.0, text.1) = (pc & !0xfff, (pc & !0xfff) + 0x1000);
        let module = &mut self.modules[text.2 as usize];
        module.file_offset += text.0 - module.start;
        (module.start, module.end) = (text.0, text.1);
        self.last = (0, 0, 0);
    }
}
