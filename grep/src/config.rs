//! The configuration file: flags that hold for every search.
//!
//! `LIGHTFOOT_GREP_CONFIG_PATH` names the file. If it is not set, `RIPGREP_CONFIG_PATH` does, so
//! one file can serve both programs. Each line is one word of the command line; blank lines and
//! lines that begin with `#` are skipped. There is no quoting.

use super::say;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Names of the variables; the first one that is set counts.
const VARIABLES: [&str; 2] = ["LIGHTFOOT_GREP_CONFIG_PATH", "RIPGREP_CONFIG_PATH"];

/// The words of the configuration file; empty if there is none.
pub(super) fn words() -> Vec<OsString> {
    let Some((name, path)) = VARIABLES.iter().find_map(|name| Some((name, std::env::var_os(name)?))) else {
        return Vec::new();
    };
    if path.is_empty() {
        return Vec::new();
    }
    let path = PathBuf::from(path);
    match std::fs::read(&path) {
        Ok(bytes) => split(&bytes),
        Err(error) => {
            say::warning(format_args!("cannot read {}, which {name} names: {error}", path.display()));
            Vec::new()
        }
    }
}

fn split(bytes: &[u8]) -> Vec<OsString> {
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let kept = lines.filter(|line| !line.is_empty() && line[0] != b'#');
    kept.map(|line| OsString::from_vec(line.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_word() {
        let words = split(b"# comment\n\n  --max-columns=80 \r\n--glob\n!*.min js\n");
        assert_eq!(words, ["--max-columns=80", "--glob", "!*.min js"]);
    }
}
