//! The machine that a page names, and that the names of its files tell.

/// Processor, number of CPUs, kernel.
pub(crate) fn host() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cpus} CPUs, Linux {}", kernel.trim())
}

/// The date and the processor, as they stand in the names of a study's files:
/// `2026-11-23-intel-xeon-6-167-2cpus`.
///
/// Family and model stand behind the name, because hypervisors show one name for many processors.
pub(crate) fn dated(date: &str) -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{date}-{}-{cpus}cpus", processor(&cpuinfo))
}

/// The processor of a `/proc/cpuinfo` in lower-case words with hyphens.
fn processor(cpuinfo: &str) -> String {
    let field = |name: &str| {
        let value = cpuinfo.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            (own.trim() == name).then(|| value.trim())
        });
        value.unwrap_or_default()
    };
    let name = field("model name").to_lowercase().replace("(r)", " ").replace("(tm)", " ");
    // The clock behind an @ is no part of the name.
    let name = name.split('@').next().unwrap_or_default();
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' }).collect();
    let idle = |word: &&str| !matches!(*word, "cpu" | "processor" | "core" | "with");
    let words = plain.split_whitespace().filter(idle).chain([field("cpu family"), field("model")]);
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    match words.is_empty() {
        true => "unknown-processor".into(),
        false => words.join("-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_a_part_of_a_file_name() {
        let info =
            "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 167\nmodel name\t: Intel(R) Xeon(R) Processor\n";
        assert_eq!(processor(info), "intel-xeon-6-167");
        let info = "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC 9B45 @ 2.10GHz\n";
        assert_eq!(processor(info), "amd-epyc-9b45-26-2");
        assert_eq!(processor(""), "unknown-processor");
        assert!(dated("2026-11-23").starts_with("2026-11-23-") && dated("x").ends_with("cpus"));
    }
}
