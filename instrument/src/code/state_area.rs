//! The XSAVE area of this processor: its state components and their offsets.
//!
//! Source: Intel SDM volume 1, chapter 13.

use crate::virtual_machine::leaves::machine_states;

/// Offsets and sizes in bytes of the components of an XSAVE area on this processor.
pub(crate) fn state_layout() -> event::StateLayout {
    // Asked once: a virtual machine's host answers CPUID, which takes microseconds.
    let states = machine_states();
    let mut layout = event::StateLayout::default();
    for (bit, component) in layout.components.iter_mut().enumerate().skip(2) {
        *component = event::StateComponent::default();
        if states >> bit & 1 != 0 {
            let leaf = std::arch::x86_64::__cpuid_count(0xd, bit as u32);
            component.size_bytes = leaf.eax;
            component.offset_bytes = leaf.ebx;
            if leaf.ecx & 2 != 0 {
                component.alignment = event::StateAlignment::Line;
            }
        }
    }
    layout
}
