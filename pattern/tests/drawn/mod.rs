//! Random programs such as no expression has.

use lightfoot_pattern::program::BitProgram;

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

/// A program of random operations in random order, bodies included, whose output may depend on all
/// of the text.
struct Scribe {
    random: Random,
    code: String,
    /// What the outermost body sees.
    seen: Vec<usize>,
    values: usize,
    carries: usize,
    /// No other three-input logic, which some translators lack: they take half of the programs.
    has_only_choices: bool,
}

pub(crate) fn random_program(seed: u64) -> BitProgram {
    let mut random = Random(seed);
    let has_only_choices = random.below(2) == 0;
    let mut scribe = Scribe {
        random,
        code: String::new(),
        seen: (0..8).collect(),
        values: 8,
        carries: 0,
        has_only_choices,
    };
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

    /// A function of three bits.
    fn table(&mut self) -> usize {
        const CHOICE: usize = 0xCA;
        match self.has_only_choices {
            true => CHOICE,
            false => self.random.below(256),
        }
    }

    fn statement(&mut self) {
        let [a, b, c] = [(); 3].map(|()| self.any());
        let operation = match self.random.below(16) {
            0 => format!("not %{a}"),
            1 => format!("or %{a} %{b}"),
            2 => format!("xor %{a} %{b}"),
            3 => format!("and_not %{a} %{b}"),
            4..6 => format!("ternary {:#04x} %{a} %{b} %{c}", self.table()),
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
