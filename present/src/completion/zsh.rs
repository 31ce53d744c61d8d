//! zsh: a function for each command, in the language of `_arguments`.

use super::template::{with_names, words};
use crate::help::{Choice, CommandHelp, Operand, OperandKind, OptionHelp};
use std::fmt::Write;

pub(crate) fn script(root: &CommandHelp) -> String {
    let mut out = String::from(
        "#compdef @NAME@\n# zsh completions of @NAME@: put this file into a folder of $fpath as _@NAME@, or source it.\n",
    );
    for page in root.all() {
        let _ = writeln!(out, "\n{}() {{", function(page));
        if page.commands.is_empty() {
            let _ = writeln!(out, "  _arguments -s -S {}", specifications(page).join(" \\\n    "));
        } else {
            inner(page, &mut out);
        }
        out += "}\n";
    }
    let end = "\nif [[ ${funcstack[1]} == _@NAME@ ]]; then _@NAME@ \"$@\"; else compdef _@NAME@ @NAME@; fi\n";
    with_names(root, &(out + end))
}

/// A command that has commands.
fn inner(page: &CommandHelp, out: &mut String) {
    let _ = writeln!(
        out,
        "  local context state state_descr line\n  typeset -A opt_args\n  _arguments -C {} \\\n    '1: :->command' '*:: :->rest'",
        specifications(page).join(" \\\n    ")
    );
    *out += "  case $state in\n    command)\n      local -a commands=(\n";
    for command in &page.commands {
        let name = command.last();
        let _ = writeln!(out, "        '{name}:{}'", quoted(&command.about));
    }
    let _ = writeln!(
        out,
        "      )\n      _describe -t commands command commands ;;\n    rest)\n      (( $+functions[{0}_$words[1]] )) && {0}_$words[1] ;;\n  esac",
        function(page)
    );
}

fn function(page: &CommandHelp) -> String {
    format!("_{}", page.named("_"))
}

/// What `_arguments` is told.
fn specifications(page: &CommandHelp) -> Vec<String> {
    let options = page.options().flat_map(specify);
    let places = page.operands.iter().enumerate().flat_map(|(index, place)| position(index, place));
    options.chain(places).collect()
}

fn specify(option: &OptionHelp) -> Vec<String> {
    let action = match (&option.value, option.choices.as_slice()) {
        (None, _) => None,
        (Some(value), []) => Some(format!(":{}:_files", plain(value))),
        (Some(value), choices) => Some(format!(":{}:{}", plain(value), alternatives(choices))),
    };
    let about = plain(&option.about);
    let one = |spelling: String| match (&action, spelling.starts_with("--")) {
        _ if option.negated.as_ref().is_some_and(|negated| spelling[2..] == **negated) => {
            format!("'*{spelling}[Take --{} back.]'", option.longs[0])
        }
        (None, _) => format!("'*{spelling}[{about}]'"),
        (Some(action), true) => format!("'*{spelling}=[{about}]{action}'"),
        (Some(action), false) => format!("'*{spelling}+[{about}]{action}'"),
    };
    option.spellings().map(one).collect()
}

fn position(index: usize, place: &Operand) -> Vec<String> {
    match (place.kind, place.choices.as_slice()) {
        (OperandKind::Program, _) => {
            vec![
                format!("'(-){}:program: _command_names -e'", index + 1),
                "'*::argument: _normal'".to_owned(),
            ]
        }
        (OperandKind::File, []) => vec![format!("'*:{}:_files'", plain(&place.name))],
        (OperandKind::File, choices) => {
            vec![format!("'{}:{}:{}'", index + 1, plain(&place.name), alternatives(choices))]
        }
    }
}

fn alternatives(choices: &[Choice]) -> String {
    format!("({})", words(choices))
}

/// Within an apostrophe-quoted word.
fn quoted(text: &str) -> String {
    text.replace('\'', "'\\''")
}

/// Within a specification, where brackets and colons mean something.
fn plain(text: &str) -> String {
    quoted(&text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:"))
}
