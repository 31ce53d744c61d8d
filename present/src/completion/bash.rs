//! bash, from version 4.

use super::template::{with_names, words};
use crate::help::CommandHelp;
use std::fmt::Write;

/// What comes before the tables.
const HEAD: &str = "\
# bash completions of @NAME@: source this file, or put it into the folder of bash-completion.

_@ID@_page() {
  page=$1
  case $1 in
";

/// What does not depend on the commands: where the cursor is, and what may stand there.
const DRIVER: &str = r#"
_@ID@() {
  local page commands options taking program plain_words word before each at=1 plain=0 reached=
  COMPREPLY=()
  word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  if [[ $word == "=" ]]; then word=
  elif [[ $before == "=" ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
  _@ID@_page @NAME@
  while (( at < COMP_CWORD )); do
    each=${COMP_WORDS[at]}
    if [[ $each == -- ]]; then
      (( at += 1 ))
      (( program >= 0 )) && reached=1
      break
    elif [[ $each == -* ]]; then
      if [[ " $taking " == *" $each "* ]]; then
        [[ ${COMP_WORDS[at+1]} == "=" ]] && (( at += 1 ))
        (( at += 1 ))
      fi
    elif [[ " $commands " == *" $each "* ]]; then
      _@ID@_page "$page $each"
    elif (( plain == program )); then
      reached=1
      break
    else
      (( plain += 1 ))
    fi
    (( at += 1 ))
  done
  if [[ $reached && $at -lt $COMP_CWORD ]]; then
    if declare -F _command_offset >/dev/null; then _command_offset "$at"
    else compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
  elif [[ $reached || ( $word != -* && $plain == "$program" && " $taking " != *" $before "* ) ]]; then
    compopt -o filenames; mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
  elif [[ " $taking " == *" $before "* ]]; then
    _@ID@_offer "$(_@ID@_values "$page $before")"
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif (( plain == 0 )); then
    _@ID@_offer "$commands $plain_words"
  else
    _@ID@_offer ""
  fi
}

_@ID@_offer() {
  if [[ ${1// } ]]; then mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word")
  else compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
}

complete -F _@ID@ @NAME@
"#;

pub(crate) fn script(root: &CommandHelp) -> String {
    let mut out = String::from(HEAD);
    for page in root.all() {
        let _ = writeln!(out, "    \"{}\")", page.name());
        let commands = page.commands.iter().filter_map(|page| page.words.last()).cloned();
        let lists = [
            ("commands", commands.collect::<Vec<_>>()),
            ("options", page.options().flat_map(|option| option.spellings().collect::<Vec<_>>()).collect()),
            ("taking", page.options().flat_map(|option| option.valued().collect::<Vec<_>>()).collect()),
        ];
        for (name, list) in lists {
            let _ = writeln!(out, "      {name}='{}'", list.join(" "));
        }
        let plain = page.operands.first().map_or(String::new(), |place| words(&place.choices));
        let program = page.before_program().map_or(-1, |words| words as i64);
        let _ = writeln!(out, "      plain_words='{plain}' program={program} ;;");
    }
    out += "  esac\n}\n\n_@ID@_values() {\n  case $1 in\n";
    for page in root.all() {
        for option in page.options().filter(|option| !option.choices.is_empty()) {
            let named: Vec<String> =
                option.valued().map(|spelling| format!("\"{} {spelling}\"", page.name())).collect();
            let _ = writeln!(out, "    {}) echo '{}' ;;", named.join("|"), words(&option.choices));
        }
    }
    with_names(root, &(out + "  esac\n}\n" + DRIVER))
}
