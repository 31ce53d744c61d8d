//! The frozen list: resident text, text from the host, the processor.

use crate::composed::{compose, frozen, Entry};
use crate::{median, processor, Arguments};
use lightfoot_pattern::compile::{compile, CompileOptions};
use lightfoot_pattern::kernel::cuda::{
    CopyRates, Cuda, CudaError, GpuProgram, GpuText, HostText, PinnedText, Reach,
};
use lightfoot_pattern::program::BitProgram;
use lightfoot_pattern::Regex;
use std::sync::Arc;
use std::time::Instant;

/// Bytes that are composed; the rest is the same again.
const COMPOSED: usize = 64 << 20;
const ROUNDS: usize = 9;
const HOST_ROUNDS: usize = 5;

/// Shares of the limits that patterns reached.
#[derive(Default)]
struct Shares {
    classes: Vec<f64>,
    simple: Vec<f64>,
    from_host: Vec<f64>,
}

/// A text in all its places.
pub(crate) struct Text {
    pub(crate) kind: String,
    pub(crate) pinned: PinnedText,
    pub(crate) resident: GpuText,
}

impl Text {
    pub(crate) fn new(cuda: &Arc<Cuda>, kind: &str, bytes: usize) -> Result<Text, CudaError> {
        Text::of(cuda, kind, &compose(kind, COMPOSED.min(bytes)), bytes)
    }

    /// So many bytes of some that are repeated.
    pub(crate) fn of(cuda: &Arc<Cuda>, kind: &str, some: &[u8], bytes: usize) -> Result<Text, CudaError> {
        let mut pinned = PinnedText::new(cuda, bytes)?;
        for part in pinned.bytes_mut()?[..bytes].chunks_mut(some.len()) {
            part.copy_from_slice(&some[..part.len()]);
        }
        let resident = GpuText::upload(cuda, pinned.bytes(), b'\n')?;
        Ok(Text { kind: kind.to_owned(), pinned, resident })
    }
}

/// The program of a pattern, or why there is none.
pub(crate) fn program(regex: &Regex) -> Result<BitProgram, String> {
    compile(regex.hir(), &CompileOptions::default()).map_err(|error| error.to_string())
}

/// Prints the table.
pub(crate) fn table(cuda: &Arc<Cuda>, arguments: &Arguments, copies: &CopyRates) -> Result<(), CudaError> {
    println!("## The frozen list\n");
    println!(
        "{} bytes of text of each kind. Resident rates have the share of the copy limit (half of read plus written would be a copy's text rate; a search only reads, so \
         its limit is the sum), rates from pinned memory that of the copy.\n",
        arguments.bytes
    );
    println!("| pattern | text | operations | lines | resident | share | from pinned | share | from any | one thread | {} threads |", processor::threads());
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let (mut text, mut shares, mut reasons): (Option<Text>, _, Vec<String>) =
        (None, Shares::default(), Vec::new());
    for entry in frozen().iter().filter(|entry| entry.name.contains(&arguments.part)) {
        if text.as_ref().is_none_or(|text| text.kind != entry.text) {
            // The old one goes first.
            text = None;
        }
        let text = match &mut text {
            Some(text) => text,
            none => none.insert(Text::new(cuda, &entry.text, arguments.bytes)?),
        };
        if let Err(reason) = row(cuda, entry, text, copies, &mut shares) {
            reasons.push(format!("{}: {reason}", entry.name));
        }
    }
    println!();
    for (what, shares) in [
        ("resident, class-heavy", shares.classes),
        ("resident, simple", shares.simple),
        ("from pinned memory", shares.from_host),
    ] {
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = (shares.iter().map(|share| share.ln()).sum::<f64>() / shares.len() as f64).exp();
        println!(
            "- {what}: geometric mean {:.0} % of the limit, the least {:.0} %, over {} patterns",
            mean * 1e2,
            least * 1e2,
            shares.len()
        );
    }
    reasons.iter().for_each(|reason| println!("- {reason}"));
    Ok(())
}

fn row(
    cuda: &Arc<Cuda>,
    entry: &Entry,
    text: &Text,
    copies: &CopyRates,
    shares: &mut Shares,
) -> Result<(), String> {
    let to_text = |error: CudaError| error.to_string();
    let regex = Regex::new(&entry.pattern).map_err(|error| error.to_string())?;
    let program = program(&regex)?;
    let on_card = GpuProgram::new(cuda, &program, Reach::Line).map_err(to_text)?;
    let bytes = text.pinned.bytes();
    let rate = |seconds: f64| bytes.len() as f64 / seconds / 1e9;
    let lines = on_card.count_lines(&text.resident).map_err(to_text)?;
    let (expected, all) = processor::count(&regex, bytes);
    assert_eq!(lines, expected, "{}: the card's count and the processor's", entry.name);
    let resident = (0..ROUNDS)
        .map(|_| on_card.count_lines_timed(&text.resident).map(|(count, seconds)| (count == lines, seconds)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(to_text)?;
    assert!(resident.iter().all(|(same, _)| *same), "{}: counts change", entry.name);
    let resident = rate(median(resident.into_iter().map(|(_, seconds)| seconds).collect()));
    let from_host = |host: HostText<'_>| -> Result<f64, String> {
        let mut times = Vec::new();
        for _ in 0..HOST_ROUNDS {
            let started = Instant::now();
            let count = on_card.count_lines_from_host(host).map_err(to_text)?;
            times.push(started.elapsed().as_secs_f64());
            assert_eq!(count, lines, "{}: the count of text from the host", entry.name);
        }
        Ok(rate(median(times)))
    };
    let from_pinned = from_host(HostText::Pinned(&text.pinned))?;
    let from_any = from_host(HostText::Pageable(bytes))?;
    let some = &bytes[..bytes.len().min(COMPOSED)];
    let one = some.len() as f64 / processor::seconds(&regex, some) / 1e9;
    let share = resident / copies.within;
    if entry.classes { &mut shares.classes } else { &mut shares.simple }.push(share);
    shares.from_host.push(from_pinned / copies.from_pinned);
    println!(
        "| {} | {} | {} | {lines} | {resident:.0} | {:.0} % | {from_pinned:.1} | {:.0} % | {from_any:.1} | {one:.2} | {:.1} |",
        entry.name,
        entry.text,
        program.instructions(),
        share * 1e2,
        from_pinned / copies.from_pinned * 1e2,
        rate(all),
    );
    Ok(())
}
