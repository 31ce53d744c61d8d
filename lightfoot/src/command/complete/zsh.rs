//! zsh: a function for each command, in the language of `_arguments`.

use super::words;
use crate::cli::{Choice, Kind, Opt, Page, Place};
use std::fmt::Write;

pub(super) fn script(root: &Page) -> String {
    let mut out = String::from(
        "#compdef lightfoot\n# zsh completions of lightfoot: put this file into a folder of $fpath as _lightfoot, or source it.\n",
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
    out + "\nif [[ ${funcstack[1]} == _lightfoot ]]; then _lightfoot \"$@\"; else compdef _lightfoot lightfoot; fi\n"
}

/// A command that has commands.
fn inner(page: &Page, out: &mut String) {
    let _ = writeln!(
        out,
        "  local context state state_descr line\n  typeset -A opt_args\n  _arguments -C {} \\\n    '1: :->command' '*:: :->rest'",
        specifications(page).join(" \\\n    ")
    );
    *out += "  case $state in\n    command)\n      local -a commands=(\n";
    for command in &page.commands {
        let name = command.words.last().map_or("", String::as_str);
        let _ = writeln!(out, "        '{name}:{}'", quoted(&command.about));
    }
    let _ = writeln!(
        out,
        "      )\n      _describe -t commands command commands ;;\n    rest)\n      (( $+functions[{0}_$words[1]] )) && {0}_$words[1] ;;\n  esac",
        function(page)
    );
}

fn function(page: &Page) -> String {
    format!("_{}", page.named("_"))
}

/// What `_arguments` is told.
fn specifications(page: &Page) -> Vec<String> {
    let options = page.options().flat_map(specify);
    let places = page.places.iter().enumerate().flat_map(|(index, place)| position(index, place));
    options.chain(places).collect()
}

fn specify(option: &Opt) -> Vec<String> {
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

fn position(index: usize, place: &Place) -> Vec<String> {
    match (place.kind, place.choices.as_slice()) {
        (Kind::Program, _) => {
            vec![
                format!("'(-){}:program: _command_names -e'", index + 1),
                "'*::argument: _normal'".to_owned(),
            ]
        }
        (Kind::File, []) => vec![format!("'*:{}:_files'", plain(&place.name))],
        (Kind::File, choices) => {
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
