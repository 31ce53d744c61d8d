//! Completions for fish: one line for each option, with the condition that its command stands
//! before the cursor.

use super::template::{with_names, words};
use crate::help::{CommandHelp, OptionHelp};
use std::fmt::Write;

/// Where the cursor is: sets `page` and what is left of the words when the program begins.
const DRIVER: &str = r#"
function __@ID@_page --description 'the command at the cursor, or program and its words'
  set -l words (commandline -opc)
  set -l page @NAME@
  set -l plain 0
  set -e words[1]
  while set -q words[1]
    set -l each $words[1]
    set -e words[1]
    if test $each = --
      if not contains -- -1 (__@ID@_program $page)
        set page program
        break
      end
    else if string match -q -- '-*' $each
      contains -- $each (__@ID@_taking $page); and set -e words[1]
    else if contains -- $each (__@ID@_commands $page)
      set page $page-$each
    else if contains -- $plain (__@ID@_program $page)
      set words $each $words
      set page program
      break
    else
      set plain (math $plain + 1)
    end
  end
  if contains -- $plain (__@ID@_program $page); and not string match -q -- '-*' (commandline -ct)
    set plain program
  end
  printf '%s\n' $page $plain $words
end

function __@ID@_at --description 'whether the cursor is behind this command'
  set -l found (__@ID@_page)
  test $found[1] = $argv[1]
end

function __@ID@_first --description 'whether the first word that is no option is asked for'
  set -l found (__@ID@_page)
  test $found[1] = $argv[1] -a $found[2] = 0
end

function __@ID@_in_program --description 'whether the program has begun, or would begin here'
  set -l found (__@ID@_page)
  test $found[1] = program -o $found[2] = program
end

function __@ID@_program_words --description 'what the program itself would be completed with'
  set -l found (__@ID@_page)
  set -l words (string escape -- $found[3..-1]) (commandline -ct)
  set words (string join ' ' -- $words)
  complete "-C$words"
end

complete -c @NAME@ -n __@ID@_in_program -a '(__@ID@_program_words)'
"#;

pub(crate) fn script(root: &CommandHelp) -> String {
    let mut out = String::from(
        "# fish completions of @NAME@: put this file into ~/.config/fish/completions as @NAME@.fish.\n",
    );
    // The driver walks over the words before the cursor and asks three tables: which options take a
    // value, which words are commands, and after how many operands a program begins.
    let taking =
        |page: &CommandHelp| page.options().flat_map(|option| option.valued().collect::<Vec<_>>()).collect();
    let commands =
        |page: &CommandHelp| page.commands.iter().filter_map(|page| page.words.last()).cloned().collect();
    function(&mut out, root, "taking", taking);
    function(&mut out, root, "commands", commands);
    // -1 stands for a command that takes no program; no count of words equals it.
    function(&mut out, root, "program", |page| {
        vec![page.before_program().map_or("-1".to_owned(), |words| words.to_string())]
    });
    out += DRIVER;
    for page in root.all() {
        let at = format!("complete -c @NAME@ -n '__@ID@_at {}'", page.named("-"));
        for command in &page.commands {
            let name = command.last();
            let _ = writeln!(out, "{at} -f -a {name} -d '{}'", quoted(&command.about));
        }
        for option in page.options() {
            let _ = writeln!(out, "{at}{}", line(option));
            if let Some(long) = &option.negated {
                let _ = writeln!(out, "{at} -f -l {long} -d 'Take --{} back.'", option.longs[0]);
            }
        }
        // Choices belong to the first operand, so they are offered only before any other word.
        if let Some(place) = page.operands.first().filter(|place| !place.choices.is_empty()) {
            let first = format!("complete -c @NAME@ -n '__@ID@_first {}'", page.named("-"));
            for choice in &place.choices {
                let _ = writeln!(out, "{first} -f -a {} -d '{}'", choice.name, quoted(&choice.about));
            }
        }
    }
    with_names(root, &out)
}

/// A function from a page to words.
fn function(out: &mut String, root: &CommandHelp, name: &str, words: impl Fn(&CommandHelp) -> Vec<String>) {
    let _ = writeln!(out, "\nfunction __@ID@_{name}\n  switch $argv[1]");
    for page in root.all() {
        let words = words(page);
        if !words.is_empty() {
            let _ = writeln!(out, "    case {}\n      printf '%s\\n' {}", page.named("-"), words.join(" "));
        }
    }
    *out += "  end\nend\n";
}

fn line(option: &OptionHelp) -> String {
    let mut line = option.short.map_or(String::new(), |short| format!(" -s {short}"));
    for long in &option.longs {
        let _ = write!(line, " -l {long}");
    }
    match (&option.value, option.choices.as_slice()) {
        (None, _) => line += " -f",
        (Some(_), []) => line += " -r",
        (Some(_), choices) => {
            let _ = write!(line, " -x -a '{}'", words(choices));
        }
    }
    format!("{line} -d '{}'", quoted(&option.about))
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}
