//! One process image with probes: its modules, and the hooks that send requests.

use super::birth::{self, births, Births, CounterBlocks, Library};
use super::caller::MemoryMark;
use super::install::Probes;
use super::mailbox::{request_code, request_code_if, HostRequest, MailboxAddress};
use super::patch::{open, Increment};
use super::plan::ProbeRefusal;
use super::prologue::{Prologue, READ_BYTES};
use crate::error::Error;
use crate::profile::Module;
use crate::target::mappings;
use crate::target::memory;

/// The dynamic linker calls this function when it has mapped or unmapped a library.
const ANNOUNCEMENT: &str = "_dl_debug_state";
/// Functions of C libraries that execute another program.
const EXECS: [&str; 3] = ["execve", "execveat", "fexecve"];
/// Functions that can make any system call or change the base of `gs`, with the first arguments for
/// which they make threads or change the base.
const OPEN_CALLS: [(&str, &[u32]); 2] =
    [("syscall", &birth::SUSPECT_CALLS), ("arch_prctl", &birth::SUSPECT_BASES)];
/// Functions that make threads and children. Of each row, the first one that exists is used.
const MAKERS: [&[&str]; 2] = [&["clone"], &["_Fork", "fork"]];
/// The beginnings of names of files of C libraries, which contain the functions above.
const C_LIBRARIES: [&str; 5] = ["libc.so", "libc-", "ld-linux", "ld-musl", "libpthread"];
/// A symbol that shows that a module contains a C library.
const CONTAINED: &str = "__libc_start_main";

/// The probes of an image, and its mailbox.
pub(super) struct NativeImage {
    pub(super) probes: Probes,
    address: MailboxAddress,
    blocks: Option<CounterBlocks>,
    /// Why increments are locked, if they are.
    pub(super) locked: Option<String>,
    /// Modules that were searched for functions to hook.
    hooked: Vec<Module>,
}

impl NativeImage {
    /// Probes a process that stands behind its exec.
    pub(super) fn new(mut probes: Probes, pid: i32, number: u32) -> Result<NativeImage, Error> {
        let (mailbox, blocks) = probes.install(pid)?;
        let address = MailboxAddress { mailbox, image: number };
        let locked = blocks.is_none().then(|| "there is no room for a block of counters per thread".into());
        let mut image = NativeImage { probes, address, blocks, locked, hooked: Vec::new() };
        image.look(pid);
        Ok(image)
    }

    /// The mark by which processes of this image are recognised.
    pub(super) fn mark(&self) -> MemoryMark {
        MemoryMark::new(&self.probes.shared, self.address.mailbox)
    }

    /// Whether code at this address is a trampoline of this image.
    pub(super) fn is_trampoline(&self, address: u64) -> bool {
        self.probes.patcher.has_trampoline(address)
    }

    /// Address of the mailbox in the program.
    pub(super) fn mailbox(&self) -> u64 {
        self.address.mailbox
    }

    /// Patches all modules that are mapped and not patched yet.
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

    /// Makes all increments of the process locked ones of the common block, because of `why`.
    pub(super) fn lock(&mut self, pid: i32, why: String) {
        self.probes.patcher.lock(pid);
        self.locked.get_or_insert(why);
    }

    /// Hooks the module's functions that load libraries, execute programs or make threads.
    fn hook(&mut self, pid: i32, module: &Module) {
        if let Some(entry) = self.probes.patcher.entry(module, ANNOUNCEMENT) {
            // If the linker cannot be hooked, libraries that are loaded later are not probed. The
            // states of their counters say so.
            let _ = self.redirect(pid, entry, &request_code(HostRequest::Mapped, self.address));
        }
        for entry in self.entries(module, &EXECS) {
            // If an exec cannot be hooked, the next program has no probes.
            let _ = self.redirect(pid, entry, &request_code(HostRequest::Exec, self.address));
        }
        if self.probes.patcher.increment == Increment::Own && self.follow_births(pid, module).is_none() {
            let name = module.path.display();
            self.lock(
                pid,
                format!(
                    "{name} may make threads or set the base of gs in a way that lightfoot cannot detect"
                ),
            );
        }
    }

    /// Gives each thread that the module makes a block of its own; `None` if that cannot be
    /// guaranteed.
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
                self.redirect(pid, entry, &request_code_if(numbers, HostRequest::Lock, self.address)).ok()?;
            }
        }
        Some(())
    }

    /// The entries of the module's functions with these names, without duplicates.
    fn entries(&mut self, module: &Module, names: &[&str]) -> Vec<u64> {
        let mut found = Vec::new();
        for name in names {
            let entry = self.probes.patcher.entry(module, name);
            found.extend(entry.filter(|entry| !found.contains(entry)));
        }
        found
    }

    /// Patches the function at `entry`, so that it executes the code `before` first.
    fn redirect(&mut self, pid: i32, entry: u64, before: &[u8]) -> Result<(), ProbeRefusal> {
        let mut code = [0; READ_BYTES];
        memory::read_target(pid, entry, &mut code);
        let prologue = Prologue::read(&code, entry, READ_BYTES as u64)?;
        let memory = open(pid).map_err(|error| ProbeRefusal::NotWritable(error.to_string()))?;
        self.probes.patcher.redirect(&memory, entry, before, &prologue).map(drop)
    }
}

/// The warning about a program that was executed and could not be probed.
pub(super) fn unprobed(pid: i32, error: &Error) -> String {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    format!("{} was executed and is not probed: {error}", path.display())
}
