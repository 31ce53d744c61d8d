//! fish: one line for each option, under the condition that its command stands before the cursor.

use super::{before_program, words};
use crate::cli::{Opt, Page};
use std::fmt::Write;

/// Where the cursor is: sets `page` and what is left of the words when the program begins.
const DRIVER: &str = r#"
function __lightfoot_page --description 'the command at the cursor, or program and its words'
  set -l words (commandline -opc)
  set -l page lightfoot
  set -l plain 0
  set -e words[1]
  while set -q words[1]
    set -l each $words[1]
    set -e words[1]
    if test $each = --
      if not contains -- -1 (__lightfoot_program $page)
        set page program
        break
      end
    else if string match -q -- '-*' $each
      contains -- $each (__lightfoot_taking $page); and set -e words[1]
    else if contains -- $each (__lightfoot_commands $page)
      set page $page-$each
    else if contains -- $plain (__lightfoot_program $page)
      set words $each $words
      set page program
      break
    else
      set plain (math $plain + 1)
    end
  end
  if contains -- $plain (__lightfoot_program $page); and not string match -q -- '-*' (commandline -ct)
    set plain program
  end
  printf '%s\n' $page $plain $words
end

function __lightfoot_at --description 'whether the cursor is behind this command'
  set -l found (__lightfoot_page)
  test $found[1] = $argv[1]
end

function __lightfoot_first --description 'whether the first word that is no option is asked for'
  set -l found (__lightfoot_page)
  test $found[1] = $argv[1] -a $found[2] = 0
end

function __lightfoot_in_program --description 'whether the program has begun, or would begin here'
  set -l found (__lightfoot_page)
  test $found[1] = program -o $found[2] = program
end

function __lightfoot_program_words --description 'what the program itself would be completed with'
  set -l found (__lightfoot_page)
  set -l words (string escape -- $found[3..-1]) (commandline -ct)
  set words (string join ' ' -- $words)
  complete "-C$words"
end

complete -c lightfoot -n __lightfoot_in_program -a '(__lightfoot_program_words)'
"#;

pub(super) fn script(root: &Page) -> String {
    let mut out = String::from(
        "# fish completions of lightfoot: put this file into ~/.config/fish/completions as lightfoot.fish.\n",
    );
    let taking =
        |page: &Page| page.options().flat_map(|option| option.valued().collect::<Vec<_>>()).collect();
    let commands = |page: &Page| page.commands.iter().filter_map(|page| page.words.last()).cloned().collect();
    function(&mut out, root, "taking", taking);
    function(&mut out, root, "commands", commands);
    function(&mut out, root, "program", |page| {
        vec![before_program(page).map_or("-1".to_owned(), |words| words.to_string())]
    });
    out += DRIVER;
    for page in root.all() {
        let at = format!("complete -c lightfoot -n '__lightfoot_at {}'", page.named("-"));
        for command in &page.commands {
            let name = command.words.last().map_or("", String::as_str);
            let _ = writeln!(out, "{at} -f -a {name} -d '{}'", quoted(&command.about));
        }
        for option in page.options() {
            let _ = writeln!(out, "{at}{}", line(option));
            if let Some(long) = &option.negated {
                let _ = writeln!(out, "{at} -f -l {long} -d 'Take --{} back.'", option.longs[0]);
            }
        }
        if let Some(place) = page.places.first().filter(|place| !place.choices.is_empty()) {
            let first = format!("complete -c lightfoot -n '__lightfoot_first {}'", page.named("-"));
            for choice in &place.choices {
                let _ = writeln!(out, "{first} -f -a {} -d '{}'", choice.name, quoted(&choice.about));
            }
        }
    }
    out
}

/// A function from a page to words.
fn function(out: &mut String, root: &Page, name: &str, words: impl Fn(&Page) -> Vec<String>) {
    let _ = writeln!(out, "\nfunction __lightfoot_{name}\n  switch $argv[1]");
    for page in root.all() {
        let words = words(page);
        if !words.is_empty() {
            let _ = writeln!(out, "    case {}\n      printf '%s\\n' {}", page.named("-"), words.join(" "));
        }
    }
    *out += "  end\nend\n";
}

fn line(option: &Opt) -> String {
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
