//! The verifier: what every program must satisfy before a kernel runs it.
//!
//! * A value is defined once, and before its uses; a body sees what is defined before it, and
//!   nothing outside sees into a body.
//! * Values and carries are dense: their numbers are below the program's counts.
//! * A carry belongs to one operation.
//! * The body of `IfAny` holds logic and delayed bases only: skipping it must not lose a carry.
//! * Distances are those that one word can hand on: advances 1 to 63, delays 0 to 7, bits 0 to 7.
//! * The output is a value of the outermost body.
//!
//! Two rules are not decidable here and not checked: that a `WhileAny` body distributes over union,
//! and that an `IfAny` body yields nothing without its condition. Compilers of expressions keep
//! both.

use super::operation::{BitProgram, Instruction, Op, Value, MAX_ADVANCE, MAX_DELAY};
use std::fmt;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The value whose definition breaks it.
    pub value: Value,
    /// Which rule.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.value, self.reason)
    }
}

impl std::error::Error for Fault {}

impl BitProgram {
    /// Checks the rules of the form.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn verify(&self) -> Result<(), Fault> {
        verify(self)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Sight {
    Undefined,
    Visible,
    Hidden,
}

struct Checker {
    sight: Vec<Sight>,
    carried: Vec<bool>,
}

fn verify(program: &BitProgram) -> Result<(), Fault> {
    let mut checker = Checker {
        sight: vec![Sight::Undefined; program.values as usize],
        carried: vec![false; program.carries.len()],
    };
    checker.body(&program.body, false)?;
    checker.used(program.output, program.output)?;
    program.kept.iter().try_for_each(|&kept| checker.used(kept, kept))
}

fn fault(value: Value, reason: impl Into<String>) -> Result<(), Fault> {
    Err(Fault { value, reason: reason.into() })
}

impl Checker {
    fn define(&mut self, value: Value) -> Result<(), Fault> {
        match self.sight.get_mut(value.0 as usize) {
            None => fault(value, "its number is not below the program's count of values"),
            Some(sight) if *sight != Sight::Undefined => fault(value, "it is defined twice"),
            Some(sight) => {
                *sight = Sight::Visible;
                Ok(())
            }
        }
    }

    fn used(&self, by: Value, value: Value) -> Result<(), Fault> {
        match self.sight.get(value.0 as usize) {
            Some(Sight::Visible) => Ok(()),
            Some(Sight::Hidden) => fault(by, format!("it uses {value}, which another body defines")),
            _ => fault(by, format!("it uses {value}, which is not defined before it")),
        }
    }

    fn body(&mut self, body: &[Instruction], in_if: bool) -> Result<(), Fault> {
        body.iter().try_for_each(|one| self.instruction(one, in_if))
    }

    fn instruction(&mut self, one: &Instruction, in_if: bool) -> Result<(), Fault> {
        // Operands come first: a value may not be used in the operation that defines it.
        let mut missing = Ok(());
        one.op.operands(|value| {
            if missing.is_ok() {
                missing = self.used(one.result, value);
            }
        });
        missing?;
        self.numbers(one)?;
        self.carry(one, in_if)?;
        match &one.op {
            Op::IfAny { body, yields, .. } => {
                self.body(body, true)?;
                for inner in yields.iter().map(|one| one.inner) {
                    self.used(one.result, inner)?;
                }
                // Behind the body, only its yields are visible.
                self.hide(body);
                if yields.first().is_none_or(|first| first.outer != one.result) {
                    return fault(one.result, "its result is not the first that the body yields");
                }
                yields.iter().try_for_each(|one| self.define(one.outer))
            }
            Op::WhileAny { frontier, body, next, .. } => {
                if in_if {
                    return fault(one.result, "a loop stands inside a body that may be skipped");
                }
                self.define(*frontier)?;
                self.body(body, false)?;
                self.used(one.result, *next)?;
                self.hide(body);
                self.sight[frontier.0 as usize] = Sight::Hidden;
                self.define(one.result)
            }
            _ => self.define(one.result),
        }
    }

    fn hide(&mut self, body: &[Instruction]) {
        for one in body {
            self.sight[one.result.0 as usize] = Sight::Hidden;
            if let Op::IfAny { yields, .. } = &one.op {
                yields.iter().for_each(|one| self.sight[one.outer.0 as usize] = Sight::Hidden);
            }
        }
    }

    fn numbers(&self, one: &Instruction) -> Result<(), Fault> {
        match one.op {
            Op::Basis { bit, .. } if bit > 7 => fault(one.result, format!("a byte has no bit {bit}")),
            Op::Basis { delay, .. } if delay > MAX_DELAY => {
                fault(one.result, format!("a delay of {delay} is more than {MAX_DELAY}"))
            }
            Op::Advance { by, .. } if by == 0 || by > MAX_ADVANCE => {
                fault(one.result, format!("an advance by {by} is not within 1 to {MAX_ADVANCE}"))
            }
            _ => Ok(()),
        }
    }

    fn carry(&mut self, one: &Instruction, in_if: bool) -> Result<(), Fault> {
        let Some(carry) = one.op.carry() else { return Ok(()) };
        if in_if {
            return fault(one.result, "it carries, inside a body that may be skipped");
        }
        match self.carried.get_mut(carry.0 as usize) {
            None => fault(one.result, format!("the program has no carry {}", carry.0)),
            Some(true) => fault(one.result, format!("carry {} has an owner already", carry.0)),
            Some(owned) => {
                *owned = true;
                Ok(())
            }
        }
    }
}
