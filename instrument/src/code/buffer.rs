//! The code of one fragment between its emission and its place in the code cache.
//!
//! # The problem
//!
//! Emission determines the code of a fragment, but not everything in it. The code cache gives out
//! the numbers of exits, and writes shared routines when they are first needed. Whether an exit can
//! jump straight to another fragment depends on the distance. Only the code cache knows these, and
//! it must not depend on the purpose of the code.
//!
//! # The idea
//!
//! Emission appends bytes and notes every place in them that is still open. [`CodeCache::place`]
//! closes these places, in the order in which they were noted, and copies the result.
//!
//! ```text
//!      emission                                   the cache, when it places the buffer
//!  ┌───────────────┐
//!  │ hot section   │ ── labels ────────────▶  displacements between the two sections
//!  │  normal path  │ ── exits  ────────────▶  linked: straight, or by a stub behind the section
//!  │               │                          waiting: a number, written into the cold stub
//!  ├───────────────┤ ── back edges ────────▶  the loop's header, and a stub that breaks the loop
//!  │ cold section  │
//!  │  failed checks│ ── routines ──────────▶  addresses of shared routines of the zone
//!  │  stubs, stops │
//!  └───────────────┘ ── state map ─────────▶  entries of the zone, for stops in the middle
//! ```
//!
//! # Invariants
//!
//! - Each open place is a field of four bytes whose length does not depend on its value, so that
//!   closing it moves nothing.
//! - The bases of both sections are known from the beginning, because copies of `rip`-relative
//!   instructions depend on them. Until the buffer is placed, no other code may be placed in the
//!   zone.
//! - A displacement that threads may see being rewritten (that of an exit) lies within one line of
//!   64 bytes: [`Assembler::align_patch`].
//! - Entries of the state map are noted in the order of their positions.
//!
//! Numbers of lines and of sites are *not* open places: they are short in some instructions and
//! long in others, so the plan gives them out before emission. Source: the idea of labels and
//! fix-ups in a buffer is that of Cranelift's machine buffer.
//!
//! [`CodeCache::place`]: crate::cache::CodeCache::place

use super::assembler::Assembler;
use super::resident_pages::ResidentPages;
use super::state_map::StateMapEntry;
use event::Shape;

/// The sections of a code buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Fragments: the code that normally runs.
    Hot,
    /// Out-of-line code: failed checks, and exits that stop for the host.
    Cold,
}

/// A position within the buffer to which a displacement leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// A position in the hot section.
    Hot(usize),
    /// A position in the cold section.
    Cold(usize),
}

/// How a recorded reference changes the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entering {
    /// The reference's line becomes the last line of its set.
    Enters,
    /// The reference's set becomes empty, so the next reference to that set is recorded.
    Empties,
}

/// Whether a record routine checks the filter again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RecordWhen {
    /// The routine records without a check.
    Always,
    /// The routine records only if the filter does not know the reference.
    FilterMiss,
}

/// The values for which a record routine is specialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordRoutine {
    /// The register that holds the linear address.
    pub(crate) address: u8,
    /// The register that holds `site << 8 | code`.
    pub(crate) scratch: u8,
    pub(crate) size_bytes: u32,
    pub(crate) line_bytes: u32,
    /// Bytes of a page; 0 without a page filter.
    pub(crate) page_bytes: u32,
    /// Sets of the line filter, and of the page filter.
    pub(crate) sets: [u32; 2],
    pub(crate) entering: Entering,
    pub(crate) when: RecordWhen,
}

impl RecordRoutine {
    /// The fields that differ within an image, packed into few low bits. Every reference of a
    /// translation looks its routine up by this key, and the map's hash is a simple one.
    pub(crate) fn key(&self) -> u64 {
        let registers = u64::from(self.address) << 4 | u64::from(self.scratch);
        u64::from(self.size_bytes) << 10 | registers << 2 | (self.when as u64) << 1 | self.entering as u64
    }
}

/// A routine that uses pages of a data TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageRoutine {
    pub(crate) pages: ResidentPages,
    pub(crate) uses: PageUses,
}

/// The pages that a routine uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageUses {
    /// The pages of one reference, whose first and last byte are in the context. Its misses count
    /// once.
    Reference,
    /// The pages of a wide reference, whose first and last byte are in the context. Each page
    /// counts by itself.
    Wide,
    /// The pages of the complex reference whose values are the last ones in the ring.
    Complex(Shape),
}

impl PageRoutine {
    /// The fields that differ within an image, as a key that no record routine has.
    pub(crate) fn key(&self) -> u64 {
        let uses = match self.uses {
            PageUses::Reference => 0,
            PageUses::Wide => 1,
            PageUses::Complex(shape) => 1 << 32 | u64::from(shape.extra()),
        };
        1 << 63 | uses
    }
}

/// A routine that the fragments of a zone share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Routine {
    /// Hands over to the host.
    HandOver,
    /// Tries the slots of the lookup table behind the first one.
    Probe,
    /// Empties the data filter and returns through the context.
    ClearFilter,
    /// Records a data reference.
    Record(RecordRoutine),
    /// Notes the use of an instruction line in a first-level cache with this number of ways, and
    /// records a miss with this code.
    UseLine(u32, u8),
    /// Uses pages of a first-level data TLB, and records those that miss.
    UsePages(PageRoutine),
}

/// An exit as emission notes it; the cache gives it a number or links it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedExit {
    /// Position of the exit's displacement in the hot section.
    pub(crate) at: usize,
    /// Address in the program's code to which the exit leads.
    pub(crate) target: u64,
    /// The counter to increment when the exit is taken; side exits only.
    pub(crate) counter: Option<u32>,
    /// The registers to restore when the exit is taken.
    pub(crate) restore: u16,
    pub(crate) form: ExitForm,
}

/// The form of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitForm {
    /// The exit's target has code.
    Linked,
    /// The exit's target has no code: a stub in the cold section hands the exit's number to the
    /// host. The value is the position of that number in the cold section.
    Waiting(usize),
    /// This is no branch of the program, but a failed comparison of code that may change: the host
    /// translates that code again. The value is the position of the number in the cold section.
    Stale(usize),
    /// The exit leads to the loop's header. `restore` are the registers to restore first, and
    /// `load` is the register into which the ring's position must be loaded, if any.
    BackEdge { restore: u16, load: Option<u8> },
}

/// The place at which every iteration of a loop but the first begins, and the state that the code
/// there relies on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopHeader {
    /// Address of the fragment.
    pub(crate) pc: u64,
    /// Position in the hot section.
    pub(crate) at: usize,
    pub(crate) spilled: u16,
    /// The register that holds the ring's position, if one does.
    pub(crate) held: Option<u8>,
    pub(crate) flags_dead: bool,
}

/// The code of one fragment before it is placed.
#[derive(Default)]
pub(crate) struct CodeBuffer {
    pub(crate) hot: Assembler,
    pub(crate) cold: Assembler,
    /// Final address of the first hot byte.
    pub(crate) hot_base: u64,
    /// Final address of the first cold byte.
    pub(crate) cold_base: u64,
    pub(crate) state_map: Vec<StateMapEntry>,
    pub(crate) exits: Vec<WantedExit>,
    pub(crate) routines: Vec<(Section, usize, Routine)>,
    /// The header of the loop, if the fragment leads back to its own head.
    pub(crate) loop_header: Option<LoopHeader>,
    /// Instructions that the engine does not support, each with the reason. Code that raises SIGILL
    /// stands in their place.
    pub(crate) refused: Vec<(u64, String)>,
    links: Vec<(Section, usize, Label)>,
}

impl CodeBuffer {
    /// Empties the buffer for a fragment whose sections will lie at these addresses.
    pub(crate) fn begin(&mut self, hot_base: u64, cold_base: u64) {
        // `clear` keeps the allocations: a program has thousands of fragments.
        self.hot.clear();
        self.cold.clear();
        self.state_map.clear();
        self.exits.clear();
        self.routines.clear();
        self.links.clear();
        self.refused.clear();
        self.loop_header = None;
        (self.hot_base, self.cold_base) = (hot_base, cold_base);
    }

    /// Notes that the displacement at `at` of `section` leads to `label`.
    pub(crate) fn link(&mut self, section: Section, at: usize, label: Label) {
        self.links.push((section, at, label));
    }

    /// Notes that the displacement at `at` of `section` leads to a shared routine.
    pub(crate) fn want_routine(&mut self, section: Section, at: usize, routine: Routine) {
        self.routines.push((section, at, routine));
    }

    /// The addresses in the program's code to which the fragment's exits lead.
    pub(crate) fn branches(&self) -> impl Iterator<Item = u64> + '_ {
        // A stale exit leads to the fragment itself; it is no branch of the program.
        let leads = |exit: &&WantedExit| !matches!(exit.form, ExitForm::Stale(_));
        self.exits.iter().filter(leads).map(|exit| exit.target)
    }

    /// The final address behind the present end of the hot section.
    pub(crate) fn hot_end(&self) -> u64 {
        self.hot_base + self.hot.len() as u64
    }

    /// Makes the displacement at `at` of `section` lead to an address. All such addresses lie in
    /// the zone, or within 2 GB of it.
    pub(crate) fn lead(&mut self, section: Section, at: usize, address: u64) {
        let (base, code) = match section {
            Section::Hot => (self.hot_base, &mut self.hot),
            Section::Cold => (self.cold_base, &mut self.cold),
        };
        // The processor adds a displacement to the address behind its four bytes.
        let displacement = address.wrapping_sub(base + at as u64 + 4) as i64;
        code.set_displacement(at, i32::try_from(displacement).expect("a zone is smaller than 2 GB"));
    }

    /// Fills in all displacements that lead to labels. The lengths of both sections must be final.
    pub(crate) fn resolve_labels(&mut self) {
        for index in 0..self.links.len() {
            let (section, at, label) = self.links[index];
            let address = match label {
                Label::Hot(to) => self.hot_base + to as u64,
                Label::Cold(to) => self.cold_base + to as u64,
            };
            self.lead(section, at, address);
        }
    }
}
