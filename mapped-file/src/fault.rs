//! The handler of `SIGBUS`.
//!
//! It runs in the middle of anything, so it calls nothing but the system and reads nothing but
//! atomics.

use super::slot::{Slot, PAGE_BYTES, SLOTS};
use std::sync::atomic::Ordering;
use std::sync::OnceLock;

/// The handler that was there before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Puts the handler in place.
pub(super) fn install() {
    // SAFETY: a `sigaction` of zeros is a valid one, the default action.
    let (mut own, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
    own.sa_sigaction = handler as usize;
    // On the stack for signals, where a thread has one, as the handler of the standard library.
    own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both are valid, and the handler keeps to what a handler may do.
    if unsafe { libc::sigaction(libc::SIGBUS, &own, &mut before) } == 0 {
        let _ = BEFORE.set(before);
    }
}

extern "C" fn on_fault(signal: libc::c_int, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system hands a handler with `SA_SIGINFO` a valid description.
    let address = unsafe { (*about).si_addr() } as usize;
    if SLOTS.iter().any(|slot| replaced(slot, address)) {
        return;
    }
    let before = BEFORE.get().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: a `sigaction` of zeros is the default action.
    let usual: libc::sigaction = unsafe { std::mem::zeroed() };
    let next = if before.is_null() { &usual } else { before };
    // The instruction runs again, and the next handler gets its fault.
    // SAFETY: `next` is a handler that was in place before, or the default action.
    unsafe { libc::sigaction(signal, next, std::ptr::null_mut()) };
}

/// Puts zeros from a page of a mapping on to its end; false if the page is not in this mapping.
fn replaced(slot: &Slot, address: usize) -> bool {
    let start = slot.start.load(Ordering::Acquire);
    let end = slot.end.load(Ordering::Acquire);
    // The slot may have been given to another mapping between both: that has another start.
    let is_same = slot.start.load(Ordering::Relaxed) == start;
    if start == 0 || !is_same || !(start..end).contains(&address) {
        return false;
    }
    // Before the zeros are there, so that whoever reads one finds this.
    slot.has_shrunk.store(true, Ordering::SeqCst);
    let page = address & !(PAGE_BYTES - 1);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: these pages belong to a mapping of this crate, which stays mapped until its slot is
    // empty; its bytes are only read, and count for nothing now that the slot says so.
    let mapped = unsafe { libc::mmap(page as *mut libc::c_void, end - page, libc::PROT_READ, flags, -1, 0) };
    mapped as usize == page
}
