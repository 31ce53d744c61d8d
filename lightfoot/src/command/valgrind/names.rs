//! Names of files with places for a process's number and for variables of the environment.

/// The name with `%p` (the process's number), `%n` (the number of the file), `%q{VARIABLE}` and
/// `%%` replaced.
///
/// # Errors
/// One sentence for another letter behind `%`, and for a variable that is not set.
pub(super) fn expanded(name: &str, pid: i32, number: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, behind)) = rest.split_once('%') {
        out += before;
        let letter = behind.chars().next();
        rest = behind.get(letter.map_or(0, char::len_utf8)..).unwrap_or_default();
        match letter {
            Some('p') => out += &pid.to_string(),
            Some('n') => out += &number.to_string(),
            Some('%') => out.push('%'),
            Some('q') => {
                let (variable, behind) = rest
                    .strip_prefix('{')
                    .and_then(|rest| rest.split_once('}'))
                    .ok_or_else(|| format!("{name}: expected a variable in braces behind %q"))?;
                let value = std::env::var(variable)
                    .map_err(|_| format!("{name}: the environment has no variable {variable}"))?;
                out += &value;
                rest = behind;
            }
            _ => return Err(format!("{name}: expected p, n, q{{VARIABLE}} or % behind %")),
        }
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled() {
        assert_eq!(expanded("a.%p.%n.%%.out", 7, 2).unwrap(), "a.7.2.%.out");
        assert_eq!(expanded("é%p", 7, 2).unwrap(), "é7");
        let path = std::env::var("PATH").unwrap();
        assert_eq!(expanded("%q{PATH}", 7, 2).unwrap(), path);
        for wrong in ["%x", "a%", "%q", "%q{no such variable}", "%q{PATH"] {
            assert!(expanded(wrong, 7, 2).unwrap_err().starts_with(wrong));
        }
    }
}
