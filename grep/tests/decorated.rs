//! Colours, columns, replaced matches and lines around matches: the fast path prints the bytes of
//! the general one, which `-M` with a large number asks for.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// No line of these texts is longer, so the flag changes no output, only the path.
const GENERAL: &str = "-M9999999";

const FLAGS: &[&str] = &[
    "--color=always",
    "--color=always -n --heading -H",
    "--color=always -o",
    "--color=always -onb --column -H",
    "--color=always -c -H",
    "--color=always -l",
    "--color=always -l0",
    "--color=always --colors=match:none -n",
    "--color=always --colors=highlight:bg:blue --colors=match:style:underline -n",
    "--color=always --colors=line:none --colors=path:fg:green -Hn",
    "--color=always -v -n",
    "--color=always -C1 -nb -H",
    "--color=always -p -B2",
    "--column",
    "--column -b -o",
    "--column -v",
    "--column -m3",
    "--color=always -m2",
    "-r<>",
    "-r<$0-$1-$name>",
    "-o -r[$0] -nb",
    "-r -n --color=always --column",
    "-r$1 --color=always --colors=highlight:bg:red -b --column",
    "-A1",
    "-B1 -n",
    "-C2 -nb",
    "-B3 -A1 -Hn --field-context-separator=::",
    "-C1 --context-separator=***",
    "-C1 --no-context-separator",
    "-C1 -o -n",
    "-A2 -v -n",
    "-C1 -m2",
    "-C1 --heading -n -H0",
    "-C40 -n",
    "-U",
    "-U -n -o",
    "-U -C1 --color=always",
    "-r$1 -C1 -n",
];

const PATTERNS: &[&str] =
    &["foo", "(?P<name>f)(o+)|ba", r"\bs?ing\b", "[0-9]+ of", r"\w{4}", "o$", "^", "é|x"];

fn searched(words: &[&str], folder: &Path, input: Option<&[u8]>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot-grep"));
    command.args(words).current_dir(folder).env_clear();
    command.env("TERM", "xterm").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Some(input) = input else { return command.output().unwrap() };
    let file = folder.join("input");
    std::fs::write(&file, input).unwrap();
    command.stdin(std::fs::File::open(file).unwrap()).output().unwrap()
}

fn agree(words: &[&str], folder: &Path, input: Option<&[u8]>) {
    let fast = searched(words, folder, input);
    let general = searched(&[&[GENERAL][..], words].concat(), folder, input);
    let is_same = fast.stdout == general.stdout && fast.status == general.status;
    let shown = |output: &Output| {
        let end = output.stdout.len().min(2000);
        format!("{:?} {}", output.status, String::from_utf8_lossy(&output.stdout[..end]))
    };
    assert!(is_same, "{words:?}\nfast: {}\ngeneral: {}", shown(&fast), shown(&general));
}

fn small_texts() -> Vec<Vec<u8>> {
    let words = ["foo", "bar", "sing", "é", "", "7 of 12", "foofoo", "naïve", "ba", "x", "\u{1b}[0m"];
    let mut seed = 11u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut texts = vec![b"foo".to_vec(), b"a\nfoo\n\n\nbar\nb\nc\nd\nfoo\n".to_vec()];
    for sparse in [1, 4, 12] {
        let mut text = Vec::new();
        for _ in 0..60 {
            for _ in 0..random(5) {
                let word = if random(sparse) == 0 { words[random(11) as usize] } else { "-" };
                text.extend_from_slice(word.as_bytes());
                text.push(b' ');
            }
            if random(30) == 0 {
                text.extend_from_slice(&b"long ".repeat(20_000));
            }
            text.push(b'\n');
        }
        text.truncate(text.len() - random(2) as usize);
        texts.push(text);
    }
    texts
}

#[test]
fn both_paths_print_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path(), folder.path().join("text"));
    for (other, text) in small_texts().into_iter().enumerate() {
        std::fs::write(&file, &text).unwrap();
        for (number, flags) in FLAGS.iter().enumerate() {
            let flags: Vec<&str> = flags.split(' ').collect();
            // Each text meets each flag with other patterns.
            let pattern = |step| PATTERNS[(number + 2 * other + step) % PATTERNS.len()];
            agree(&[&flags[..], &["-e", pattern(0), "text"]].concat(), path, None);
            agree(&[&flags[..], &["-e", pattern(1), "text"]].concat(), path, None);
            match (number + other) % 2 {
                0 => agree(&[&flags[..], &["-e", pattern(0)]].concat(), path, Some(&text)),
                _ => agree(&[&flags[..], &["--sort=path", "-e", pattern(0), "."]].concat(), path, None),
            }
        }
    }
}

/// Several pieces, read or mapped, by one thread or two.
#[test]
fn both_paths_print_the_same_for_large_files() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path(), folder.path().join("text"));
    let mut text = Vec::new();
    for number in 0..60_000_u32 {
        let found = number.wrapping_mul(2_654_435_761) >> 20;
        let line = match found {
            0..=1 => "a foo and foofoo of 7 of 12\n".to_owned(),
            2..=8 => "foo\n".to_owned(),
            _ => format!("{number} other words in a line\n"),
        };
        text.extend_from_slice(line.as_bytes());
    }
    let mut late = text.clone();
    let end = late.len() - 70_000;
    let at = end + late[end..].windows(4).position(|bytes| bytes == b"foo\n").unwrap();
    // In the line in front of a match.
    late[at - 5] = 0;
    for (text, is_binary) in [(text, false), (late, true)] {
        std::fs::write(&file, &text).unwrap();
        for (number, flags) in FLAGS.iter().enumerate() {
            let flags: Vec<&str> = flags.split(' ').collect();
            let ways = [&["-j1"][..], &["-j2"], &["--mmap", "-j1"], &["-a"]];
            let way = ways[(number + usize::from(is_binary)) % ways.len()];
            agree(&[&flags[..], way, &["-e", "fo(o)", "text"]].concat(), path, None);
            if is_binary && number % 4 == 0 {
                agree(&[&flags[..], &["-e", "fo(o)", "."]].concat(), path, None);
            }
        }
    }
}
