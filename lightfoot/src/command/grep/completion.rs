//! Completions of four shells, from the table of flags.
//!
//! They complete the flags of `lightfoot grep`, the values of flags that have few, and paths elsewhere. The words `lightfoot grep` are two, so each
//! script first looks whether the second one is `grep`.

use super::flag::{all, Flag};
use std::fmt::Write;

/// Every way to write a flag.
fn spellings(flag: &Flag) -> Vec<String> {
    let short = flag.short.map(|short| format!("-{short}"));
    let longs = [flag.long].into_iter().chain(flag.aliases.iter().copied()).chain(flag.negated);
    short.into_iter().chain(longs.map(|long| format!("--{long}"))).collect()
}

/// bash
pub(super) fn bash() -> String {
    let words: Vec<String> = all().flat_map(spellings).collect();
    let mut cases = String::new();
    for flag in all().filter(|flag| !flag.choices.is_empty()) {
        let _ = writeln!(
            cases,
            "    --{}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;",
            flag.long,
            flag.choices.join(" ")
        );
    }
    format!(
        "_lightfoot_grep() {{\n  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n  \
         [ \"${{COMP_WORDS[1]}}\" = grep ] || return\n  case \"$before\" in\n{cases}  esac\n  case \"$word\" in\n    \
         -*) COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;\n    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}}\n\
         complete -o filenames -F _lightfoot_grep lightfoot\n",
        words.join(" ")
    )
}

/// zsh
pub(super) fn zsh() -> String {
    let mut lines = String::new();
    for flag in all() {
        let about =
            flag.about.replace('\'', "'\\''").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:");
        let value = match (flag.value, flag.choices) {
            (None, _) => String::new(),
            (Some(value), []) => format!(":{}:_files", value.replace(':', "\\:")),
            (Some(value), choices) => format!(":{value}:({})", choices.join(" ")),
        };
        let equals = if flag.value.is_some() { "=" } else { "" };
        for spelling in spellings(flag) {
            let negated = flag.negated.is_some_and(|negated| spelling == format!("--{negated}"));
            let (equals, value) = match (negated, spelling.starts_with("--")) {
                (true, _) => ("", ""),
                (_, true) => (equals, value.as_str()),
                (_, false) => (if equals.is_empty() { "" } else { "+" }, value.as_str()),
            };
            let _ = writeln!(lines, "    '*{spelling}{equals}[{about}]{value}' \\");
        }
    }
    format!(
        "#compdef lightfoot\n_lightfoot() {{\n  [[ ${{words[2]}} == grep ]] || return\n  _arguments -s -S \\\n{lines}    \
         '*: :_files'\n}}\ncompdef _lightfoot lightfoot\n"
    )
}

/// fish
pub(super) fn fish() -> String {
    let mut out = String::new();
    for flag in all() {
        let about = flag.about.replace('\\', "\\\\").replace('\'', "\\'");
        let short = flag.short.map_or(String::new(), |short| format!(" -s {short}"));
        let value = match (flag.value, flag.choices) {
            (None, _) => String::new(),
            (Some(_), []) => String::from(" -r"),
            (Some(_), choices) => format!(" -x -a '{}'", choices.join(" ")),
        };
        let seen = "-n '__fish_seen_subcommand_from grep'";
        let _ = writeln!(out, "complete -c lightfoot {seen}{short} -l {}{value} -d '{about}'", flag.long);
        for name in flag.aliases.iter().copied().chain(flag.negated) {
            let _ = writeln!(out, "complete -c lightfoot {seen} -l {name}");
        }
    }
    out
}

/// PowerShell
pub(super) fn powershell() -> String {
    let mut lines = String::new();
    for flag in all() {
        for spelling in spellings(flag) {
            let _ = writeln!(lines, "    @('{spelling}', '{}')", flag.about.replace('\'', "''"));
        }
    }
    format!(
        "Register-ArgumentCompleter -Native -CommandName lightfoot -ScriptBlock {{\n  param($word, $line)\n  \
         if ($line.CommandElements[1].Value -ne 'grep') {{ return }}\n  @(\n{lines}  ) | Where-Object {{ $_[0] -like \"$word*\" }} | \
         ForEach-Object {{ [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterName', $_[1]) }}\n}}\n"
    )
}
