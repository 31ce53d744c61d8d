//! One operation on vectors of 256 and of 512 bits: the same constant, another prefix.
//!
//! `cargo run -p lightfoot-assembler --example vectors`

use lightfoot_assembler::vector::{Width, VPANDQ};
use lightfoot_assembler::{Assembler, Gpr, Memory, Vector};

fn main() {
    for (name, width) in [("AVX2", Width::Bits256), ("AVX-512", Width::Bits512)] {
        let mut code = Assembler::default();
        let (first, second) = (Vector::numbered(0), Vector::numbered(1));
        code.vector_load(width, first, Memory::at(Gpr::RDI));
        code.vector(VPANDQ, width, first, first, second);
        code.vector_store(width, Memory::at(Gpr::RSI), first);
        println!("{name:>7}: {} bytes {:02x?}", code.len(), code.bytes());
    }
}
