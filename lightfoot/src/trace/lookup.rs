//! Resolves the names of metrics before the program starts.
//!
//! Columns must be known before the first record. So names are resolved in the program's files:
//! functions and variables by symbols (`function.rs`), lines by debug information, addresses as
//! they are. The error for an unknown name suggests the nearest ones.

use super::libraries::{files, files_of_process, interpreted};
use super::metric::Spec;
use super::request::Request;
use super::target::{MetricTarget, Targets};
use anyhow::{bail, Result};
use std::ffi::OsStr;
use symbol::Listing;

impl Targets {
    /// Resolves the metrics `specs` in the files of `program`.
    ///
    /// # Errors
    /// When there is no such program, or a metric names what it does not have.
    pub fn new(program: &OsStr, specs: &[Spec]) -> Result<Targets> {
        match specs.is_empty() {
            true => Ok(Targets::default()),
            false => Targets::within(files(&interpreted(instrument::locate(program)?)?), specs),
        }
    }

    /// Resolves the metrics `specs` in the files that a request's program has, or has mapped.
    ///
    /// # Errors
    /// Those of [`Targets::new`].
    pub(super) fn of(request: &Request, specs: &[Spec]) -> Result<Targets> {
        match request.running {
            Some(running) if !specs.is_empty() => Targets::within(files_of_process(running.pid), specs),
            _ => Targets::new(&request.command.program, specs),
        }
    }

    fn within(files: Vec<Listing>, specs: &[Spec]) -> Result<Targets> {
        let mut targets = Targets { files, ..Targets::default() };
        for spec in specs {
            match spec {
                Spec::Function(named) => targets.functions(named)?,
                Spec::Variable(named) => targets.variable(named)?,
                Spec::Line(file, line) => targets.line(file, *line)?,
                Spec::Addresses(range) => targets.add(spec.to_string(), MetricTarget::Memory(range.clone())),
            }
        }
        Ok(targets)
    }

    fn line(&mut self, name: &str, line: u32) -> Result<()> {
        let mut known = false;
        for file in 0..self.files.len() {
            let addresses = self.files[file].lines(name, line);
            known |= addresses.is_some();
            if let Some(addresses) = addresses.filter(|addresses| !addresses.is_empty()) {
                self.add(format!("line:{name}:{line}"), MetricTarget::Code { file, addresses });
                return Ok(());
            }
        }
        match known {
            true => bail!("there is no code for line {line} of {name}: another line of the statement may have it"),
            false => bail!("line:{name}:{line} needs debug information, and neither the program nor its libraries have any: compile with -g"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_the_program_and_in_its_libraries() {
        let program = std::env::current_exe().unwrap();
        let look = |text: &str| Targets::new(program.as_os_str(), &[Spec::parse(text).unwrap()]);
        let found = look("fn:getenv").unwrap();
        let MetricTarget::Code { file, addresses } = &found.columns[0].place else { panic!() };
        assert!(*file > 0 && addresses.len() == 1);
        let refused = look("fn:getenw").unwrap_err().to_string();
        assert!(refused.contains("did you mean") && refused.contains("getenv"), "{refused}");
        assert!(look("fn:libc!malloc").unwrap().columns[0].name == "fn:libc!malloc");
        assert!(look("fn:memcpy").unwrap_err().to_string().contains("IFUNC"));
        assert!(look("fn:nosuchlib!x").unwrap_err().to_string().contains("nosuchlib"));
        assert!(look("var:environ").unwrap().has_data());
    }
}
