//! Runs a program under the engine and prints its counts: `run [nothing|counts|filtered|full] PROG
//! ARGS…`; its children's too with FOLLOW set.
use event::{FetchFilter, Filter, ModifyFilter, PageFilter, Record, SetFilter, StoreFilter, Stream};
use lightfoot_instrument::{run, Children, Command, Exit, Observer, Options};

#[derive(Default)]
struct Count(u64, [u64; 9]);
impl Observer for Count {
    fn records(&mut self, _thread: u32, records: &[Record]) {
        self.0 += records.len() as u64;
        if std::env::var_os("KINDS").is_some() {
            records.iter().for_each(|r| self.1[r.code().kind() as usize] += 1);
        }
    }
}

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let sets = SetFilter { sets: 64, line_bytes: 64 };
    let filter = Filter {
        data: sets,
        instruction: sets,
        data_page: None,
        instruction_page: None,
        stores: StoreFilter::LikeLoads,
        fetches: FetchFilter::FirstLevel { line_ways: 8, page_ways: 0 },
        pages: PageFilter::LastOfSet,
        modifies: ModifyFilter::Both,
    };
    let stream = match arguments.next().expect("a stream").to_str() {
        Some("nothing") => Stream::Nothing,
        Some("counts") => Stream::Counts,
        Some("filtered") => Stream::Filtered(filter),
        _ => Stream::Full,
    };
    let program = arguments.next().expect("a program");
    let command = Command { program, arguments: arguments.collect() };
    let mut records = Count::default();
    let follow = std::env::var_os("FOLLOW").is_some();
    let children = if follow { Children::Followed } else { Children::Released };
    match run(&command, &Options { stream, children, ..Options::default() }, &mut records) {
        Ok(o) => {
            let p = &o.profile;
            eprintln!(
                "instructions {} blocks {} records {} wall {:?} {:?}",
                p.instructions_retired(),
                p.blocks.len(),
                records.0,
                o.wall,
                o.exit
            );
            eprintln!("{:?} {:?}", o.stats, records.1);
            o.processes.iter().filter(|_| follow).for_each(|process| eprintln!("{process:?}"));
            o.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
            if let Exit::Code(code) = o.exit {
                std::process::exit(code);
            }
        }
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(e.exit_status());
        }
    }
}
