//! Tile sizes that the two models choose for this machine: `cargo run --example plan`.

use lightfoot_matrix::machine::Machine;
use lightfoot_matrix::rate::{cycles, Rates, Work};
use lightfoot_matrix::tiling::{Problem, GRID};
use lightfoot_matrix::{Error, Kernel, Tiling};

fn main() -> Result<(), Error> {
    let host = Machine::host();
    println!("{}; kernel {}", host.description, Kernel::best().name());
    for n in [64, 256, 1024] {
        let problem = Problem::square(n, 8);
        let tiling = Tiling::plan(&host, problem, Work::Kernel)?;
        println!("N = {n}: depth {}, {} rows, {} columns", tiling.tile, tiling.rows, tiling.cols);
    }
    let (rates, problem) = (Rates::of(&host)?, Problem::square(1024, 8));
    println!("\npredicted cycles of N = 1024, by depth");
    for &tile in GRID {
        println!("{tile:>5} {:>15.0}", cycles(&rates, problem, Work::Kernel, tile).total());
    }
    Ok(())
}
