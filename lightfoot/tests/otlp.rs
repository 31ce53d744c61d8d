//! OpenTelemetry profiles, read again by the published schema, as crate `opentelemetry-proto` has
//! it. Every index of the dictionary exists, and each column adds up to the report's total.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::profiles::v1development::{Function, Location, Mapping, Stack};
use prost::Message as _;

const PROGRAM: &str = "\
#include <stdlib.h>
static volatile long sum;
__attribute__((noinline)) static void leaf(long *cells) { for (int i = 0; i < 4096; i++) sum += cells[i]; }
__attribute__((noinline)) static void twice(long *cells) { leaf(cells); leaf(cells); }
int main(void) { long *cells = calloc(4096, 8); for (int i = 0; i < 9; i++) twice(cells); leaf(cells); return 0; }
";

#[test]
fn a_collector_reads_columns_that_add_up_to_the_reports_totals() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-g"], PROGRAM) else { return };
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
    // The first entry of each table means that there is none.
    let dictionary = request.dictionary.as_ref().unwrap();
    assert_eq!(dictionary.string_table[0], "");
    assert_eq!(dictionary.mapping_table[0], Mapping::default());
    assert_eq!(dictionary.location_table[0], Location::default());
    assert_eq!(dictionary.function_table[0], Function::default());
    assert_eq!(dictionary.stack_table[0], Stack::default());
    let link = &dictionary.link_table[0];
    assert_eq!((link.trace_id.len(), link.span_id.len()), (16, 8));
    let text = |index: i32| dictionary.string_table[index as usize].as_str();
    let name = |location: i32| {
        let location = &dictionary.location_table[location as usize];
        let mapping = &dictionary.mapping_table[location.mapping_index as usize];
        assert!(text(mapping.filename_strindex).starts_with(['/', '[']));
        text(dictionary.function_table[location.lines[0].function_index as usize].name_strindex)
    };
    let from = &request.resource_profiles[0];
    let attributes = &from.resource.as_ref().unwrap().attributes;
    let keys: Vec<&str> = attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    assert!(keys.contains(&"service.name") && keys.contains(&"process.command_args"), "{keys:?}");
    let scope = &from.scope_profiles[0];
    assert_eq!(scope.scope.as_ref().unwrap().name, "lightfoot");
    let (mut columns, mut seen) = (Vec::new(), Vec::new());
    for profile in &scope.profiles {
        let kind = profile.sample_type.as_ref().unwrap();
        let column = text(kind.type_strindex);
        assert_eq!(text(kind.unit_strindex), "count");
        assert!(profile.samples.iter().all(|sample| sample.values.len() == 1));
        let sum: i64 = profile.samples.iter().flat_map(|sample| &sample.values).sum();
        assert_eq!(report["totals"][column].as_i64(), Some(sum), "{column}");
        columns.push(column);
        let stack = |index: i32| &dictionary.stack_table[index as usize].location_indices;
        let names = |index| stack(index).iter().map(|location| name(*location)).collect::<Vec<_>>();
        seen.extend(profile.samples.iter().map(|sample| names(sample.stack_index)));
    }
    for column in
        ["instructions", "loads", "stores", "l1d_load_misses", "l2_misses", "l3_misses", "dtlb_misses"]
    {
        assert!(columns.contains(&column), "{columns:?}");
    }
    assert!(seen.iter().any(|stack| stack.starts_with(&["leaf", "twice", "main"])), "{seen:?}");
    let function = |function: &&Function| text(function.name_strindex) == "twice";
    let twice = dictionary.function_table.iter().find(function).unwrap();
    assert!(text(twice.filename_strindex).ends_with("source.c") && twice.start_line == 4);
}

#[test]
fn it_wants_a_file() {
    let ran = lightfoot().args(["count", "--format", "otlp", "/bin/true"]).run();
    ran.fails_with(125).says("name a file with -o FILE").in_one_line();
}
