//! Texts and programs: of every kind of operation, frozen, random, and such as no expression has.

use pattern::compile::{compile, CompileOptions};
use pattern::program::BitProgram;
use proptest::prelude::*;

/// Random numbers that are the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// A text of about so many bytes: lines of words, some longer than a step and some than a segment, and stretches of other scripts.
pub(crate) fn text(bytes: usize, seed: u64) -> Vec<u8> {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "ab",
        "aab",
        "x",
        "y",
        "sing ",
        "dancing ",
        " ",
        "the ",
        "10.0.0.1 ",
        "me@here ",
        "12/31/99 ",
        "0x1f ",
        "_",
        "K",
        "é",
        "Я",
        "яя",
        "漢字",
        "😀",
        "Word Word ",
        "\r",
        "deadbeef ",
        "cat",
    ];
    let mut random = Random(seed);
    let mut text = Vec::new();
    while text.len() < bytes {
        match random.below(40) {
            0 => (0..random.below(9000)).for_each(|_| text.push(b"ab "[random.below(3)])),
            1 => text.extend(std::iter::repeat_n(b'a', random.below(5000))),
            2 => text.extend((0..random.below(40)).map(|_| random.below(256) as u8)),
            3..8 => text.extend_from_slice(b"\n"),
            _ => (0..random.below(8))
                .for_each(|_| text.extend_from_slice(PIECES[random.below(PIECES.len())].as_bytes())),
        }
    }
    text
}

/// Patterns of every kind of operation: advances of all distances, stars, nested stars, classes of all scripts, looks.
pub(crate) const PATTERNS: &[&str] = &[
    "sing",
    "[a-z]+ing",
    "^a*b?$",
    "x[^y]*y",
    "x(?:a|bc)*y",
    "(?:a(?:ab|b)*x)+y",
    "a{40}b",
    "a{1,300}b",
    "[ab].{20}[xy].{20}[a-c]",
    r"(?-u:\b)a+(?-u:\b)",
    r"\p{Lu}\w+ \p{Lu}\w+",
    r"[а-я]+\s",
    "漢.*😀",
    r"\bяя\b$",
    "(?i:k)at",
    "$",
    r"^[^\n]*cat[^\n]*sing",
];

pub(crate) fn program(pattern: &str) -> BitProgram {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
    compile(&hir, &CompileOptions::default()).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// The list that the studies race.
pub(crate) fn frozen() -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct List {
        pattern: Vec<One>,
    }
    #[derive(serde::Deserialize)]
    struct One {
        pattern: String,
    }
    let list: List = toml::from_str(include_str!("../../data/patterns.toml")).unwrap();
    list.pattern.into_iter().map(|one| one.pattern).collect()
}

/// The program of a pattern, where it has one of moderate size.
pub(crate) fn moderate(pattern: &str, operations: usize) -> Option<BitProgram> {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).ok()?;
    compile(&hir, &CompileOptions { operations, ..CompileOptions::default() }).ok()
}

pub(crate) fn random_pattern() -> impl Strategy<Value = String> {
    let leaves = vec![
        "a",
        "b",
        "ab",
        "[ab]",
        "[^a]",
        ".",
        "[a-c0-9]",
        r"\d",
        r"(?-u:\w)",
        r"(?-u:\s)",
        "é",
        "Я",
        "[а-я]",
        "漢",
        "😀",
        r"(?-u:\xff)",
        "[é-漢]",
        "^",
        "$",
        r"(?-u:\b)",
        r"(?-u:\B)",
        "x",
        "y",
        " ",
        "",
    ];
    let leaf = prop::sample::select(leaves).prop_map(str::to_string);
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            3 => (inner, prop::sample::select(vec!["*", "+", "?", "{2}", "{0,3}", "{3,}", "{7}", "{35}"]))
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    })
}

/// A program of random operations in random order, bodies included, whose output may depend on all of the text.
struct Scribe {
    random: Random,
    code: String,
    /// What the outermost body sees.
    seen: Vec<usize>,
    values: usize,
    carries: usize,
}

pub(crate) fn random_program(seed: u64) -> BitProgram {
    let mut scribe =
        Scribe { random: Random(seed), code: String::new(), seen: (0..8).collect(), values: 8, carries: 0 };
    (0..8).for_each(|bit| scribe.code += &format!("%{bit} = basis {bit}\n"));
    for _ in 0..6 + scribe.random.below(20) {
        scribe.statement();
    }
    if scribe.random.below(2) == 0 {
        scribe.nested_star();
    }
    let carries: Vec<String> = (0..scribe.carries).map(|carry| carry.to_string()).collect();
    let output = scribe.seen.last().unwrap();
    let text = format!("terminator 10\ncarries {}\n{}return %{output}\n", carries.join(" "), scribe.code);
    let program = BitProgram::parse(&text).unwrap();
    program.verify().unwrap_or_else(|fault| panic!("{fault}\n{program}"));
    program
}

impl Scribe {
    fn any(&mut self) -> usize {
        // Young values more often: long chains are what carries go wrong in.
        let range = if self.random.below(2) == 0 { self.seen.len().min(6) } else { self.seen.len() };
        self.seen[self.seen.len() - 1 - self.random.below(range)]
    }

    fn fresh(&mut self) -> usize {
        self.values += 1;
        self.values - 1
    }

    fn carry(&mut self) -> usize {
        self.carries += 1;
        self.carries - 1
    }

    fn statement(&mut self) {
        let [a, b, c] = [(); 3].map(|()| self.any());
        let operation = match self.random.below(16) {
            0 => format!("not %{a}"),
            1 => format!("or %{a} %{b}"),
            2 => format!("xor %{a} %{b}"),
            3 => format!("and_not %{a} %{b}"),
            4..6 => format!("ternary {:#04x} %{a} %{b} %{c}", self.random.below(256)),
            6 => format!("basis {} delay {}", self.random.below(8), 1 + self.random.below(7)),
            7 => format!("advance {} %{a} carry {}", 1 + self.random.below(32), self.carry()),
            8 => format!("advance {} %{a} carry {}", 33 + self.random.below(31), self.carry()),
            9..11 => format!("match_star %{a} %{b} carry {}", self.carry()),
            11 => format!("scan_thru %{a} %{b} carry {}", self.carry()),
            12..14 => format!("add %{a} %{b} carry {}", self.carry()),
            14 => {
                let [one, two, outer] = [(); 3].map(|()| self.fresh());
                self.code +=
                    &format!("if %{a} {{\n%{one} = xor %{b} %{c}\n%{two} = and %{one} %{a}\n}} yields %{outer} = %{two}\n");
                return self.seen.push(outer);
            }
            _ => format!("and %{a} %{b}"),
        };
        let result = self.fresh();
        self.code += &format!("%{result} = {operation}\n");
        self.seen.push(result);
    }

    /// A star in a star, with bodies that distribute over union.
    fn nested_star(&mut self) {
        let [class, other, start] = [(); 3].map(|()| self.any());
        let [frontier, members, moved, inner, inside, one, two, met, result] = [(); 9].map(|()| self.fresh());
        let [far, near, through] = [(); 3].map(|()| self.carry());
        let by = [1, 3, 40][self.random.below(3)];
        self.code += &format!("%{result} = while %{frontier} from %{start} {{\n");
        self.code += &format!(
            "%{members} = and %{frontier} %{class}\n%{moved} = advance {by} %{members} carry {far}\n"
        );
        self.code +=
            &format!("%{met} = while %{inner} from %{moved} {{\n%{inside} = and %{inner} %{other}\n");
        self.code += &format!("%{one} = advance 1 %{inside} carry {near}\n%{two} = match_star %{one} %{class} carry {through}\n");
        self.code += &format!("}} next %{two}\n}} next %{met}\n");
        self.seen.push(result);
    }
}
