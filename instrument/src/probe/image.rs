//! One process image with probes: its modules, and the hooks that announce what matters to it.

use super::birth::{self, births, Births, CounterBlocks, Library};
use super::caller::MemoryMark;
use super::install::Probes;
use super::mailbox::{knock, knock_if, Knock, MailboxAddress};
use super::patch::{open, Increment};
use super::plan::ProbeRefusal;
use super::prologue::{Prologue, READ_BYTES};
use crate::error::Error;
use crate::profile::Module;
use crate::target::mappings;
use crate::target::memory;

/// Where the dynamic linker says that it has mapped or unmapped something.
const ANNOUNCEMENT: &str = "_dl_debug_state";
/// What replaces the process's image, in every C library.
const EXECS: [&str; 3] = ["execve", "execveat", "fexecve"];
/// What makes any system call, and what changes the base of `gs`; the first arguments that matter.
const OPEN_CALLS: [(&str, &[u32]); 2] =
    [("syscall", &birth::SUSPECT_CALLS), ("arch_prctl", &birth::SUSPECT_BASES)];
/// Where threads and children are made; of each row, the first that exists.
const MAKERS: [&[&str]; 2] = [&["clone"], &["_Fork", "fork"]];
/// Libraries whose system calls go through the functions above.
const C_LIBRARIES: [&str; 5] = ["libc.so", "libc-", "ld-linux", "ld-musl", "libpthread"];
/// What a program has that contains its C library.
const CONTAINED: &str = "__libc_start_main";

/// Probes of an image, and what the mailbox needs.
pub(super) struct NativeImage {
    pub(super) probes: Probes,
    address: MailboxAddress,
    blocks: Option<CounterBlocks>,
    /// Why increments are locked, if they are.
    pub(super) locked: Option<String>,
    /// Modules that were looked at for hooks.
    hooked: Vec<Module>,
}

impl NativeImage {
    /// Of the process that stands behind its exec.
    pub(super) fn new(mut probes: Probes, pid: i32, number: u32) -> Result<NativeImage, Error> {
        let (mailbox, blocks) = probes.install(pid)?;
        let address = MailboxAddress { mailbox, image: number };
        let locked = blocks.is_none().then(|| "there is no room for a block of counters per thread".into());
        let mut image = NativeImage { probes, address, blocks, locked, hooked: Vec::new() };
        image.look(pid);
        Ok(image)
    }

    /// What tells processes that run this image.
    pub(super) fn mark(&self) -> MemoryMark {
        MemoryMark::new(&self.probes.shared, self.address.mailbox)
    }

    /// Whether code at this address is a trampoline of this image.
    pub(super) fn is_trampoline(&self, address: u64) -> bool {
        self.probes.patcher.has_trampoline(address)
    }

    /// Where the mailbox lies in the program.
    pub(super) fn mailbox(&self) -> u64 {
        self.address.mailbox
    }

    /// Patches what is mapped and not patched yet.
    pub(super) fn look(&mut self, pid: i32) {
        let modules = mappings::text(pid);
        self.hooked.retain(|known| modules.contains(known));
        for module in &modules {
            if !self.hooked.contains(module) {
                self.hook(pid, module);
                self.hooked.push(module.clone());
            }
            self.probes.module(pid, module);
        }
    }

    /// Increments of the process are locked from now on.
    pub(super) fn lock(&mut self, pid: i32, why: String) {
        self.probes.patcher.lock(pid);
        self.locked.get_or_insert(why);
    }

    /// Redirects what announces libraries, threads and programs.
    fn hook(&mut self, pid: i32, module: &Module) {
        if let Some(entry) = self.probes.patcher.entry(module, ANNOUNCEMENT) {
            // A linker that cannot be hooked announces nothing: later libraries stay unprobed, and
            // their counters say so.
            let _ = self.redirect(pid, entry, &knock(Knock::Mapped, self.address));
        }
        for entry in self.entries(module, &EXECS) {
            // Programs too.
            let _ = self.redirect(pid, entry, &knock(Knock::Exec, self.address));
        }
        if self.probes.patcher.increment == Increment::Own && self.follow_births(pid, module).is_none() {
            let name = module.path.display();
            self.lock(
                pid,
                format!("{name} may make threads, or set the register gs, where it cannot be seen"),
            );
        }
    }

    /// Sees to it that each thread which the module makes has a block of its own; `None` where that
    /// cannot be.
    fn follow_births(&mut self, pid: i32, module: &Module) -> Option<()> {
        let blocks = self.blocks?;
        let name = module.path.file_name().unwrap_or_default().to_string_lossy();
        let is_c_library = C_LIBRARIES.iter().any(|library| name.starts_with(library))
            || self.probes.patcher.entry(module, CONTAINED).is_some();
        let library = if is_c_library { Library::C } else { Library::Other };
        let mut code = vec![0; (module.end - module.start) as usize];
        let got = memory::read_target(pid, module.start, &mut code);
        code.truncate(got);
        let makers = MAKERS.map(|names| self.entries(module, names).first().copied());
        let makers: Vec<u64> = makers.into_iter().flatten().collect();
        let facts = self.probes.patcher.facts(module);
        let starts = &facts.known.starts;
        let found = facts.births.get_or_init(|| births(&code, module.start, starts, library, &makers));
        let Births::At(sites) = found else { return None };
        let born = birth::code(&blocks, self.address);
        for &site in sites {
            let prologue = birth::site(&code, module.start, starts, site)?;
            let memory = open(pid).ok()?;
            self.probes.patcher.redirect(&memory, site, &born, &prologue).ok()?;
        }
        for (name, numbers) in OPEN_CALLS {
            for entry in self.entries(module, &[name]) {
                self.redirect(pid, entry, &knock_if(numbers, Knock::Lock, self.address)).ok()?;
            }
        }
        Some(())
    }

    /// Where the module has functions of these names, each once.
    fn entries(&mut self, module: &Module, names: &[&str]) -> Vec<u64> {
        let mut found = Vec::new();
        for name in names {
            let entry = self.probes.patcher.entry(module, name);
            found.extend(entry.filter(|entry| !found.contains(entry)));
        }
        found
    }

    fn redirect(&mut self, pid: i32, entry: u64, before: &[u8]) -> Result<(), ProbeRefusal> {
        let mut code = [0; READ_BYTES];
        memory::read_target(pid, entry, &mut code);
        let prologue = Prologue::read(&code, entry, READ_BYTES as u64)?;
        let memory = open(pid).map_err(|error| ProbeRefusal::NotWritable(error.to_string()))?;
        self.probes.patcher.redirect(&memory, entry, before, &prologue).map(drop)
    }
}

/// The sentence for a program that was executed and could not be probed.
pub(super) fn unprobed(pid: i32, error: &Error) -> String {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    format!("{} was executed and is not probed: {error}", path.display())
}
