//! The frozen list of patterns, and the texts that it is meant for, composed on the spot.

use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct List {
    pattern: Vec<Entry>,
}

/// A pattern of the list.
#[derive(Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Which kind of text it is meant for.
    pub(crate) text: String,
    /// Whether classes make the work.
    pub(crate) classes: bool,
    pub(crate) pattern: String,
}

/// All of them.
pub(crate) fn frozen() -> Vec<Entry> {
    let list: List =
        toml::from_str(include_str!("../../data/patterns.toml")).expect("the list of patterns parses");
    list.pattern
}

/// A text of one of the kinds that the list names.
pub(crate) fn compose(kind: &str, bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + (1 << 20));
    if kind == "code" {
        let mut sources = Vec::new();
        collect_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut sources);
        assert!(!sources.is_empty(), "the sources of this crate are gone from where it was built");
        while text.len() < bytes {
            text.extend_from_slice(&sources);
        }
    } else {
        let words: Vec<&str> = match kind {
            "many" => OTHER_WORDS.split(' ').collect(),
            _ => ENGLISH_WORDS.split(' ').collect(),
        };
        let line_words = if kind == "long" { 200_000 } else { 9 };
        let mut random = 1u64;
        while text.len() < bytes {
            for at in 0..line_words {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let word = words[(random >> 33) as usize % words.len()];
                text.extend_from_slice(word.as_bytes());
                text.extend_from_slice(if at + 1 == line_words { b".\n" } else { b" " });
            }
        }
    }
    text.truncate(bytes);
    text
}

/// What Rust files a folder holds, in the order of their paths.
fn collect_sources(folder: &Path, sources: &mut Vec<u8>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_string();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            collect_sources(&path, sources);
        } else if name.ends_with(".rs") {
            sources.extend(std::fs::read(&path).unwrap_or_default());
        }
    }
}

const ENGLISH_WORDS: &str = "the of and a to in he was that it his is with as had for she not be at on they you have but by from him \
this or which we an were all so one said there been would more when if no out up into them what your could do has time about other some \
their than then who will my two like very after little made over such man before must through years where much way well down should because \
long each just those people how too Mr state good good make world still own see men work life being day here many mountain question Watson \
morning nothing running slowly surprise kitchen gentleman important remember dancing quickly Queen beautiful";

const OTHER_WORDS: &str = "и в не на я быть он с что а по это она этот к но они мы весь который из у то за свой человек Москва Пётр возможность \
новость радость Россия 的 一 是 不 了 在 人 有 我 他 这 个 们 中 来 上 大 为 和 国 中华人民共和国 北京市 时间问题 και το να του η της με που \
την από Αθήνα Ελλάδα the and Berlin été naïve München 😀 😂";
