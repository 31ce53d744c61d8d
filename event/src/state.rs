//! Where XSAVE's components lie: the processor's numbers that turn a component mask into the size
//! of an area.
//!
//! **What.** [`StateLayout`] holds size and offset of each component, as CPUID leaf 0xD gives them;
//! the engine fills it in (this crate executes no CPUID, it has no `unsafe`). **Leaves out**
//! supervisor components. Source: Intel SDM volume 1, 13.4.2 and 13.4.3.

/// Bytes of the legacy area and the XSAVE header.
pub const STATE_HEADER_BYTES: u32 = 576;

/// Place of one component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateComponent {
    /// Size (CPUID 0xD, i: eax); 0 where the processor lacks it.
    pub size_bytes: u32,
    /// Offset in the standard format (ebx).
    pub offset_bytes: u32,
    /// Whether the compacted format aligns it (ecx bit 1).
    pub alignment: StateAlignment,
}

/// Alignment of a component in the compacted format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateAlignment {
    /// Follows immediately.
    #[default]
    Packed,
    /// Starts at a multiple of 64 bytes.
    Line,
}

/// Places of all components, indexed by their bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateLayout {
    /// Components; 0 and 1 (x87, SSE) lie in the legacy area and stay 0 here.
    pub components: [StateComponent; 64],
}

impl Default for StateLayout {
    /// AVX, AVX-512, PKRU and AMX as on Intel's servers.
    fn default() -> StateLayout {
        let mut components = [StateComponent::default(); 64];
        for (bit, size_bytes, offset_bytes, alignment) in [
            (2, 256, 576, StateAlignment::Packed),
            (5, 64, 1088, StateAlignment::Packed),
            (6, 512, 1152, StateAlignment::Packed),
            (7, 1024, 1664, StateAlignment::Packed),
            (9, 8, 2688, StateAlignment::Packed),
            (17, 64, 2752, StateAlignment::Line),
            (18, 8192, 2816, StateAlignment::Line),
        ] {
            components[bit] = StateComponent { size_bytes, offset_bytes, alignment };
        }
        StateLayout { components }
    }
}

impl StateLayout {
    /// Size of an area in the standard format up to the last of the `requested` components.
    pub fn standard_bytes(&self, requested: u64) -> u32 {
        let ends = self.present(requested).map(|bit| {
            let component = &self.components[bit];
            component.offset_bytes.saturating_add(component.size_bytes)
        });
        ends.fold(STATE_HEADER_BYTES, u32::max)
    }

    /// Size of an area in the compacted format that holds `stored` components, up to the last
    /// `requested` one.
    pub fn compact_bytes(&self, stored: u64, requested: u64) -> u32 {
        let (mut at, mut end) = (STATE_HEADER_BYTES, STATE_HEADER_BYTES);
        for bit in self.present(stored) {
            let component = &self.components[bit];
            if component.alignment == StateAlignment::Line {
                at = at.checked_next_multiple_of(64).unwrap_or(at);
            }
            at = at.saturating_add(component.size_bytes);
            if requested >> bit & 1 != 0 {
                end = at;
            }
        }
        end
    }

    fn present(&self, mask: u64) -> impl Iterator<Item = usize> + '_ {
        (2..63).filter(move |&bit| mask >> bit & 1 != 0 && self.components[bit].size_bytes > 0)
    }
}
