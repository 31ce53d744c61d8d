//! Writes files for `callgrind_annotate` and KCachegrind, with calls and inclusive costs.
//!
//! A function belongs to an object and a file; code that was inlined from another file begins with
//! `fi=` and ends with `fe=`. A `calls=` line is followed by one with the line of the call and its
//! inclusive cost. The cost of a recursion belongs to the outermost call; inner calls have a number
//! of calls and no cost, so that no function's inclusive cost exceeds the total. If there are
//! several processes, calls are unknown: each process is written as the caller of all functions
//! that it ran, so that viewers show which process a cost belongs to. Source: the Valgrind manual,
//! "Callgrind Format Specification".

use super::abbreviation::{Abbreviations, Kind};
use super::cachegrind::{columns, command, costs, is_something, machine};
use super::detail::{Call, Detail, Function, Part};
use super::measurement::Report;
use super::metric::Metric;
use present::terminal::printable;
use std::fmt::Write;
use symbol::UNKNOWN;

type Columns = Vec<(&'static Metric, &'static str)>;

/// The report as a whole file.
pub fn show(report: &Report, detail: &Detail) -> String {
    let columns = columns(report);
    let events: Vec<&str> = columns.iter().map(|(_, event)| *event).collect();
    let mut out = format!("# callgrind format\nversion: 1\ncreator: lightfoot {}\n", report.version);
    let _ = writeln!(out, "cmd: {}\npart: 1\n\ndesc: {}", command(report), machine(report));
    let _ = writeln!(out, "\npositions: line\nevents: {}", events.join(" "));
    let _ = writeln!(out, "summary:{}\n", costs(&columns, &report.totals));
    let mut writer = Writer { detail, columns: &columns, names: Abbreviations::new(), out };
    for function in &detail.functions {
        writer.function(function);
    }
    // A single process has no list of processes.
    for process in detail.processes.iter().filter(|_| detail.processes.len() > 1) {
        writer.process(process);
    }
    let mut out = writer.out;
    let _ = writeln!(out, "totals:{}", costs(&columns, &report.totals));
    out
}

struct Writer<'a> {
    detail: &'a Detail,
    columns: &'a Columns,
    names: Abbreviations<&'a str>,
    out: String,
}

impl<'a> Writer<'a> {
    fn line(&mut self, key: &str, kind: Kind, name: &'a str) {
        let name = self.names.name(kind, name, &printable(name));
        let _ = writeln!(self.out, "{key}={name}");
    }

    fn function(&mut self, function: &'a Function) {
        self.line("ob", Kind::Object, &function.library);
        self.line("fl", Kind::File, &function.file);
        self.line("fn", Kind::Function, &function.name);
        let detail = self.detail;
        let mut at = function.file.as_str();
        for (&(file, line), counts) in &function.lines {
            if is_something(self.columns, counts) {
                self.in_file(&mut at, &function.file, &detail.files[file as usize]);
                let _ = writeln!(self.out, "{line}{}", costs(self.columns, counts));
            }
        }
        for (&((file, line), callee), call) in &function.calls {
            self.in_file(&mut at, &function.file, &detail.files[file as usize]);
            self.call(line, &detail.functions[callee], call);
        }
        self.out.push('\n');
    }

    /// Writes a process as the caller of all functions that it ran.
    fn process(&mut self, process: &'a Part) {
        self.line("ob", Kind::Object, &process.program);
        self.line("fl", Kind::File, UNKNOWN);
        self.line("fn", Kind::Function, &process.name);
        let detail = self.detail;
        for (callee, counts) in &process.functions {
            self.call(0, &detail.functions[*callee], &Call { times: 1, counts: *counts });
        }
        self.out.push('\n');
    }

    /// Writes a change of the file, if `file` is not the current one.
    fn in_file(&mut self, at: &mut &'a str, own: &str, file: &'a str) {
        if *at != file {
            self.line(if file == own { "fe" } else { "fi" }, Kind::File, file);
            *at = file;
        }
    }

    fn call(&mut self, line: u32, callee: &'a Function, call: &Call) {
        self.line("cob", Kind::Object, &callee.library);
        self.line("cfi", Kind::File, &callee.file);
        self.line("cfn", Kind::Function, &callee.name);
        let _ = writeln!(self.out, "calls={} {}", call.times, callee.first_line);
        let _ = writeln!(self.out, "{line}{}", costs(self.columns, &call.counts));
    }
}
