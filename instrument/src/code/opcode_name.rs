//! Names of opcodes with the kinds of their operands, such as `Mov_r64_rm64`.
//!
//! **Why.** The decoder's own names are 5,000 texts of 110 kB with a pointer to each of 79 kB, and
//! an executable that shows one name has all of them. **How.** A name is the instruction's mnemonic
//! in one of a thousand shapes, `@_r64_rm64` for the one above. `opcode_names.txt` has a line for
//! each shape: the shape, and the opcodes that have it, each as its distance from the one before. A
//! line that begins with a space goes on with the line above. The file is made by the test below.

use iced_x86::Code;
use std::sync::LazyLock;

/// The shapes of all names.
const SHAPES: &str = include_str!("opcode_names.txt");

/// What stands for the mnemonic in a shape.
const MNEMONIC: &str = "@";

/// The name of an opcode with the kinds of its operands, for example `Mov_r64_rm64`.
pub fn opcode_name(opcode: u16) -> String {
    static BY_OPCODE: LazyLock<Vec<&str>> = LazyLock::new(by_opcode);
    let code = Code::try_from(usize::from(opcode));
    match (code, BY_OPCODE.get(usize::from(opcode))) {
        (Ok(code), Some(shape)) => shape.replace(MNEMONIC, &format!("{:?}", code.mnemonic())),
        _ => "invalid".into(),
    }
}

/// The shape of each opcode.
fn by_opcode() -> Vec<&'static str> {
    let mut shapes = vec![""; Code::values().len()];
    let (mut shape, mut opcode) = ("", 0);
    for line in SHAPES.lines() {
        let mut words = line.split_ascii_whitespace();
        if !line.starts_with(' ') {
            (shape, opcode) = (words.next().unwrap_or_default(), 0);
        }
        for distance in words {
            opcode += distance.parse().unwrap_or(0);
            if let Some(place) = shapes.get_mut(opcode) {
                *place = shape;
            }
        }
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widest line of the file.
    const WIDTH: usize = 100;

    /// What the file must have: the shapes in the order of their first opcode.
    fn file() -> String {
        let mut shapes: Vec<(String, Vec<usize>)> = Vec::new();
        for (number, code) in Code::values().enumerate() {
            let (name, mnemonic) = (format!("{code:?}"), format!("{:?}", code.mnemonic()));
            let mut words: Vec<&str> = name.split('_').collect();
            if let Some(word) = words.iter_mut().find(|word| **word == mnemonic) {
                *word = MNEMONIC;
            }
            let shape = words.join("_");
            match shapes.iter_mut().find(|(known, _)| *known == shape) {
                Some((_, numbers)) => numbers.push(number),
                None => shapes.push((shape, vec![number])),
            }
        }
        let mut out = String::new();
        for (shape, numbers) in shapes {
            let (mut line, mut last) = (shape, 0);
            for number in numbers {
                let word = format!(" {}", number - last);
                last = number;
                if line.len() + word.len() > WIDTH {
                    out += &std::mem::take(&mut line);
                    out += "\n";
                }
                line += &word;
            }
            out += &line;
            out += "\n";
        }
        out
    }

    /// `LIGHTFOOT_WRITE_NAMES=1` writes the file, for a decoder that knows more opcodes.
    #[test]
    fn names_are_those_of_the_decoder() {
        if std::env::var_os("LIGHTFOOT_WRITE_NAMES").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/code/opcode_names.txt");
            std::fs::write(path, file()).unwrap();
        }
        for (number, code) in Code::values().enumerate() {
            assert_eq!(opcode_name(number as u16), format!("{code:?}"));
        }
        assert_eq!(opcode_name(u16::MAX), "invalid");
    }
}
