//! A function that adds numbers, as bytes: typed operands, a label, a jump back.
//!
//! `cargo run -p lightfoot-assembler --example sum` prints the bytes; any disassembler shows them.

use lightfoot_assembler::{Alu, Assembler, Condition, Gpr, Memory, Size};

fn main() {
    // extern "sysv64" fn(numbers: *const u64, count: u64) -> u64, for a count of at least 1.
    let mut code = Assembler::default();
    code.alu(Alu::Xor, Size::Dword, Gpr::RAX, Gpr::RAX);
    let top = code.here();
    // rsi counts down, so the last number comes first.
    let number = Memory::at(Gpr::RDI).index(Gpr::RSI, lightfoot_assembler::Scale::Eight).plus(-8);
    code.alu_from(Alu::Add, Size::Qword, Gpr::RAX, number);
    code.decrement(Size::Qword, Gpr::RSI);
    code.jump_back_if(Condition::NotEqual, top);
    code.ret();

    let bytes: Vec<String> = code.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{}", bytes.join(" "));
}
