//! The text form of programs: `--debug-program` prints it and golden files hold it.
//!
//! ```text
//! terminator 10      the byte that ends a line
//! carries 0 1*          one word per carry; a star: starts as if a bit had come from before
//! %2 = basis 3 delay 1
//! %3 = and %2 %4
//! %5 = ternary 0xca %2 %3 %4
//! %6 = advance 1 %5 carry 0
//! %7 = match_star %6 %3 carry 1
//! if %3 {
//!   %8 = not %2
//! } yields %9 = %8
//! %12 = while %10 from %7 {
//!   %11 = and %10 %3
//! } next %11
//! return %12
//! ```
//! Everything from `#` to the end of a line is a comment. Names are numbers; the order of lines is
//! the order of evaluation.

use super::operation::{BitProgram, Carry, Instruction, Op, Value, Yield};
use std::fmt;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for BitProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "terminator {}", self.terminator)?;
        write!(f, "carries")?;
        for (number, &starts) in self.carries.iter().enumerate() {
            write!(f, " {number}{}", if starts { "*" } else { "" })?;
        }
        writeln!(f)?;
        write_body(f, &self.body, 0)?;
        write!(f, "return {}", self.output)?;
        self.kept.iter().try_for_each(|kept| write!(f, ", {kept}"))?;
        writeln!(f)
    }
}

fn write_body(f: &mut fmt::Formatter<'_>, body: &[Instruction], depth: usize) -> fmt::Result {
    body.iter().try_for_each(|one| write_instruction(f, one, depth))
}

fn write_instruction(f: &mut fmt::Formatter<'_>, one: &Instruction, depth: usize) -> fmt::Result {
    let indent = depth * 2;
    write!(f, "{:indent$}", "")?;
    match &one.op {
        Op::IfAny { condition, body, yields } => {
            writeln!(f, "if {condition} {{")?;
            write_body(f, body, depth + 1)?;
            write!(f, "{:indent$}}} yields", "")?;
            for (at, Yield { outer, inner }) in yields.iter().enumerate() {
                write!(f, "{} {outer} = {inner}", if at > 0 { "," } else { "" })?;
            }
            writeln!(f)
        }
        Op::WhileAny { initial, frontier, body, next } => {
            writeln!(f, "{} = while {frontier} from {initial} {{", one.result)?;
            write_body(f, body, depth + 1)?;
            writeln!(f, "{:indent$}}} next {next}", "")
        }
        op => {
            write!(f, "{} = ", one.result)?;
            write_simple(f, op)?;
            writeln!(f)
        }
    }
}

fn write_simple(f: &mut fmt::Formatter<'_>, op: &Op) -> fmt::Result {
    match op {
        Op::Zero => write!(f, "zero"),
        Op::Ones => write!(f, "ones"),
        Op::Basis { bit, delay: 0 } => write!(f, "basis {bit}"),
        Op::Basis { bit, delay } => write!(f, "basis {bit} delay {delay}"),
        Op::RowEnds => write!(f, "row_ends"),
        Op::Not(a) => write!(f, "not {a}"),
        Op::And(a, b) => write!(f, "and {a} {b}"),
        Op::Or(a, b) => write!(f, "or {a} {b}"),
        Op::Xor(a, b) => write!(f, "xor {a} {b}"),
        Op::AndNot(a, b) => write!(f, "and_not {a} {b}"),
        Op::Ternary { table, of: [a, b, c] } => write!(f, "ternary {table:#04x} {a} {b} {c}"),
        Op::Advance { by, of, carry } => write!(f, "advance {by} {of} carry {}", carry.0),
        Op::MatchStar { markers, class, carry } => {
            write!(f, "match_star {markers} {class} carry {}", carry.0)
        }
        Op::ScanThru { markers, class, carry } => write!(f, "scan_thru {markers} {class} carry {}", carry.0),
        Op::Add { a, b, carry } => write!(f, "add {a} {b} carry {}", carry.0),
        Op::IfAny { .. } | Op::WhileAny { .. } => Err(fmt::Error),
    }
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Counted from 1.
    pub line: usize,
    /// What was found and what would be accepted.
    pub reason: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for ParseError {}

impl BitProgram {
    /// Reads the text form.
    ///
    /// # Errors
    /// The first line that cannot be read, and why. [`BitProgram::verify`] finds programs that can
    /// be read but break a rule.
    pub fn parse(text: &str) -> Result<BitProgram, ParseError> {
        parse(text)
    }
}

struct Reader<'t> {
    lines: Vec<(usize, Vec<&'t str>)>,
    at: usize,
    values: u32,
}

fn parse(text: &str) -> Result<BitProgram, ParseError> {
    let numbered = text.lines().enumerate();
    let words = numbered.map(|(number, line)| {
        let code = line.split('#').next().unwrap_or("");
        (number + 1, code.split([' ', ',']).filter(|word| !word.is_empty()).collect::<Vec<_>>())
    });
    let mut reader =
        Reader { lines: words.filter(|(_, words)| !words.is_empty()).collect(), at: 0, values: 0 };
    let terminator = match reader.next_line("`terminator`")?.as_slice() {
        ["terminator", byte] => reader.number(byte)?,
        _ => return reader.refuse("a program opens with `terminator` and the byte that ends a line"),
    };
    let carries = reader.carries()?;
    let body = reader.body()?;
    let (output, kept) = match reader.next_line("`return %…`")?.as_slice() {
        ["return", value, kept @ ..] => {
            let output = reader.value(value)?;
            (output, kept.iter().map(|value| reader.value(value)).collect::<Result<_, _>>()?)
        }
        _ => return reader.refuse("expected `return %…`"),
    };
    if reader.at < reader.lines.len() {
        reader.at += 1;
        return reader.refuse("nothing may follow `return`");
    }
    Ok(BitProgram { body, output, kept, values: reader.values, carries, terminator })
}

impl<'t> Reader<'t> {
    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T, ParseError> {
        let last = self.at.saturating_sub(1).min(self.lines.len().saturating_sub(1));
        let line = self.lines.get(last).map_or(1, |(number, _)| *number);
        Err(ParseError { line, reason: reason.into() })
    }

    fn next_line(&mut self, wanted: &str) -> Result<Vec<&'t str>, ParseError> {
        self.at += 1;
        match self.lines.get(self.at - 1) {
            Some((_, words)) => Ok(words.clone()),
            None => self.refuse(format!("the program ends where {wanted} was expected")),
        }
    }

    fn carries(&mut self) -> Result<Vec<bool>, ParseError> {
        let words = self.next_line("`carries`")?;
        if words[0] != "carries" {
            return self.refuse("`carries` follows the terminator");
        }
        let mut carries = Vec::new();
        for word in &words[1..] {
            let number = word.strip_suffix('*').unwrap_or(word);
            if number != carries.len().to_string() {
                return self.refuse(format!("expected carry {}, found `{word}`", carries.len()));
            }
            carries.push(word.ends_with('*'));
        }
        Ok(carries)
    }

    fn value(&mut self, word: &str) -> Result<Value, ParseError> {
        let number = word.strip_prefix('%').and_then(|number| number.parse::<u32>().ok());
        match number {
            Some(number) if number < u32::MAX / 2 => {
                self.values = self.values.max(number + 1);
                Ok(Value(number))
            }
            _ => self.refuse(format!("`{word}` is not a value; values are written %0, %1, …")),
        }
    }

    fn number<T: TryFrom<u64>>(&self, word: &str) -> Result<T, ParseError> {
        let parsed = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        match parsed.and_then(|number| T::try_from(number).ok()) {
            Some(number) => Ok(number),
            None => self.refuse(format!("`{word}` is not a number that fits here")),
        }
    }

    fn body(&mut self) -> Result<Vec<Instruction>, ParseError> {
        let mut body = Vec::new();
        while let Some((_, words)) = self.lines.get(self.at) {
            if words[0] == "return" || words[0] == "}" {
                break;
            }
            body.push(self.instruction()?);
        }
        Ok(body)
    }

    fn instruction(&mut self) -> Result<Instruction, ParseError> {
        let words = self.next_line("an instruction")?;
        match words.as_slice() {
            ["if", condition, "{"] => self.if_any(condition),
            [result, "=", "while", frontier, "from", initial, "{"] => {
                let result = self.value(result)?;
                self.while_any(result, frontier, initial)
            }
            [result, "=", name, operands @ ..] => {
                let result = self.value(result)?;
                Ok(Instruction { result, op: self.simple(name, operands)? })
            }
            _ => self.refuse("expected `%… = …` or `if %… {`"),
        }
    }

    fn if_any(&mut self, condition: &str) -> Result<Instruction, ParseError> {
        let condition = self.value(condition)?;
        let body = self.body()?;
        let words = self.next_line("`} yields`")?;
        let ["}", "yields", list @ ..] = words.as_slice() else {
            return self.refuse("expected `} yields %… = %…`");
        };
        let mut yields = Vec::new();
        for one in list.chunks(3) {
            match one {
                [outer, "=", inner] => {
                    yields.push(Yield { outer: self.value(outer)?, inner: self.value(inner)? });
                }
                _ => return self.refuse("a body yields `%outer = %inner`, separated by commas"),
            }
        }
        match yields.first() {
            Some(first) => Ok(Instruction { result: first.outer, op: Op::IfAny { condition, body, yields } }),
            None => self.refuse("a body that yields nothing is of no use"),
        }
    }

    fn while_any(&mut self, result: Value, frontier: &str, initial: &str) -> Result<Instruction, ParseError> {
        let (frontier, initial) = (self.value(frontier)?, self.value(initial)?);
        let body = self.body()?;
        match self.next_line("`} next`")?.as_slice() {
            ["}", "next", next] => {
                let next = self.value(next)?;
                Ok(Instruction { result, op: Op::WhileAny { initial, frontier, body, next } })
            }
            _ => self.refuse("expected `} next %…`"),
        }
    }

    fn simple(&mut self, name: &str, operands: &[&str]) -> Result<Op, ParseError> {
        // One line for each operation: its name, its operands, and its carry.
        Ok(match (name, operands) {
            ("zero", []) => Op::Zero,
            ("ones", []) => Op::Ones,
            ("basis", [bit]) => Op::Basis { bit: self.number(bit)?, delay: 0 },
            ("basis", [bit, "delay", delay]) => {
                Op::Basis { bit: self.number(bit)?, delay: self.number(delay)? }
            }
            ("row_ends", []) => Op::RowEnds,
            ("not", [a]) => Op::Not(self.value(a)?),
            ("and", [a, b]) => Op::And(self.value(a)?, self.value(b)?),
            ("or", [a, b]) => Op::Or(self.value(a)?, self.value(b)?),
            ("xor", [a, b]) => Op::Xor(self.value(a)?, self.value(b)?),
            ("and_not", [a, b]) => Op::AndNot(self.value(a)?, self.value(b)?),
            ("ternary", [table, a, b, c]) => Op::Ternary {
                table: self.number(table)?,
                of: [self.value(a)?, self.value(b)?, self.value(c)?],
            },
            ("advance", [by, of, "carry", carry]) => {
                Op::Advance { by: self.number(by)?, of: self.value(of)?, carry: Carry(self.number(carry)?) }
            }
            ("match_star", [markers, class, "carry", carry]) => Op::MatchStar {
                markers: self.value(markers)?,
                class: self.value(class)?,
                carry: Carry(self.number(carry)?),
            },
            ("scan_thru", [markers, class, "carry", carry]) => Op::ScanThru {
                markers: self.value(markers)?,
                class: self.value(class)?,
                carry: Carry(self.number(carry)?),
            },
            ("add", [a, b, "carry", carry]) => {
                Op::Add { a: self.value(a)?, b: self.value(b)?, carry: Carry(self.number(carry)?) }
            }
            _ => {
                return self
                    .refuse(format!("`{name}` with {} words after it is not an operation", operands.len()))
            }
        })
    }
}
