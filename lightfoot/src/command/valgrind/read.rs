//! Reads a command line in Valgrind's manner, with what files and the environment add to it.

use super::options::{self, Effect};
use super::settings::{Settings, Tool};
use std::ffi::OsString;
use std::path::Path;

/// What a command line asks for.
#[derive(Debug)]
pub(super) enum Asked {
    /// The version.
    Version(String),
    /// Help.
    Help,
    /// The table of options.
    Options,
    /// Links to this executable in a folder.
    Install(OsString),
    /// The valgrind at a path, because the tool is none of ours or an option is not possible here;
    /// with the options of files and of the environment.
    Other(String, Vec<String>),
    /// A run of a program, whose words may be none.
    Run(Box<Settings>, Vec<OsString>),
}

/// Words that are answered here, whatever the tool is.
const HERE: [&str; 5] = ["--version", "-h", "--help", "--options", "--install"];

/// Reads a command line, behind the options of configuration files and of `$VALGRIND_OPTS`.
///
/// # Errors
/// One sentence for what is not known or not possible.
pub(super) fn read(words: &[OsString]) -> Result<Asked, String> {
    let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-") && *word != "--";
    let options = words.iter().take_while(is_option).count();
    let (own, rest) = words.split_at(options);
    let rest = rest.strip_prefix(&[OsString::from("--")][..]).unwrap_or(rest);
    let own: Vec<String> = own.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_alone = own.iter().any(|word| word == "--command-line-only=yes");
    let configured = if is_alone { Vec::new() } else { configured() };
    let last = |name: &str| configured.iter().chain(&own).rev().find_map(|word| word.strip_prefix(name));
    let tool = last("--tool=").unwrap_or("memcheck");
    let is_answered_here = own.iter().any(|word| HERE.contains(&word.as_str()));
    let other = last("--fallback=").filter(|path| !path.is_empty() && !is_answered_here);
    let other = other.map(|path| Asked::Other(path.to_owned(), configured.clone()));
    // The options of another valgrind are its own, so it is found before any of them is read.
    match (read_options(tool, &configured, &own, rest), other) {
        (_, Some(other)) if Tool::named(tool).is_none() => Ok(other),
        (Err(Refusal { of: Owner::Valgrind, .. }), Some(other)) => Ok(other),
        (Err(refusal), _) => Err(refusal.why),
        (Ok(asked), _) => Ok(asked),
    }
}

/// Why an option cannot be obeyed.
struct Refusal {
    why: String,
    of: Owner,
}

/// Who knows an option.
enum Owner {
    /// Valgrind may.
    Valgrind,
    /// We alone do.
    Lightfoot,
}

/// Reads options, behind those of files and of the environment.
fn read_options(
    tool: &str,
    configured: &[String],
    own: &[String],
    rest: &[OsString],
) -> Result<Asked, Refusal> {
    let mut settings = Settings::default();
    for word in configured {
        apply(&mut settings, tool, word)?;
    }
    let described = own.iter().filter(|word| !word.starts_with("--tool="));
    settings.massif.described = described.map(String::as_str).collect::<Vec<_>>().join(" ");
    for (index, word) in own.iter().enumerate() {
        match word.as_str() {
            "--version" => return Ok(Asked::Version(settings.version)),
            "-h" | "--help" | "--help-debug" | "--help-dyn-options" => return Ok(Asked::Help),
            "--options" => return Ok(Asked::Options),
            "--install" => {
                let folder = own.get(index + 1).map(OsString::from).or_else(|| rest.first().cloned());
                return folder.map(Asked::Install).ok_or_else(|| Refusal {
                    why: "--install needs the folder in which the link is to be made".into(),
                    of: Owner::Lightfoot,
                });
            }
            word => apply(&mut settings, tool, word)?,
        }
    }
    Ok(Asked::Run(Box::new(settings), rest.to_vec()))
}

/// Obeys an option. One that begins with the name of a tool (`--memcheck:leak-check=yes`) is for
/// that tool alone.
fn apply(all: &mut Settings, tool: &str, word: &str) -> Result<(), Refusal> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let own_name;
    let name = match name.split_once(':') {
        Some((owner, _)) if owner.strip_prefix("--") != Some(tool) => return Ok(()),
        Some((_, behind)) => {
            own_name = format!("--{behind}");
            own_name.as_str()
        }
        None => name,
    };
    let Some(known) = options::find(name) else {
        let nearest = options::nearest(name).map(|near| format!("; did you mean {near}?"));
        let why = format!("Unknown option: {word}{}", nearest.unwrap_or_default());
        return Err(Refusal { why, of: Owner::Valgrind });
    };
    let of = if options::OURS.contains(&name) { Owner::Lightfoot } else { Owner::Valgrind };
    let done = match known.effect {
        Effect::Obeyed(set) => set(all, value).map_err(|why| format!("Bad option: {word}: {why}")),
        Effect::Same(_) if (tool, name) == ("massif", "--xtree-memory") && value != "none" => {
            Err(format!("option {word} is not possible here: no tree of calls is written"))
        }
        Effect::Same(_) => Ok(()),
        Effect::Refused(_) if value == "no" => Ok(()),
        Effect::Refused(why) => Err(format!("option {word} is not possible here: {why}")),
    };
    done.map_err(|why| Refusal { why, of })
}

/// The options in `~/.valgrindrc`, `$VALGRIND_OPTS` and `./.valgrindrc`. A file here that others
/// can write is not read.
fn configured() -> Vec<String> {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    // Some callers clear the environment; the system's list of users has the home directory too.
    let home = std::env::home_dir().map(|home| read(&home.join(".valgrindrc")));
    let variable = std::env::var("VALGRIND_OPTS").unwrap_or_default();
    let here = Path::new(".valgrindrc");
    let here = if is_trusted(here) { read(here) } else { String::new() };
    let all = [home.unwrap_or_default(), variable, here].join("\n");
    let lines = all.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

fn is_trusted(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let own = rustix::process::geteuid().as_raw();
    path.metadata().is_ok_and(|about| about.is_file() && about.uid() == own && about.mode() & 0o002 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Asked, String> {
        super::read(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_first_word_without_a_dash_is_the_program() {
        let Ok(Asked::Run(settings, program)) =
            read(&["--tool=callgrind", "--toggle-collect=a::*", "./p", "--tool=x", "--", "-q"])
        else {
            panic!()
        };
        assert_eq!((settings.tool.as_str(), settings.collects_at_start), ("callgrind", false));
        assert_eq!(program, ["./p", "--tool=x", "--", "-q"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(read(&["--tol=none"]).unwrap_err(), "Unknown option: --tol=none; did you mean --tool?");
        let refused = read(&["--collect-bus=yes"]).unwrap_err();
        assert!(refused.contains("--collect-bus=yes is not possible here"), "{refused}");
        assert!(read(&["--collect-bus=no", "x"]).is_ok());
        assert!(read(&["--tool=none", "--memcheck:leak-check=yes", "x"]).is_ok(), "another tool's option");
        let own = read(&["--tool=none", "--none:leak-check=yes", "x"]).unwrap_err();
        assert!(own.starts_with("Unknown option: --none:leak-check=yes"), "{own}");
        for wrong in ["--D1=1", "--D1=32768,8", "--D1=32768,0,64", "--D1=32768,8,65", "--cache-sim=maybe"] {
            assert!(read(&[wrong, "x"]).unwrap_err().contains(wrong));
        }
    }

    #[test]
    fn caches_are_simulated_where_an_option_describes_one() {
        let simulates = |words: &[&str]| match read(words) {
            Ok(Asked::Run(settings, _)) => settings.simulates_caches(),
            other => panic!("{other:?}"),
        };
        assert!(!simulates(&["x"]) && simulates(&["--cache-sim=yes", "x"]));
        assert!(simulates(&["--D1=32768,8,64", "x"]));
        assert!(simulates(&["--tool=callgrind", "--callgrind:cache-sim=yes", "x"]));
        assert!(!simulates(&["--tool=callgrind", "--cachegrind:cache-sim=yes", "x"]));
        assert!(!simulates(&["--D1=32768,8,64", "--cache-sim=no", "x"]));
    }
}
