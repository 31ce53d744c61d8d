//! Maps of generated code as text: a line for each function, `START BYTES NAME`.
//!
//! Numbers are hexadecimal, with `0x` or without. The name is the rest of the line and may contain
//! spaces. Lines that have another form are left out, and so is a last line without its end, which
//! the program did not finish.

use super::ranges::Ranges;
use std::io::BufRead;

/// Longer lines are left out; names of templates have some thousand letters.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// Reads the names of a map, up to its end or to the first failure.
pub(super) fn read(mut map: impl BufRead, ranges: &mut Ranges) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes = std::io::Read::take(&mut map, LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if bytes.is_err() || line.is_empty() {
            return;
        }
        match line.strip_suffix(b"\n") {
            Some(line) => {
                name(line, ranges);
            }
            // Too long, or the last one: what follows belongs to it, up to its end.
            None if map.skip_until(b'\n').is_err() => return,
            None => {}
        }
    }
}

fn name(line: &[u8], ranges: &mut Ranges) -> Option<()> {
    let line = String::from_utf8_lossy(line);
    let mut parts = line.trim_end_matches('\r').splitn(3, ' ');
    let mut number = || u64::from_str_radix(parts.next()?.trim_start_matches("0x"), 16).ok();
    let (start, bytes) = (number()?, number()?);
    let name = parts.next().filter(|name| !name.is_empty())?;
    ranges.name(start..start.checked_add(bytes)?, name.to_owned());
    Some(())
}
