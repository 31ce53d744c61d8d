//! bash, from version 4.

use super::{before_program, words};
use crate::cli::Page;
use std::fmt::Write;

/// What does not depend on the commands: where the cursor is, and what may stand there.
const DRIVER: &str = r#"
_lightfoot() {
  local page commands options taking program plain_words word before each at=1 plain=0 reached=
  COMPREPLY=()
  word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  if [[ $word == "=" ]]; then word=
  elif [[ $before == "=" ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
  _lightfoot_page lightfoot
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
      _lightfoot_page "$page $each"
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
    _lightfoot_offer "$(_lightfoot_values "$page $before")"
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif (( plain == 0 )); then
    _lightfoot_offer "$commands $plain_words"
  else
    _lightfoot_offer ""
  fi
}

_lightfoot_offer() {
  if [[ ${1// } ]]; then mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word")
  else compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
}

complete -F _lightfoot lightfoot
"#;

pub(super) fn script(root: &Page) -> String {
    let mut out = String::from("# bash completions of lightfoot: source this file, or put it into the folder of bash-completion.\n\n");
    out += "_lightfoot_page() {\n  page=$1\n  case $1 in\n";
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
        let plain = page.places.first().map_or(String::new(), |place| words(&place.choices));
        let program = before_program(page).map_or(-1, |words| words as i64);
        let _ = writeln!(out, "      plain_words='{plain}' program={program} ;;");
    }
    out += "  esac\n}\n\n_lightfoot_values() {\n  case $1 in\n";
    for page in root.all() {
        for option in page.options().filter(|option| !option.choices.is_empty()) {
            let named: Vec<String> =
                option.valued().map(|spelling| format!("\"{} {spelling}\"", page.name())).collect();
            let _ = writeln!(out, "    {}) echo '{}' ;;", named.join("|"), words(&option.choices));
        }
    }
    out + "  esac\n}\n" + DRIVER
}
