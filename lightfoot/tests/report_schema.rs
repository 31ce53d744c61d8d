//! Every JSON report is what `docs/report-schema.json` says, and nothing else.
//!
//! The validator knows the keywords that the schema uses and refuses others, so that a keyword
//! which nobody checks cannot stand there. It is ours because the crates that know all of JSON
//! Schema bring forty packages for one test. That it can fail is tested by changing each field of
//! real reports.

mod bench;

use bench::{json, lightfoot, Bench};
use serde_json::{Map, Value};

/// A schema with its definitions, and what it found wrong.
struct Validator {
    schema: Value,
}

impl Validator {
    fn new() -> Validator {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/report-schema.json");
        Validator { schema: json(&std::fs::read(path).unwrap()) }
    }

    fn definition(&self, name: &str) -> &Value {
        self.schema["$defs"].get(name).unwrap_or_else(|| panic!("no definition {name}"))
    }

    /// What is wrong with `value` as a report of this definition; the first thing, with its place.
    fn report(&self, name: &str, value: &Value) -> Result<(), String> {
        self.check(self.definition(name), value, name)
    }

    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let words = schema.as_object().unwrap_or_else(|| panic!("{at}: {schema} is no schema"));
        for (word, wanted) in words {
            if !self.keyword(words, word, wanted, value, at)? {
                return Err(format!("{at}: {word} {wanted} is not met by {value}"));
            }
        }
        Ok(())
    }

    fn keyword(
        &self,
        schema: &Map<String, Value>,
        word: &str,
        wanted: &Value,
        value: &Value,
        at: &str,
    ) -> Result<bool, String> {
        let number = value.as_f64();
        let bound = |holds: fn(&f64, &f64) -> bool| {
            number.is_none_or(|number| holds(&number, &wanted.as_f64().unwrap()))
        };
        let length = |holds: fn(&usize, &usize) -> bool| {
            let wanted = usize::try_from(wanted.as_u64().unwrap()).unwrap();
            value.as_array().is_none_or(|items| holds(&items.len(), &wanted))
        };
        Ok(match word {
            "$comment" | "description" | "title" => true,
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|name| is_of_type(name, value)),
                name => is_of_type(name, value),
            },
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => bound(f64::ge),
            "maximum" => bound(f64::le),
            "exclusiveMinimum" => bound(f64::gt),
            "exclusiveMaximum" => bound(f64::lt),
            "minItems" => length(usize::ge),
            "maxItems" => length(usize::le),
            "pattern" => value.as_str().is_none_or(|text| matches(wanted.as_str().unwrap(), text)),
            "required" => value.as_object().is_none_or(|fields| {
                wanted.as_array().unwrap().iter().all(|name| fields.contains_key(name.as_str().unwrap()))
            }),
            "properties" => return self.properties(wanted, value, at),
            "additionalProperties" => self.knows_all(schema, wanted, value),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(wanted, item, &format!("{at}[{index}]"))?;
                }
                true
            }
            "$ref" => {
                let name = wanted.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                self.check(self.definition(name), value, at)?;
                true
            }
            "anyOf" | "oneOf" => {
                let found: Vec<_> =
                    wanted.as_array().unwrap().iter().map(|one| self.check(one, value, at)).collect();
                let met = found.iter().filter(|found| found.is_ok()).count();
                if met == 0 {
                    return Err(found.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; "));
                }
                word == "anyOf" || met == 1
            }
            _ => panic!("{at}: the schema uses {word}, which this validator does not know"),
        })
    }

    fn properties(&self, wanted: &Value, value: &Value, at: &str) -> Result<bool, String> {
        let Some(fields) = value.as_object() else { return Ok(true) };
        for (name, schema) in wanted.as_object().unwrap() {
            if let Some(field) = fields.get(name) {
                self.check(schema, field, &format!("{at}.{name}"))?;
            }
        }
        Ok(true)
    }

    /// `additionalProperties` is `false`, or a schema for the fields without a name of their own.
    fn knows_all(&self, schema: &Map<String, Value>, wanted: &Value, value: &Value) -> bool {
        let known = |name: &str| schema.get("properties").is_some_and(|fields| fields.get(name).is_some());
        let mut others = value.as_object().into_iter().flatten().filter(|(name, _)| !known(name));
        match wanted {
            Value::Bool(false) => others.next().is_none(),
            other => others.all(|(name, field)| self.check(other, field, name).is_ok()),
        }
    }
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("no type {other}"),
    }
}

fn matches(expression: &str, text: &str) -> bool {
    let engine = pattern::Regex::new(expression);
    engine.unwrap_or_else(|error| panic!("{expression}: {error}")).is_match(text.as_bytes())
}

/// Runs a command that writes JSON, wherever it writes it: to the file `OUT` of its words if there
/// is one, of a measured program to standard error, else to standard output.
fn report(bench: &Bench, words: &str) -> Value {
    let out = bench.join("out.json");
    let _ = std::fs::remove_file(&out);
    let place = |word: &str| match word {
        "OUT" => out.to_str().unwrap().to_owned(),
        other => other.replace("DIR", bench.path().to_str().unwrap()),
    };
    let ran = lightfoot().args(words.split(' ').map(place)).run();
    match (std::fs::read(&out), ran.stdout.is_empty()) {
        (Ok(written), _) => json(&written),
        (Err(_), false) => json(&ran.stdout),
        (Err(_), true) => json(&ran.stderr),
    }
}

/// Reports of each definition, made by the commands that write them.
fn reports(bench: &Bench) -> Vec<(&'static str, Value)> {
    let run = |words: &str| report(bench, words);
    let program = bench::compile(bench, "work", &[], WORK).expect("cc compiles");
    let program = program.to_str().unwrap();
    let mut found = Vec::new();
    for options in ["", "--by line ", "--by thread ", "--by function,line ", "--follow-children ", "--top 0 "]
    {
        found.push(("count", run(&format!("count {options}--format json -o OUT -- {program}"))));
    }
    for options in [
        "",
        "--by line --branches --write-backs ",
        "--curves ",
        "--follow-children --huge-pages 2M ",
        "--machine cachegrind --by library ",
        "--write-backs --l2 1M,8,64,streamer+adjacent-line,late:8 --l3 8M,16,64,exclusive,slices:0x1b5f575440 ",
        "--compare-native ",
    ] {
        found.push(("cache", run(&format!("cache {options}--format json -o OUT -- {program}"))));
    }
    let threads = bench::compile(bench, "threads", &["-g", "-pthread"], include_str!("coherence/kernels.c"));
    let threads = threads.expect("cc compiles");
    found.push((
        "coherence",
        run(&format!("cache --coherence --format json -o OUT -- {} near", threads.to_str().unwrap())),
    ));
    found.push((
        "coherence",
        run(&format!(
            "cache --coherence --cores 2 --format json -o OUT -- {} near",
            threads.to_str().unwrap()
        )),
    ));
    for name in ["a", "b"] {
        run_quietly(bench, &format!("count --format json -o DIR/{name}.json -- {program}"));
    }
    found.push(("diff", run("diff DIR/a.json DIR/b.json --format json")));
    found.push(("merge", run("merge --as median DIR/a.json DIR/b.json --format json")));
    for name in ["c", "d"] {
        let cache = "cache --by line --sort loads --machine zen4";
        run_quietly(bench, &format!("{cache} --format json -o DIR/{name}.json -- {program} {name}"));
    }
    found.push(("merge", run("merge DIR/c.json DIR/d.json --format json")));
    for name in ["e", "f"] {
        let cache = "cache --by field --accesses --machine zen4";
        run_quietly(bench, &format!("{cache} --format json -o DIR/{name}.json -- {program} {name}"));
    }
    found.push(("merge", run("merge DIR/e.json DIR/f.json --format json")));
    for name in ["i", "j"] {
        let cache = "cache --curves --machine zen4";
        run_quietly(bench, &format!("{cache} --format json -o DIR/{name}.json -- {program} {name}"));
    }
    found.push(("merge", run("merge DIR/i.json DIR/j.json --format json")));
    for name in ["g", "h"] {
        let cache = "cache --follow-children --machine zen4";
        run_quietly(bench, &format!("{cache} --format json -o DIR/{name}.json -- sh -c {program};exit"));
    }
    found.push(("merge", run("merge DIR/g.json DIR/h.json --format json")));
    let (include, source) = (format!("-I{REGION}/include"), format!("{REGION}/examples/benchmarks.c"));
    let source = std::fs::read_to_string(source).unwrap();
    let benchmarks = bench::compile(bench, "benchmarks", &[&include], &source).expect("cc compiles");
    // The second run has the first one as its baseline.
    for options in ["", "", "--no-caches "] {
        let counted = format!("bench {options}--baselines DIR/kept --format json -o OUT --program");
        found.push(("bench", run(&format!("{counted} {}", benchmarks.to_str().unwrap()))));
    }
    for (kind, metrics) in [("base", ""), ("run", "--software fn:work ")] {
        for n in 0..6 {
            let traced =
                format!("trace --engine simulated --every 1e5instructions {metrics}-o DIR/{kind}{n}.lft");
            run_quietly(bench, &format!("{traced} -- {program}"));
        }
    }
    let traced = "trace --engine simulated --every 1e5instructions --format json -o OUT";
    for options in ["", " --by function"] {
        found.push(("trace", run(&format!("{traced}{options} -- {program}"))));
    }
    run_quietly(bench, &format!("trace --every 1e5instructions --by function -o DIR/f.lft -- {program}"));
    for file in ["base0", "f"] {
        found.push(("trace", run(&format!("show DIR/{file}.lft --every 3 --format json -o OUT"))));
    }
    found.push(("align", run("align DIR/base0.lft DIR/run0.lft --format json")));
    let many = |kind: &str| (0..6).map(|n| format!("DIR/{kind}{n}.lft")).collect::<Vec<_>>().join(" ");
    let compared = format!("perturb --baseline {} --run {} --format json", many("base"), many("run"));
    found.push(("perturb", run(&compared)));
    let planned = "plan --engine simulated --every 1e5instructions --budget 24 --format json -o OUT";
    found.push(("plan", run(&format!("{planned} --metrics fn:work,fn:more -- {program}"))));
    found.push(("doctor", run("doctor --format json")));
    found.push(("doctor", measurement(bench)));
    found.push(("tile", run("tile --n 48 --machine zen4 --format json")));
    bench.file("keys", b"1\n5\n9\n", 0o644);
    run_quietly(bench, "index build -o DIR/index DIR/keys");
    found.push(("index_inspect", run("index inspect DIR/index --format json")));
    found
}

/// What `doctor --measure` writes on a quiet machine and on a busy one, whichever this is.
fn measurement(bench: &Bench) -> Value {
    let measuring = lightfoot().args(["doctor", "--measure", "--format", "json"]);
    json(&measuring.env("XDG_CACHE_HOME", bench.path()).run().stdout)
}

#[test]
fn a_whole_measurement_is_what_the_schema_says() {
    let spread = serde_json::json!({"low": 1.0, "median": 1.25, "high": 1.5});
    let stairs = serde_json::json!({
        "treads": [{"from": 4096, "to": 49152, "nanoseconds": spread}],
        "risers": [{"begins": 49152, "fits": 49152, "ends": 53248}],
        "unsettled_from": null,
    });
    let level = |measured: Value| {
        serde_json::json!({
            "name": "L1D", "reported": 49152, "reported_origin": "reported", "measured": measured,
            "nanoseconds": spread, "cycles": 5.0,
        })
    };
    let size = serde_json::json!({"size": 49152, "begins": 49152, "ends": 53248, "agrees": true});
    let mut value = serde_json::json!({
        "refused": null,
        "findings": {
            "cycle_ns": spread, "line_bytes": 64, "caches": stairs, "tlbs": stairs,
            "largest": {"bytes": 1 << 28, "nanoseconds": spread}, "read_bytes_per_s": spread,
            "trials": 1000, "disturbed": 3, "wall_s": 2.0,
        },
        "levels": [level(size), level(Value::Null)],
        "remarks": ["a sentence"],
        "machine": null,
    });
    let validator = Validator::new();
    assert_eq!(validator.report("measurement", &value), Ok(()));
    assert_eq!(still_accepted(&validator, "measurement", &value), [""; 0]);
    value["findings"]["caches"]["treads"][0]["to"] = "48K".into();
    assert!(validator.report("measurement", &value).is_err());
}

fn run_quietly(bench: &Bench, words: &str) {
    let words = words.split(' ').map(|word| word.replace("DIR", bench.path().to_str().unwrap()));
    lightfoot().args(words).run().ends_with(0);
}

/// The crate with the headers for C.
const REGION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../region");

const WORK: &str = r#"
#include <stdlib.h>
static volatile long sink;
__attribute__((noinline)) void work(long n) { sink += n; }
__attribute__((noinline)) void more(long n) { sink ^= n; }
int main(void) {
    long *cells = malloc(1 << 20);
    for (long n = 0; n < 1 << 17; n++) { cells[n] = n; work(n); if (n % 3 == 0) more(cells[n / 2]); }
    return 0;
}
"#;

#[test]
fn every_report_is_what_the_schema_says() {
    let bench = Bench::new();
    let validator = Validator::new();
    let mut complaints = Vec::new();
    let reports = reports(&bench);
    for (name, value) in &reports {
        complaints.extend(validator.report(name, value).err());
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let defined = validator.schema["oneOf"].as_array().unwrap();
    let of = |one: &Value| one["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    for name in defined.iter().map(of) {
        assert!(reports.iter().any(|(made, _)| *made == name), "no report of {name} was made");
    }
    let accepted = reports.iter().flat_map(|(name, value)| still_accepted(&validator, name, value));
    let accepted: Vec<String> = accepted.collect();
    assert!(accepted.is_empty(), "changed, and still accepted:\n{}", accepted.join("\n"));
}

/// Changes of a report that the schema lets pass though each is wrong: every field of the top level
/// gets a value of no field's type, and one field more than there may be.
fn still_accepted(validator: &Validator, name: &str, value: &Value) -> Vec<String> {
    let fields = value.as_object().unwrap();
    let mut changed: Vec<(String, Value)> = Vec::new();
    for field in fields.keys() {
        let mut copy = fields.clone();
        copy[field] = Value::Array(vec![Value::Array(vec![Value::Bool(true)])]);
        changed.push((format!("{name}: {field} is a list of lists"), copy.into()));
    }
    let mut copy = fields.clone();
    copy.insert("nobody_knows".into(), Value::Null);
    changed.push((format!("{name}: another field"), copy.into()));
    changed.retain(|(_, copy)| validator.report(name, copy).is_ok());
    changed.into_iter().map(|(what, _)| what).collect()
}
