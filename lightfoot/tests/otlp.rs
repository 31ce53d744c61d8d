//! OpenTelemetry profiles, read again by two readers that share nothing with the writer: one of
//! their own, and the published schema, as crate `opentelemetry-proto` has it. Every index of the
//! dictionary exists, and each column adds up to the report's total.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use prost::Message as _;

const PROGRAM: &str = "\
#include <stdlib.h>
static volatile long sum;
__attribute__((noinline)) static void leaf(long *cells) { for (int i = 0; i < 4096; i++) sum += cells[i]; }
__attribute__((noinline)) static void twice(long *cells) { leaf(cells); leaf(cells); }
int main(void) { long *cells = calloc(4096, 8); for (int i = 0; i < 9; i++) twice(cells); leaf(cells); return 0; }
";

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// A message: its fields in their order.
struct Message<'a>(Vec<(u64, Field<'a>)>);

fn number(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            return value;
        }
    }
}

impl<'a> Message<'a> {
    fn read(bytes: &'a [u8]) -> Message<'a> {
        let (mut fields, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let key = number(bytes, &mut at);
            let field = match key % 8 {
                0 => Field::Number(number(bytes, &mut at)),
                2 => {
                    let length = number(bytes, &mut at) as usize;
                    at += length;
                    Field::Bytes(&bytes[at - length..at])
                }
                kind => panic!("wire type {kind}"),
            };
            fields.push((key / 8, field));
        }
        Message(fields)
    }

    /// The bytes of all fields of this number.
    fn all(&self, wanted: u64) -> Vec<&'a [u8]> {
        let fields = self.0.iter().filter(|(number, _)| *number == wanted);
        fields
            .map(|(_, field)| match field {
                Field::Bytes(bytes) => *bytes,
                Field::Number(_) => panic!("field {wanted} is a number"),
            })
            .collect()
    }

    fn messages(&self, wanted: u64) -> Vec<Message<'a>> {
        self.all(wanted).into_iter().map(Message::read).collect()
    }

    fn number(&self, wanted: u64) -> u64 {
        let found = self.0.iter().find(|(number, _)| *number == wanted);
        match found {
            Some((_, Field::Number(value))) => *value,
            None => 0,
            Some(_) => panic!("field {wanted} is no number"),
        }
    }

    /// A packed list of numbers.
    fn list(&self, wanted: u64) -> Vec<u64> {
        let mut values = Vec::new();
        for bytes in self.all(wanted) {
            let mut at = 0;
            while at < bytes.len() {
                values.push(number(bytes, &mut at));
            }
        }
        values
    }
}

#[test]
fn every_column_adds_up_to_the_reports_total() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-g", "-O1"], PROGRAM) else { return };
    let made = |format: &str| {
        let out = bench.join(format);
        let ran = lightfoot().args(["cache", "--format", format, "-o"]).arg(&out).arg(&program).run();
        ran.ends_with(0);
        std::fs::read(&out).unwrap()
    };
    let report = json(&made("json"));
    let bytes = made("otlp");
    let data = Message::read(&bytes);
    let dictionary = &data.messages(2)[0];
    let strings: Vec<&str> =
        dictionary.all(5).into_iter().map(|text| std::str::from_utf8(text).unwrap()).collect();
    let [mappings, locations, functions, stacks] = [1, 2, 3, 7].map(|table| dictionary.messages(table));
    assert!(
        strings[0].is_empty()
            && [&mappings, &locations, &functions, &stacks].iter().all(|table| table[0].0.is_empty())
    );
    let link = &dictionary.messages(4)[0];
    assert_eq!((link.all(1)[0].len(), link.all(2)[0].len()), (16, 8));
    let name = |location: u64| {
        let location = &locations[location as usize];
        assert!(strings[mappings[location.number(1) as usize].number(4) as usize].starts_with(['/', '[']));
        let function = &functions[location.messages(3)[0].number(1) as usize];
        strings[function.number(1) as usize]
    };
    let resource = &data.messages(1)[0];
    let attribute = |key: &str| {
        let attributes = resource.messages(1)[0].messages(1);
        attributes.iter().any(|attribute| attribute.all(1)[0] == key.as_bytes())
    };
    assert!(attribute("service.name") && attribute("process.command_args"));
    let scope = &resource.messages(2)[0];
    assert_eq!(scope.messages(1)[0].all(1), [b"lightfoot"]);
    let mut columns = Vec::new();
    let mut seen = Vec::new();
    for profile in scope.messages(2) {
        let column = strings[profile.messages(1)[0].number(1) as usize];
        assert_eq!(strings[profile.messages(1)[0].number(2) as usize], "count");
        let mut sum = 0;
        for sample in profile.messages(2) {
            let stack: Vec<&str> = stacks[sample.number(1) as usize].list(1).into_iter().map(name).collect();
            let [value] = sample.list(4)[..] else { panic!("one value a sample") };
            sum += value;
            seen.push(stack);
        }
        assert_eq!(report["totals"][column], sum, "{column}");
        columns.push(column);
    }
    for column in
        ["instructions", "loads", "stores", "l1d_load_misses", "l2_misses", "l3_misses", "dtlb_misses"]
    {
        assert!(columns.contains(&column), "{columns:?}");
    }
    assert!(seen.iter().any(|stack| stack.starts_with(&["leaf", "twice", "main"])), "{seen:?}");
    let file = functions.iter().find(|function| strings[function.number(1) as usize] == "twice").unwrap();
    assert!(strings[file.number(3) as usize].ends_with("source.c") && file.number(4) == 4);
}

#[test]
fn a_collector_understands_the_file_as_a_request() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-g", "-O1"], PROGRAM) else { return };
    let made = |format: &str| {
        let out = bench.join(format);
        let ran = lightfoot().args(["cache", "--format", format, "-o"]).arg(&out).arg(&program).run();
        ran.ends_with(0);
        std::fs::read(&out).unwrap()
    };
    let report = json(&made("json"));
    let bytes = made("otlp");
    let request = ExportProfilesServiceRequest::decode(bytes.as_slice()).unwrap();
    // Fields that the schema does not know would be gone.
    assert_eq!(request.encoded_len(), bytes.len());
    let dictionary = request.dictionary.as_ref().unwrap();
    let text = |index: i32| dictionary.string_table[index as usize].as_str();
    let name = |location: i32| {
        let line = &dictionary.location_table[location as usize].lines[0];
        text(dictionary.function_table[line.function_index as usize].name_strindex)
    };
    let mut columns = Vec::new();
    let mut seen = Vec::new();
    for profile in &request.resource_profiles[0].scope_profiles[0].profiles {
        let column = text(profile.sample_type.as_ref().unwrap().type_strindex);
        let sum: i64 = profile.samples.iter().flat_map(|sample| &sample.values).sum();
        assert_eq!(report["totals"][column].as_i64(), Some(sum), "{column}");
        columns.push(column);
        let stack = |index: i32| &dictionary.stack_table[index as usize].location_indices;
        let names = |index| stack(index).iter().map(|location| name(*location)).collect::<Vec<_>>();
        seen.extend(profile.samples.iter().map(|sample| names(sample.stack_index)));
    }
    assert!(columns.contains(&"instructions") && columns.contains(&"l2_misses"), "{columns:?}");
    assert!(seen.iter().any(|stack| stack.starts_with(&["leaf", "twice", "main"])), "{seen:?}");
    let resource = request.resource_profiles[0].resource.as_ref().unwrap();
    let keys: Vec<&str> = resource.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    assert!(keys.contains(&"service.name"), "{keys:?}");
}

#[test]
fn it_wants_a_file() {
    let ran = lightfoot().args(["count", "--format", "otlp", "/bin/true"]).run();
    ran.fails_with(125).says("name a file with -o FILE").in_one_line();
}
