//! Rows about the processor.

use super::row::{Ability, Facts, State};

fn missing<'a>(facts: &Facts, names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().filter(|name| !facts.machine.has(name)).collect()
}

/// AVX2 and AVX-512.
pub(super) fn vectors(facts: &Facts) -> Ability {
    let name = "vector instructions";
    let wide = ["avx512f", "avx512bw", "avx512vl", "avx512dq"];
    if facts.machine.has("neon") {
        return Ability::new(
            name,
            State::Partly,
            "NEON; the kernels of this tool are written for AVX2 and AVX-512",
        );
    }
    if !facts.machine.has("avx2") {
        return Ability::new(name, State::No, "no AVX2: the portable kernels are used");
    }
    match missing(facts, &wide).as_slice() {
        [] => Ability::new(name, State::Yes, "AVX2 and AVX-512 (F, BW, VL, DQ)"),
        absent => Ability::new(name, State::Partly, format!("AVX2, but not {}", absent.join(", "))),
    }
}

/// AMX.
pub(super) fn tiles(facts: &Facts) -> Ability {
    let name = "AMX tiles";
    match missing(facts, &["amx_tile", "amx_bf16", "amx_int8"]).as_slice() {
        [] => Ability::new(name, State::Yes, "tiles, bf16 and int8"),
        absent if absent.len() == 3 => Ability::new(name, State::No, "this processor has none"),
        absent => Ability::new(name, State::Partly, format!("without {}", absent.join(", "))),
    }
}

/// BMI1, BMI2, popcnt, lzcnt.
pub(super) fn bit_manipulation(facts: &Facts) -> Ability {
    let name = "bit manipulation (BMI2)";
    match missing(facts, &["bmi1", "bmi2", "popcnt", "lzcnt"]).as_slice() {
        [] => Ability::new(name, State::Yes, "bmi1, bmi2, popcnt, lzcnt"),
        absent if absent.contains(&"bmi2") => {
            Ability::new(name, State::No, format!("without {}", absent.join(", ")))
        }
        absent => Ability::new(name, State::Partly, format!("without {}", absent.join(", "))),
    }
}

/// Whether a program may set its own segment bases.
pub(super) fn fsgsbase(facts: &Facts) -> Ability {
    let name = "segment bases without a system call";
    if facts.machine.has("fsgsbase") {
        return Ability::new(name, State::Yes, "fsgsbase");
    }
    Ability::new(name, State::No, "the kernel does not offer fsgsbase: starting a thread costs a stop more")
        .with_remedy("Linux 5.9 or later, without nofsgsbase on its command line")
}

/// Whether timings come from the machine itself.
pub(super) fn hypervisor(facts: &Facts) -> Ability {
    let name = "bare metal";
    let guest = facts.leaves.hypervisor().or_else(|| facts.machine.has("hypervisor").then(String::new));
    let Some(vendor) = guest else {
        return Ability::new(name, State::Yes, "no hypervisor announces itself");
    };
    let vendor = if vendor.is_empty() { "unnamed".to_string() } else { vendor };
    let reason = format!(
        "hypervisor {vendor}: neighbours disturb timings, cache sizes may be those of another machine"
    );
    Ability::new(name, State::Partly, reason)
        .with_remedy("simulated counts are unaffected; time on bare metal")
}
