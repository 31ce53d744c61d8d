//! The processor's part: the same search by the library's own choice of engine, on one thread and
//! on all.

use lightfoot_pattern::Regex;
use std::time::Instant;

/// The processor's name.
pub(crate) fn model() -> String {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| String::from("an unknown processor"), |(_, name)| name.to_owned())
}

/// Threads that the machine runs at once.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Matching lines by all threads, each on a part that ends with a line, and the seconds that took.
pub(crate) fn count(regex: &Regex, text: &[u8]) -> (u64, f64) {
    let parts = parts(text, threads());
    let started = Instant::now();
    let counts = std::thread::scope(|scope| {
        let workers: Vec<_> = parts.iter().map(|part| scope.spawn(move || regex.count_lines(part))).collect();
        workers.into_iter().map(|worker| worker.join().expect("counting does not panic")).sum()
    });
    (counts, started.elapsed().as_secs_f64())
}

/// Seconds of one thread for a text, the better of two passes.
pub(crate) fn seconds(regex: &Regex, text: &[u8]) -> f64 {
    let pass = || {
        let started = Instant::now();
        std::hint::black_box(regex.count_lines(std::hint::black_box(text)));
        started.elapsed().as_secs_f64()
    };
    pass().min(pass())
}

fn parts(text: &[u8], count: usize) -> Vec<&[u8]> {
    let mut rest = text;
    let mut parts = Vec::new();
    for left in (1..=count).rev() {
        let wanted = rest.len() / left;
        let end = if left == 1 || wanted == 0 {
            rest.len()
        } else {
            lightfoot_pattern::line::end_of(rest, wanted - 1, b'\n')
        };
        let (part, others) = rest.split_at(end);
        parts.push(part);
        rest = others;
    }
    parts
}
