//! `cargo bench -p lightfoot-search --bench pages -- [--mib 32,128,512]`: what pages cost a random
//! line, the unit of every query.
//!
//! Memory on small pages, on huge pages that were asked for by advice, and on pages of hugetlbfs
//! where the administrator has reserved some (`sysctl vm.nr_hugepages=300`); on each, random lines
//! read in four ways: each address from the line before; independent reads; a prefetch of the line
//! 32 reads ahead, as batches do it; and beside that a prefetch of another line of its page 96
//! reads ahead, which brings the page's translation first. All ways run in interleaved rounds;
//! medians of nanoseconds per line.

use lightfoot_search::sample::Random;
use std::hint::black_box;
use std::time::Instant;

const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
const HUGE_BYTES: usize = 2 << 20;
/// Lines of a round.
const READS: usize = 1 << 20;
const ROUNDS: usize = 7;
/// Reads between a prefetch and its line's turn.
const AHEAD: usize = 32;
/// Reads between a prefetch for a translation and its page's turn.
const TRANSLATED_AHEAD: usize = 96;

/// Kinds of pages.
#[derive(Clone, Copy, Debug)]
enum Pages {
    Small,
    HugeByAdvice,
    Reserved,
}

/// Private memory of this process on one kind of pages; never freed.
fn mapped(bytes: usize, pages: Pages) -> Option<&'static mut [u64]> {
    let reserved = if let Pages::Reserved = pages { libc::MAP_HUGETLB } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | reserved;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh private mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes + HUGE_BYTES, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return None;
    }
    let start = base.wrapping_byte_add((base as usize).next_multiple_of(HUGE_BYTES) - base as usize);
    let advice = match pages {
        Pages::Small => Some(libc::MADV_NOHUGEPAGE),
        Pages::HugeByAdvice => Some(libc::MADV_HUGEPAGE),
        Pages::Reserved => None,
    };
    if let Some(advice) = advice {
        // SAFETY: the range lies in the mapping that was just made; advice changes no content.
        unsafe { libc::madvise(start, bytes, advice) };
    }
    // SAFETY: the range lies in the mapping, which is aligned, zeroed and used by nobody else.
    let words = unsafe { std::slice::from_raw_parts_mut(start.cast::<u64>(), bytes / 8) };
    words.iter_mut().zip(0..).for_each(|(word, number)| *word = number & 1);
    Some(words)
}

/// Asks for the line at `byte` of `words`.
#[inline(always)]
fn prefetch(words: &[u64], byte: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().cast::<i8>().wrapping_add(byte));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, byte);
}

fn word(words: &[u64], line: u32) -> u64 {
    words[line as usize * (LINE_BYTES / 8)]
}

fn dependent(words: &[u64], lines: &[u32]) -> u64 {
    let zero = black_box(0);
    lines.iter().fold(0, |sum, &line| word(words, line ^ (sum & zero) as u32) + sum)
}

fn independent(words: &[u64], lines: &[u32]) -> u64 {
    lines.iter().map(|&line| word(words, line)).sum()
}

fn prefetched(words: &[u64], lines: &[u32]) -> u64 {
    let ahead = lines[AHEAD..].iter().chain(std::iter::repeat_n(&0, AHEAD));
    let read = |(&line, &ahead): (&u32, &u32)| {
        prefetch(words, ahead as usize * LINE_BYTES);
        word(words, line)
    };
    lines.iter().zip(ahead).map(read).sum()
}

fn translated(words: &[u64], lines: &[u32]) -> u64 {
    let ahead = lines[AHEAD..].iter().chain(std::iter::repeat_n(&0, AHEAD));
    let far = lines[TRANSLATED_AHEAD..].iter().chain(std::iter::repeat_n(&0, TRANSLATED_AHEAD));
    let read = |((&line, &ahead), &far): ((&u32, &u32), &u32)| {
        // The page's first line: another one than the read's, but for one read in 64.
        prefetch(words, far as usize * LINE_BYTES / PAGE_BYTES * PAGE_BYTES);
        prefetch(words, ahead as usize * LINE_BYTES);
        word(words, line)
    };
    lines.iter().zip(ahead).zip(far).map(read).sum()
}

/// A way of reading lines: its name and its loop.
type Way = (&'static str, fn(&[u64], &[u32]) -> u64);

const WAYS: [Way; 4] = [
    ("dependent", dependent),
    ("independent", independent),
    ("prefetched", prefetched),
    ("translation first", translated),
];

fn main() {
    let mut mib = vec![32, 128, 512];
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--mib" {
            let value = words.next().expect("--mib needs sizes");
            mib = value.split(',').map(|size| size.parse().expect("a number of MiB")).collect();
        }
    }
    println!("MiB   pages          {}", WAYS.map(|(name, _)| format!("{name:>18}")).concat());
    for mib in mib {
        let bytes = mib << 20;
        let mut random = Random::new(3);
        let lines: Vec<u32> = (0..READS).map(|_| random.below((bytes / LINE_BYTES) as u64) as u32).collect();
        let kinds = [Pages::Small, Pages::HugeByAdvice, Pages::Reserved];
        let mapped = kinds.map(|pages| mapped(bytes, pages));
        let mut times = [const { [const { Vec::new() }; WAYS.len()] }; 3];
        for _ in 0..ROUNDS {
            for (words, times) in mapped.iter().zip(&mut times) {
                let Some(words) = words else { continue };
                for ((_, way), times) in WAYS.iter().zip(times) {
                    let start = Instant::now();
                    black_box(way(words, black_box(&lines)));
                    times.push(start.elapsed().as_nanos() as f64 / READS as f64);
                }
            }
        }
        for ((pages, words), times) in kinds.iter().zip(&mapped).zip(&mut times) {
            print!("{mib:<6}{:<15}", format!("{pages:?}"));
            for times in times.iter_mut().filter(|times| !times.is_empty()) {
                times.sort_by(f64::total_cmp);
                print!("{:>18.2}", times[ROUNDS / 2]);
            }
            let granted = words.as_ref().map_or(0, |words| huge_mib(words.as_ptr() as usize));
            println!("{}", if words.is_some() { format!("   {granted} MiB huge") } else { "  none".into() });
        }
    }
}

/// MiB on huge pages in the mapping that contains `address`, as the system tells.
fn huge_mib(address: usize) -> usize {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut inside = false;
    let mut kib = 0;
    for line in smaps.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        if let Some((Some(start), Some(end))) = range.map(|(start, end)| (number(start), number(end))) {
            inside = (start..end).contains(&address);
        }
        let sizes = ["AnonHugePages:", "Private_Hugetlb:"].iter().filter_map(|name| line.strip_prefix(name));
        for size in sizes.filter(|_| inside) {
            kib += size.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap_or(0);
        }
    }
    kib >> 10
}
