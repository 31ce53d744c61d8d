//! The XSAVE area of this processor: which state components there are, and where they lie.
//!
//! Source: Intel SDM volume 1, chapter 13.

/// Bits of XCR0: the state components that the system has enabled.
pub(crate) fn extended_states() -> u64 {
    let leaf = std::arch::x86_64::__cpuid_count(0xd, 0);
    u64::from(leaf.edx) << 32 | u64::from(leaf.eax)
}

/// Where this processor puts the components of an XSAVE area.
pub(crate) fn state_layout() -> event::StateLayout {
    let mut layout = event::StateLayout::default();
    for (bit, component) in layout.components.iter_mut().enumerate().skip(2) {
        *component = event::StateComponent::default();
        if extended_states() >> bit & 1 != 0 {
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
