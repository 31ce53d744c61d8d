//! The kept translations of one image: restores them when the image begins, and decides about the
//! file when the image ends.
//!
//! | when the image ends | the file |
//! |---|---|
//! | the program ended by a fault after it used the file | is removed, with a warning |
//! | too few of its fragments can be used again | is removed |
//! | enough fragments are new, or a part of the file was given up | is written |
//! | none of these | stays as it is |
//!
//! A fault may be the program's own, but it may also come from the file, and a file costs little to
//! make again. A program that faulted leaves no file, so a program that always faults never runs
//! kept code. Signals by which users and systems end programs say nothing about the code.
//!
//! Without a folder there is no file, and images rest until the run ends. An image that is taken
//! over as it is (`image::resting`) goes on with the file of the image before.

use super::snapshot::{encode, Snapshot};
use super::{parts, Store};
use crate::call::CallRecords;
use crate::code::kept_table::SharedBytes;
use crate::target::credentials::Credentials;
use crate::target::layout::Layout;
use crate::target::memory;
use crate::target::modules::Maps;
use crate::translate::Translator;
use event::Stream;
use iced_x86::Code;
use std::path::PathBuf;
use std::rc::Rc;

/// The fewest new fragments for which an existing file is written again.
const NEW_FRAGMENTS_MIN: usize = 32;
/// Beyond that minimum, one new fragment is needed for each `NEW_SHARE` fragments of the file.
const NEW_SHARE: usize = 16;
/// A file is written only if one in this many fragments, or more, can be used again: numbers stay,
/// so fragments that cannot be used are written too.
const USED_SHARE: usize = 4;

/// Where a run keeps translations.
#[derive(Clone, Debug)]
pub(crate) enum KeptIn {
    /// In files of this folder, from run to run.
    Folder(PathBuf),
    /// Nowhere but in images that rest until the run ends.
    Memory,
}

/// The place of one image's translations.
#[derive(Debug)]
enum Place {
    File(Store),
    Memory,
}

impl Place {
    /// Calls `restore` with the translations that are there; returns whether there were some.
    fn read(&mut self, restore: impl FnOnce(SharedBytes)) -> bool {
        match self {
            Place::File(store) => store.read().map(|body| restore(Rc::new(body))).is_some(),
            Place::Memory => false,
        }
    }

    fn write(&mut self, body: Vec<u8>, fragments: u64) {
        match self {
            Place::File(store) => store.write(&body, fragments),
            Place::Memory => {}
        }
    }

    /// Removes what was read. Returns the path of a file that was removed.
    fn give_up(&self) -> Option<PathBuf> {
        match self {
            Place::File(store) => store.give_up().then(|| store.path()),
            Place::Memory => None,
        }
    }
}

/// The kept translations of one image.
#[derive(Debug)]
pub(crate) struct KeptTranslations {
    place: Place,
    /// Everything that decides whether translations fit a program.
    identity: Vec<u8>,
    /// The number of fragments that the place holds, whether they can be used or not.
    stored: usize,
    /// Whether the file's fragments were restored.
    taken_over: bool,
    /// Whether the program may have changed its credentials.
    credentials_changed: bool,
    /// Whether nothing spoke against keeping the translations when the image ended.
    sound: bool,
    /// The signal that ended a process of the image, if it may be a fault of the code.
    signal: Option<i32>,
}

/// The properties of an image that decide which file belongs to it.
pub(crate) struct Origin<'o> {
    pub(crate) pid: i32,
    /// Address of the program headers.
    pub(crate) headers: u64,
    pub(crate) stream: &'o Stream,
    pub(crate) layout: &'o Layout,
    /// The setting of the run's marker, if it has one: exits to marks are not linked.
    pub(crate) marks: Option<String>,
    /// The setting of the run's virtual machine, if it has one: instructions that the host answers
    /// have other code.
    pub(crate) answered: Option<String>,
    /// Whether code records calls.
    pub(crate) calls: CallRecords,
}

impl KeptTranslations {
    /// The place in `kept_in` of a program's translations; `None` if the program has other
    /// credentials than the host, or will have other addresses in its next run.
    pub(crate) fn of(kept_in: &KeptIn, origin: &Origin<'_>) -> Option<KeptTranslations> {
        let credentials = Credentials::of(origin.pid)?;
        if Credentials::own()? != credentials || !has_fixed_addresses(origin.pid) {
            return None;
        }
        let mut identity = super::generator()?;
        // The program's first page holds its headers, and with them its build-id.
        let mut page = [0u8; 4096];
        let headers = origin.headers & !0xfff;
        if memory::read_target(origin.pid, headers, &mut page) != page.len() {
            return None;
        }
        identity.extend(page);
        identity.extend(format!("{headers:x} {:?} {:?}", origin.stream, origin.layout).bytes());
        if let Some(marks) = &origin.marks {
            identity.extend(format!(" marks {marks}").bytes());
        }
        if let Some(answered) = &origin.answered {
            identity.extend(format!(" answered {answered}").bytes());
        }
        if origin.calls != CallRecords::None {
            identity.extend(format!(" calls {:?}", origin.calls).bytes());
        }
        let place = match kept_in {
            KeptIn::Folder(folder) => Place::File(Store::new(folder, &identity)),
            KeptIn::Memory => Place::Memory,
        };
        Some(KeptTranslations {
            place,
            identity,
            stored: 0,
            taken_over: false,
            credentials_changed: false,
            sound: false,
            signal: None,
        })
    }

    /// Everything that decides whether translations fit a program.
    pub(crate) fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// Continues the work of `former`, whose image this one takes over as it is.
    pub(crate) fn continues(&mut self, former: KeptTranslations) {
        (self.place, self.stored, self.taken_over) = (former.place, former.stored, former.stored > 0);
    }

    /// Whether nothing spoke against keeping the translations when the image ended.
    pub(crate) fn is_sound(&self) -> bool {
        self.sound
    }

    /// Restores the translations of a former run in an image that has translated nothing yet.
    pub(crate) fn restore(&mut self, translator: &mut Translator, maps: &mut Maps) {
        let mut taken_over = false;
        let found = self.place.read(|body| {
            let bytes = (*body).as_ref();
            let Some(snapshot) = Snapshot::decode(bytes, &translator.cache) else { return };
            snapshot.restore(translator, maps, &body);
            taken_over = true;
        });
        self.taken_over = taken_over;
        self.stored = translator.unverified.fragments;
        if found && !taken_over {
            self.place.give_up();
        }
    }

    /// Notes that the program makes a system call that may change its credentials.
    pub(crate) fn credentials_change(&mut self) {
        self.credentials_changed = true;
    }

    /// Notes the signal that ended a process of the image.
    pub(crate) fn ended_by(&mut self, signal: i32) {
        if is_fault(signal) {
            self.signal.get_or_insert(signal);
        }
    }

    /// Writes the translations of an ended image, leaves the file as it is, or removes it. Returns
    /// a warning for the user if the file is removed because of a fault.
    pub(crate) fn finish(&mut self, translator: &Translator, maps: &Maps) -> Option<String> {
        // The fault may come from the file, so the file is removed.
        if let Some(signal) = self.signal {
            return self.faulted(signal);
        }
        // The host does not see system calls by `int 0x80`, which may have changed the credentials.
        // No program is kept that has one, so restored instructions are none.
        let interrupts = |code: u16| code == Code::Int_imm8 as u16;
        let mut new = translator.instructions_since(translator.unverified.fragments);
        let unseen = new.any(|instruction| interrupts(instruction.code));
        if self.credentials_changed || unseen || !translator.may_be_kept() {
            return None;
        }
        self.sound = true;
        if matches!(self.place, Place::Memory) {
            return None;
        }
        let before = self.stored;
        // Writing pays if enough fragments are new, or if a part of the file was given up.
        let enough = if before == 0 { 1 } else { NEW_FRAGMENTS_MIN + before / NEW_SHARE };
        let fragments = translator.cache.fragments.len();
        // Code that a program has generated itself is never kept.
        let of_files = |&fragment_index: &usize| {
            let fragment = &translator.cache.fragments[fragment_index];
            let module = translator.blocks[fragment.first_block as usize].module;
            maps.modules[module as usize].has_file()
        };
        let new = (before..fragments).filter(of_files).take(enough).count();
        let outdated = translator.unverified.gave_up || !parts::moved(translator, maps).is_empty();
        if new < enough && !outdated {
            return None;
        }
        let parts = parts::choose(translator, maps);
        let new = parts.fragments_from(before);
        if parts.fragments() < fragments / USED_SHARE {
            self.place.give_up();
            (self.stored, self.sound) = (0, false);
        } else if new >= enough || parts.gave_up {
            // A file does not hold the places of back edges, so the image that restores it could
            // not break the loops.
            translator.cache.break_loops(0, usize::MAX);
            self.place.write(encode(translator, maps, &parts), parts.fragments() as u64);
            self.stored = fragments;
        }
        None
    }

    /// Removes the translations, if they were used; returns a warning for the user if they would
    /// have been used by the next run.
    fn faulted(&self, signal: i32) -> Option<String> {
        let file = if self.taken_over { self.place.give_up()? } else { return None };
        Some(format!(
            "the program ended by signal {signal} in a run with kept translations; in case they are the reason, {} was \
             removed and the next run translates anew (--no-translation-cache neither uses nor keeps them)",
            file.display()
        ))
    }
}

/// Whether the executed code may have caused a signal; all other signals are requests to end.
fn is_fault(signal: i32) -> bool {
    const FROM_OUTSIDE: [i32; 6] =
        [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTERM, libc::SIGKILL];
    !FROM_OUTSIDE.contains(&signal)
}

/// Whether a process will have the same addresses in its next run.
fn has_fixed_addresses(pid: i32) -> bool {
    const ADDR_NO_RANDOMIZE: u32 = 0x0004_0000;
    let personality = std::fs::read_to_string(format!("/proc/{pid}/personality")).unwrap_or_default();
    u32::from_str_radix(personality.trim(), 16).is_ok_and(|bits| bits & ADDR_NO_RANDOMIZE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_from_requests_to_end() {
        assert!(
            [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT].map(is_fault)
                == [true; 5]
        );
        assert!([libc::SIGINT, libc::SIGTERM, libc::SIGKILL, libc::SIGPIPE].map(is_fault) == [false; 4]);
    }
}
