//! The kept translations of one image: takes them over when the image begins, and decides about the
//! file when it ends.
//!
//! The file is written where enough is new or something in it did not hold; it is left alone where
//! the run learned little; and it is given up, with a sentence, where the program ended by a fault
//! after it ran what the file held. A fault may be the program's own, but it may as well come of
//! the file, and a file costs little to make again. A program that faulted leaves no file, so a
//! program that always faults never runs kept code. Signals by which people and systems end
//! programs tell nothing of its code.

use super::snapshot::{encode, Snapshot};
use super::{parts, Store};
use crate::target::credentials::Credentials;
use crate::target::layout::Layout;
use crate::target::memory;
use crate::target::modules::Maps;
use crate::translate::Translator;
use event::Stream;
use iced_x86::Code;
use std::path::Path;

/// A file is not written again for fewer new fragments than this,
const NEW_FRAGMENTS_MIN: usize = 32;
/// nor for less than one in this many.
const NEW_SHARE: usize = 16;
/// A file of which less than this share can be used again is not written: numbers stay, so what
/// cannot be used is written too.
const USED_SHARE: usize = 4;

/// The file of one image.
#[derive(Debug)]
pub(crate) struct KeptTranslations {
    store: Store,
    /// The file's fragments are among the image's.
    taken_over: bool,
    /// The program may have other credentials than the host by now.
    credentials_changed: bool,
    /// The signal that ended a process of the image.
    signal: Option<i32>,
}

/// The image's place and program, as far as they decide which file is its own.
pub(crate) struct Origin<'o> {
    pub(crate) pid: i32,
    /// Address of the program headers.
    pub(crate) headers: u64,
    pub(crate) stream: &'o Stream,
    pub(crate) layout: &'o Layout,
}

impl KeptTranslations {
    /// The file for a program in `folder`; `None` if the program has other rights than the host, or
    /// will have other addresses in its next run.
    pub(crate) fn of(folder: &Path, origin: &Origin<'_>) -> Option<KeptTranslations> {
        let credentials = Credentials::of(origin.pid)?;
        if Credentials::own()? != credentials || !has_fixed_addresses(origin.pid) {
            return None;
        }
        let mut identity = super::generator()?;
        // The program's first page: its headers, and with them its build-id.
        let mut page = [0u8; 4096];
        let headers = origin.headers & !0xfff;
        if memory::read_target(origin.pid, headers, &mut page) != page.len() {
            return None;
        }
        identity.extend(page);
        identity.extend(format!("{headers:x} {:?} {:?}", origin.stream, origin.layout).bytes());
        let store = Store::new(folder, &identity);
        Some(KeptTranslations { store, taken_over: false, credentials_changed: false, signal: None })
    }

    /// Puts what a former run left into an image that has translated nothing yet.
    pub(crate) fn restore(&mut self, translator: &mut Translator, maps: &mut Maps) {
        let Some(body) = self.store.read() else { return };
        match Snapshot::decode(body.bytes(), &translator.cache) {
            Some(snapshot) => {
                snapshot.restore(translator, maps);
                self.taken_over = true;
            }
            None => _ = self.store.give_up(),
        }
    }

    /// Notes that the program asks for other credentials.
    pub(crate) fn credentials_change(&mut self) {
        self.credentials_changed = true;
    }

    /// Notes the signal that ended a process of the image.
    pub(crate) fn ended_by(&mut self, signal: i32) {
        if is_fault(signal) {
            self.signal.get_or_insert(signal);
        }
    }

    /// The image has ended: writes its translations, leaves the file as it is, or gives it up.
    /// Returns a warning for the user if a file is given up because of a fault.
    pub(crate) fn finish(&self, translator: &Translator, maps: &Maps) -> Option<String> {
        // The fault may come of the file, so the file goes.
        if let Some(signal) = self.signal {
            return self.faulted(signal);
        }
        // The host does not see system calls by `int 0x80`, which may have changed the credentials.
        let interrupts = |code: u16| code == Code::Int_imm8 as u16;
        let unseen = translator.instructions.iter().any(|i| interrupts(i.code));
        if self.credentials_changed || unseen || translator.refusal.is_some() {
            return None;
        }
        let before = translator.unverified.fragments;
        // A file is worth writing where enough of it is new, or something in it did not hold.
        let enough = if before == 0 { 1 } else { NEW_FRAGMENTS_MIN + before / NEW_SHARE };
        let fragments = translator.cache.fragments.len();
        let outdated = translator.unverified.gave_up || !parts::moved(translator, maps).is_empty();
        if fragments < before + enough && !outdated {
            return None;
        }
        let parts = parts::choose(translator, maps);
        let new = parts.fragments_from(before);
        if parts.fragments() < fragments / USED_SHARE {
            self.store.give_up();
        } else if new >= enough || parts.gave_up {
            // The image that takes the code over does not know where its back edges are, so it
            // could not break them.
            translator.cache.break_loops(0, usize::MAX);
            self.store.write(&encode(translator, maps, &parts), parts.fragments() as u64);
        }
        None
    }

    /// Gives the file up, if it was used.
    fn faulted(&self, signal: i32) -> Option<String> {
        (self.taken_over && self.store.give_up()).then(|| {
            format!(
                "the program ended by signal {signal} in a run with kept translations; in case they are the reason, {} was \
                 removed and the next run translates anew (--no-translation-cache keeps none)",
                self.store.path().display()
            )
        })
    }
}

/// Whether a signal may come of the code that ran; all others are requests to end.
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
