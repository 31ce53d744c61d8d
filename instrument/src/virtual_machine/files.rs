//! What files of the system say about processors, clocks and memory, on the declared machine.

use super::clock;
use super::leaves::Leaves;
use super::Repeats;

/// Memory of the declared machine, of which half is free.
const MEMORY_BYTES: u64 = 16 << 30;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Text that the declared machine decides.
    Processors,
    /// The range of processors.
    Range,
    /// Counters of the processors.
    Statistics,
    /// How much memory there is.
    Memory,
}

/// What the file at `path` shows, if the declared machine decides it.
pub(crate) fn shown(path: &[u8], repeats: Repeats) -> Option<Shown> {
    match path {
        b"/proc/cpuinfo" => Some(Shown::Processors),
        b"/sys/devices/system/cpu/online"
        | b"/sys/devices/system/cpu/possible"
        | b"/sys/devices/system/cpu/present" => Some(Shown::Range),
        b"/proc/stat" => Some(Shown::Statistics),
        b"/proc/meminfo" if repeats == Repeats::Exactly => Some(Shown::Memory),
        _ => None,
    }
}

/// The file's text.
pub(crate) fn text(shown: Shown, leaves: &Leaves) -> String {
    match shown {
        Shown::Processors => processors(leaves),
        Shown::Range => "0\n".into(),
        Shown::Statistics => {
            let since = clock::begin_s() - clock::uptime_s();
            format!("cpu  1000 0 1000 100000 0 0 0 0 0 0\ncpu0 1000 0 1000 100000 0 0 0 0 0 0\nintr 0\nctxt 0\nbtime {since}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n")
        }
        Shown::Memory => {
            let total = MEMORY_BYTES >> 10;
            format!(
                "MemTotal:       {total} kB\nMemFree:        {} kB\nMemAvailable:   {} kB\nSwapTotal:      0 kB\nSwapFree:       0 kB\n",
                total / 2,
                total / 2
            )
        }
    }
}

/// The bytes that `sysinfo` writes: time up, no load, memory, one process.
pub(crate) fn system_information() -> Vec<u8> {
    let mut words = [0u64; 14];
    words[0] = clock::uptime_s();
    // Loads are in words 1 to 3; then total and free memory.
    (words[4], words[5]) = (MEMORY_BYTES, MEMORY_BYTES / 2);
    // The number of processes, and at the end the size of the unit.
    words[10] = 1;
    words[13] = 1;
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The text of `/proc/cpuinfo`.
fn processors(leaves: &Leaves) -> String {
    let [_, first, last, middle] = leaves.answer(0, 0);
    let vendor: Vec<u8> = [first, middle, last].iter().flat_map(|word| word.to_le_bytes()).collect();
    let brand: Vec<u8> = (0x8000_0002..0x8000_0005)
        .flat_map(|leaf| leaves.answer(leaf, 0))
        .flat_map(u32::to_le_bytes)
        .take_while(|&byte| byte != 0)
        .collect();
    let signature = leaves.answer(1, 0)[0];
    let family = match signature >> 8 & 0xf {
        0xf => 0xf + (signature >> 20 & 0xff),
        family => family,
    };
    let model = (signature >> 4 & 0xf) | (signature >> 12 & 0xf0);
    format!(
        "processor\t: 0\nvendor_id\t: {}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {}\nstepping\t: {}\n\
         cpu MHz\t\t: 1000.000\nphysical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\nflags\t\t: {}\n\
         clflush size\t: 64\ncache_alignment\t: 64\n\n",
        String::from_utf8_lossy(&vendor),
        String::from_utf8_lossy(&brand).trim(),
        signature & 0xf,
        leaves.names().join(" "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_machine::Processor;

    #[test]
    fn files_tell_of_one_processor() {
        let leaves = Processor::named("x86-64-v2").unwrap().leaves();
        let text = text(shown(b"/proc/cpuinfo", Repeats::AsNatively).unwrap(), &leaves);
        assert_eq!(text.matches("processor\t").count(), 1);
        assert!(
            text.contains("GenuineIntel") && text.contains(" sse4_2") && !text.contains(" avx"),
            "{text}"
        );
        assert_eq!(shown(b"/proc/meminfo", Repeats::AsNatively), None);
        assert_eq!(shown(b"/proc/cpuinfo2", Repeats::Exactly), None);
        assert_eq!(system_information().len(), 112);
    }
}
