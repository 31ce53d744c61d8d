//! The machine that was simulated, in a line or two of the text.
//!
//! A miss count means something only together with the sizes that it belongs to, and with how they
//! are known: a size that is assumed says so.

use present::terminal::beside;
use serde_json::Value;

/// The machine's name and the sizes of its levels, beside their label; empty where there are none.
pub(super) fn line(machine: &Value) -> String {
    let levels: Vec<String> = list(machine, "cache")
        .map(|cache| cache_size(machine, cache))
        .chain(tlbs(machine).map(|tlb| tlb_size(machine, tlb)))
        .collect();
    if levels.is_empty() {
        return String::new();
    }
    let name = machine["name"].as_str().unwrap_or_default();
    let of = match machine["description"].as_str() {
        // Presets say by their names what they are.
        Some(description) if name == "host" || name == "measured" => format!("{name} ({description})"),
        _ => name.to_owned(),
    };
    // A level is not broken over two lines.
    let levels: Vec<String> = levels.iter().map(|level| level.replace(' ', "\u{a0}")).collect();
    let text = format!("{of}: {}", levels.join(", "));
    beside(&format!("  {:<16} ", "simulated"), &text).replace('\u{a0}', " ")
}

fn list<'a>(machine: &'a Value, what: &str) -> impl Iterator<Item = &'a Value> {
    machine[what].as_array().into_iter().flatten()
}

/// The buffers for pages of the base size.
fn tlbs(machine: &Value) -> impl Iterator<Item = &Value> {
    let base = machine["page_bytes"][0].as_u64();
    list(machine, "tlb").filter(move |tlb| {
        tlb["page_bytes"].as_array().is_some_and(|pages| pages.iter().any(|page| page.as_u64() == base))
    })
}

fn cache_size(machine: &Value, cache: &Value) -> String {
    let suffix = match cache["kind"].as_str() {
        Some("data") => "D",
        Some("instruction") => "I",
        _ => "",
    };
    let name = format!("L{}{suffix}", cache["level"]);
    let kib = cache["size_bytes"].as_u64().unwrap_or(0) as f64 / 1024.0;
    let size = if kib >= 1024.0 { format!("{} MiB", kib / 1024.0) } else { format!("{kib} KiB") };
    let note = assumed(machine, &format!("cache.{name}.size_bytes"));
    format!("{name} {size} {}-way{note}", cache["ways"])
}

fn tlb_size(machine: &Value, tlb: &Value) -> String {
    let letter = match tlb["kind"].as_str() {
        Some("data") => "D",
        Some("instruction") => "I",
        _ => "",
    };
    let name = format!("L{} {letter}TLB", tlb["level"]);
    let note = assumed(machine, &format!("tlb.{name}.entries"));
    format!("{name} {}{note}", tlb["entries"])
}

/// Says that a field is assumed, where the longest entry that covers it says so; among equals the
/// last one counts.
fn assumed(machine: &Value, field: &str) -> &'static str {
    let covers = |source: &&Value| {
        let rest = source["field"].as_str().and_then(|path| field.strip_prefix(path));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let sources = list(machine, "source").filter(covers);
    let longest = sources.max_by_key(|source| source["field"].as_str().map_or(0, str::len));
    match longest.and_then(|source| source["origin"].as_str()) {
        Some("assumed") => " (assumed)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Machine, PRESETS};

    #[test]
    fn a_preset_is_named_with_its_sizes() {
        let zen4 = serde_json::to_value(Machine::preset("zen4").unwrap()).unwrap();
        let text = line(&zen4);
        assert_eq!(
            text.split_whitespace().collect::<Vec<_>>().join(" "),
            "simulated zen4: L1D 32 KiB 8-way, L1I 32 KiB 8-way, L2 1 MiB 8-way, L3 32 MiB 16-way, L1 DTLB 72, \
             L1 ITLB 64, L2 DTLB 3072, L2 ITLB 512"
        );
        assert!(text.lines().skip(1).all(|line| line.starts_with(&" ".repeat(19))), "{text}");
    }

    #[test]
    fn what_is_assumed_says_so_as_the_machine_does() {
        let host = Machine::host();
        let text = line(&serde_json::to_value(&host).unwrap()).replace("\n                   ", " ");
        assert!(text.starts_with(&format!("  simulated        host ({}): ", host.description)), "{text}");
        for tlb in host.tlbs.iter().filter(|tlb| tlb.translates(host.base_page_bytes())) {
            let origin = host.source_of(&format!("tlb.{}.entries", tlb.name())).unwrap().origin;
            let assumed = format!("{} {} (assumed)", tlb.name(), tlb.entries);
            assert_eq!(text.contains(&assumed), origin == machine::Origin::Assumed, "{assumed} in {text}");
        }
    }

    #[test]
    fn every_preset_keeps_to_80_columns_and_a_report_of_counts_has_no_line() {
        for preset in PRESETS {
            let text = line(&serde_json::to_value(preset.machine()).unwrap());
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
        assert_eq!(line(&serde_json::json!({"name": "host"})), "");
    }
}
