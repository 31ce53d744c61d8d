//! Prints the heap of a program by the functions that allocate: `heap PROGRAM ARGUMENTS`.
use instrument::tool::run_tool;
use instrument::{Command, Options};
use lightfoot_heap::HeapTool;
use symbol::{demangle, Symbolizer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or("say which program: heap PROGRAM ARGUMENTS")?;
    let mut tool = HeapTool::new(12);
    let (outcome, report) =
        run_tool(&Command { program, arguments: arguments.collect() }, &Options::default(), &mut tool)?;
    let heap = tool.into_profile().ok_or("the program has not run")?;
    eprint!("{report}");
    eprintln!("{:?} blocks {} {}", outcome.wall, heap.all.most.blocks, heap.all.at_end.blocks);
    eprintln!("reads {} writes {} sites {}", heap.all.read_bytes, heap.all.written_bytes, heap.sites.len());
    let mut symbols = Symbolizer::new();
    let mut sites: Vec<_> = heap.sites.iter().collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.total.bytes));
    for site in sites.into_iter().take(5) {
        eprintln!("{} bytes in {} blocks", site.total.bytes, site.total.blocks);
        for &call in &site.stack {
            let call = heap.calls[call as usize];
            let function = symbols.function_at(&heap.modules[call.module as usize], call.address).function;
            eprintln!("    {}", demangle(&symbols.functions()[function].name));
        }
    }
    Ok(())
}
