//! Reads the references that an annotated source states beside its instructions.
//!
//! In such a file every instruction line runs exactly once and in order, so that the number of
//! instruction lines is the instruction count and the comments, read from top to bottom, are the
//! whole sequence of references. Nothing here knows an instruction; that is what makes it an
//! independent witness.

use event::Access;
use lightfoot_instrument::reference::Reference;

/// Values of the names that comments may use.
const SYMBOLS: [(&str, u64); 2] = [("data", 0x60_0000), ("stack", 0x60_4000)];

/// What a source states.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stated {
    /// Number of instruction lines.
    pub(crate) instructions: u64,
    /// References, with the line that states each.
    pub(crate) references: Vec<(usize, Reference)>,
}

/// Reads the part of `source` from `_start:` on.
pub(crate) fn read(source: &str) -> Stated {
    let mut stated = Stated::default();
    let code = source.lines().enumerate().skip_while(|(_, line)| *line != "_start:");
    for (number, line) in code {
        let (instruction, comment) = line.split_once('#').unwrap_or((line, ""));
        stated.instructions += u64::from(is_instruction(instruction.trim()));
        if let Some(list) = comment.strip_prefix('=') {
            let references = list.split(',').map(|item| (number + 1, reference(item)));
            stated.references.extend(references);
        }
    }
    stated
}

fn is_instruction(text: &str) -> bool {
    !text.is_empty() && !text.ends_with(':') && !text.starts_with('.')
}

/// `L data+8 4`
fn reference(item: &str) -> Reference {
    let words: Vec<&str> = item.split_whitespace().collect();
    let [access, place, size] = words[..] else { panic!("three words expected: {item}") };
    let access = match access {
        "L" => Access::Load,
        "S" => Access::Store,
        "P" => Access::Prefetch,
        other => panic!("L, S or P expected: {other}"),
    };
    Reference { access, address: address(place), size_bytes: size.parse().expect("a size") }
}

/// `data`, `data+8`, `stack-8`
fn address(place: &str) -> u64 {
    let at = place.find(['+', '-']).unwrap_or(place.len());
    let (name, offset) = place.split_at(at);
    let (_, base) = SYMBOLS.iter().find(|(symbol, _)| *symbol == name).expect("data or stack");
    let offset: i64 = if offset.is_empty() { 0 } else { offset.parse().expect("a decimal offset") };
    base.wrapping_add_signed(offset)
}
