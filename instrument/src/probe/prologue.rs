//! The first instructions of a function, moved to another address.
//!
//! **What.** A probe overwrites five bytes with a jump. The instructions that stood there move into
//! a trampoline behind the increment:
//!
//! | instruction | in the trampoline |
//! |---|---|
//! | most | a copy, byte for byte |
//! | `rip`-relative operand, direct branch | another displacement |
//! | direct call | a push of the program's return address, then a jump |
//! | indirect call, `loop`, `jrcxz` | the function is refused |
//!
//! Return addresses, and with them backtraces and exceptions, are those of an unprobed run. A
//! function whose instructions cannot move is refused with the reason, so no patched function
//! behaves differently. By the System V ABI only flags are dead at the entry of a function, and the
//! increment changes nothing but memory and flags. **Leaves out** code whose entry other code reads
//! as data.

use super::plan::ProbeRefusal;
use assembler::{Assembler, Condition, Gpr, Memory, Size};
use iced_x86::{Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};

/// Bytes of the jump that is written over an entry.
pub(super) const PATCH_BYTES: usize = 5;
/// Bytes to read at an entry: enough for the instructions that five bytes can touch, and for those
/// behind them that may grow the stack.
pub(super) const READ_BYTES: usize = 64;

/// One instruction that can be moved.
#[derive(Clone, Debug)]
enum MovedInstruction {
    /// The instruction runs unchanged at any address.
    Plain(Vec<u8>),
    /// The instruction has a displacement at this offset, relative to its end, to this address.
    Relative(Vec<u8>, usize, u64),
    /// A jump to this address.
    Jump(u64),
    /// A conditional jump (by its condition's number) to this address.
    Conditional(u8, u64),
    /// A call of the function at the first address, which returns to the second.
    Call(u64, u64),
}

/// The instructions that make room for a jump.
#[derive(Clone, Debug)]
pub(super) struct Prologue {
    pieces: Vec<MovedInstruction>,
    /// The address at which the program continues, if the last moved instruction falls through.
    back: Option<u64>,
    /// Whether no jump of the function can lead to a moved instruction behind the first one. Either
    /// there is none, or the stack grows there, which happens once in each call of the function.
    pub(super) runs_once: bool,
}

impl Prologue {
    /// Reads the instructions at `entry`; `code` starts there, and `room` bytes belong to the
    /// function.
    pub(super) fn read(code: &[u8], entry: u64, room: u64) -> Result<Prologue, ProbeRefusal> {
        let mut decoder = Decoder::with_ip(64, code, entry, DecoderOptions::NONE);
        let (mut pieces, mut inner) = (Vec::new(), None);
        let mut moved = 0;
        let mut ends = false;
        while moved < PATCH_BYTES && !ends {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return Err(ProbeRefusal::Undecodable(instruction.ip()));
            }
            // `inner` becomes the position of the last instruction behind the first one.
            inner = (moved > 0).then_some(moved);
            let bytes = &code[moved..moved + instruction.len()];
            let displacement = decoder.get_constant_offsets(&instruction).displacement_offset();
            pieces.push(piece(&instruction, bytes, displacement)?);
            moved += instruction.len();
            ends = ends_here(&instruction);
        }
        // Behind a shorter function there may be padding, which is never executed.
        let padded = moved >= PATCH_BYTES || code[moved..].iter().take(PATCH_BYTES - moved).all(is_padding);
        if room < PATCH_BYTES as u64 || !padded || (moved as u64 > room) {
            return Err(ProbeRefusal::TooShort(room.min(moved as u64)));
        }
        let end = entry + moved as u64;
        let prologue = Prologue {
            pieces,
            back: (!ends).then_some(end),
            runs_once: inner.is_none_or(|at| grows(&code[at..], entry + at as u64)),
        };
        // A moved branch back into these bytes would land in the middle of the jump.
        let overwritten = entry + 1..entry + PATCH_BYTES as u64;
        let into = prologue.targets().any(|target| overwritten.contains(&target));
        if into {
            return Err(ProbeRefusal::JumpInside(entry));
        }
        Ok(prologue)
    }

    /// The prologue without its first instruction.
    pub(super) fn without_first(mut self) -> Prologue {
        self.pieces.remove(0);
        self
    }

    fn targets(&self) -> impl Iterator<Item = u64> + '_ {
        self.pieces.iter().filter_map(|piece| match piece {
            MovedInstruction::Jump(to) | MovedInstruction::Conditional(_, to) => Some(*to),
            _ => None,
        })
    }

    /// Appends the moved instructions to `out`, which starts at address `start`, and the jump back.
    pub(super) fn emit(&self, out: &mut Vec<u8>, start: u64) -> Result<(), ProbeRefusal> {
        for piece in &self.pieces {
            match piece {
                MovedInstruction::Plain(bytes) => out.extend_from_slice(bytes),
                MovedInstruction::Relative(bytes, at, to) => {
                    let from = out.len();
                    out.extend_from_slice(bytes);
                    let reach = relative(start + out.len() as u64, *to)?;
                    out[from + at..from + at + 4].copy_from_slice(&reach.to_le_bytes());
                }
                MovedInstruction::Jump(to) => jump(out, start, *to)?,
                MovedInstruction::Conditional(condition, to) => {
                    let mut code = Assembler::default();
                    let jump = code.jump_if(Condition::numbered(*condition));
                    let end = start + (out.len() + code.len()) as u64;
                    code.set_dword(jump.displacement(), relative(end, *to)?);
                    out.extend_from_slice(code.bytes());
                }
                MovedInstruction::Call(to, returns) => {
                    // `push` sign-extends its constant, so the upper half is stored separately.
                    let mut code = Assembler::default();
                    code.push_immediate(*returns as i32);
                    let upper = Memory::at(Gpr::RSP).plus(4);
                    code.mov_to_immediate(Size::Dword, upper, (*returns >> 32) as i32);
                    out.extend_from_slice(code.bytes());
                    jump(out, start, *to)?;
                }
            }
        }
        self.back.map_or(Ok(()), |back| jump(out, start, back))
    }
}

/// Appends `jmp to` to code that starts at `start`.
pub(super) fn jump(out: &mut Vec<u8>, start: u64, to: u64) -> Result<(), ProbeRefusal> {
    let reach = relative(start + out.len() as u64 + PATCH_BYTES as u64, to)?;
    let mut code = Assembler::default();
    code.jump_by(reach);
    out.extend_from_slice(code.bytes());
    Ok(())
}

/// The displacement from `from` to `to`.
fn relative(from: u64, to: u64) -> Result<i32, ProbeRefusal> {
    i32::try_from(to.wrapping_sub(from) as i64).map_err(|_| ProbeRefusal::OutOfReach)
}

fn piece(
    instruction: &Instruction,
    bytes: &[u8],
    displacement: usize,
) -> Result<MovedInstruction, ProbeRefusal> {
    let unmovable =
        || ProbeRefusal::Unmovable(instruction.ip(), format!("{:?}", instruction.mnemonic()).to_lowercase());
    if instruction.is_ip_rel_memory_operand() {
        // A moved call would push an address in the trampoline.
        if instruction.flow_control() == FlowControl::IndirectCall {
            return Err(unmovable());
        }
        return Ok(MovedInstruction::Relative(
            bytes.to_vec(),
            displacement,
            instruction.ip_rel_memory_address(),
        ));
    }
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => {}
        FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => {
            return Ok(MovedInstruction::Jump(instruction.near_branch_target()))
        }
        FlowControl::ConditionalBranch if instruction.is_jcc_short_or_near() => {
            let condition = instruction.condition_code() as u8 - ConditionCode::o as u8;
            return Ok(MovedInstruction::Conditional(condition, instruction.near_branch_target()));
        }
        FlowControl::Call if instruction.code() == Code::Call_rel32_64 => {
            return Ok(MovedInstruction::Call(instruction.near_branch_target(), instruction.next_ip()));
        }
        FlowControl::Call if instruction.code() == Code::Syscall => {}
        _ => return Err(unmovable()),
    }
    Ok(MovedInstruction::Plain(bytes.to_vec()))
}

/// Whether control never falls through this instruction.
fn ends_here(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Return
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Exception
    ) || instruction.code() == Code::Call_rel32_64
}

/// Whether the code at `at` grows the stack before it branches.
fn grows(code: &[u8], at: u64) -> bool {
    for instruction in &mut Decoder::with_ip(64, code, at, DecoderOptions::NONE) {
        let sub = instruction.mnemonic() == Mnemonic::Sub && instruction.op0_register() == Register::RSP;
        if sub || instruction.mnemonic() == Mnemonic::Push {
            return true;
        }
        if instruction.is_invalid() || !matches!(instruction.flow_control(), FlowControl::Next) {
            return false;
        }
    }
    false
}

/// Whether a byte may be padding: `nop`, `int3`, or a part of a longer `nop`.
fn is_padding(byte: &u8) -> bool {
    matches!(byte, 0x90 | 0xcc | 0x66 | 0x0f | 0x1f | 0x2e | 0x00 | 0x40 | 0x44 | 0x80 | 0x84)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: u64 = 0x40_1000;
    const ELSEWHERE: u64 = 0x5000_0000;

    fn read(code: &[u8]) -> Result<Prologue, ProbeRefusal> {
        let mut padded = code.to_vec();
        padded.resize(READ_BYTES, 0x90);
        Prologue::read(&padded, ENTRY, 64)
    }

    /// The moved code, decoded at its new address.
    fn moved(code: &[u8]) -> Vec<Instruction> {
        let mut out = Vec::new();
        read(code).unwrap().emit(&mut out, ELSEWHERE).unwrap();
        Decoder::with_ip(64, &out, ELSEWHERE, DecoderOptions::NONE).iter().collect()
    }

    #[test]
    fn plain_instructions_are_copied_and_followed_by_the_way_back() {
        let code = moved(&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10]);
        assert_eq!(code.len(), 4);
        assert_eq!(code[3].near_branch_target(), ENTRY + 8);
    }

    #[test]
    fn a_relative_operand_still_means_the_same_address() {
        let code = moved(&[0x48, 0x8b, 0x05, 0x10, 0x00, 0x00, 0x00]);
        assert_eq!(code[0].ip_rel_memory_address(), ENTRY + 7 + 0x10);
    }

    #[test]
    fn branches_go_where_they_went() {
        let code = moved(&[0x85, 0xff, 0x74, 0x20, 0x53]);
        assert_eq!(code[1].near_branch_target(), ENTRY + 4 + 0x20);
        let code = moved(&[0xe8, 0, 1, 0, 0]);
        assert_eq!(code[0].immediate32to64() as u64 & 0xffff_ffff, ENTRY + 5);
        assert_eq!(code.last().unwrap().near_branch_target(), ENTRY + 5 + 0x100);
        let code = moved(&[0xe9, 0xf0, 0xff, 0xff, 0xff]);
        assert_eq!((code.len(), code[0].near_branch_target()), (1, ENTRY + 5 - 16));
    }

    #[test]
    fn a_short_function_needs_padding() {
        assert_eq!(moved(&[0xc3]).len(), 1);
        let short = Prologue::read(&[[0xc3; 1].as_slice(), &[0x55; 31]].concat(), ENTRY, 64);
        assert_eq!(short.unwrap_err(), ProbeRefusal::TooShort(1));
        let crowded = Prologue::read(&[0x90; 32], ENTRY, 3);
        assert_eq!(crowded.unwrap_err(), ProbeRefusal::TooShort(3));
    }

    #[test]
    fn what_cannot_move_is_refused_by_name() {
        assert!(
            matches!(read(&[0xff, 0xd0, 0x90, 0x90, 0x90]), Err(ProbeRefusal::Unmovable(_, name)) if name == "call")
        );
        assert!(matches!(read(&[0xe3, 0x10, 0x90, 0x90, 0x90]), Err(ProbeRefusal::Unmovable(..))));
        assert!(matches!(read(&[0x06; 5]), Err(ProbeRefusal::Undecodable(_))));
        assert_eq!(read(&[0xff, 0xc8, 0x75, 0xfe, 0x90]).unwrap_err(), ProbeRefusal::JumpInside(ENTRY));
    }

    #[test]
    fn a_growing_stack_rules_loops_out() {
        let runs_once = |code: &[u8]| read(code).unwrap().runs_once;
        assert!(runs_once(&[0x41, 0x57, 0x66, 0x0f, 0x6e, 0xcf, 0x41, 0x56]));
        assert!(runs_once(&[0x48, 0x8b, 0x05, 0, 0, 0, 0]));
        assert!(!runs_once(&[0xf3, 0x0f, 0x1e, 0xfa, 0x8d, 0x47, 0xff, 0x83, 0xf8, 0x05, 0x77, 0x10, 0x53]));
    }

    #[test]
    fn out_of_reach_is_said() {
        let prologue = read(&[0x55, 0x48, 0x89, 0xe5, 0x90]).unwrap();
        assert_eq!(prologue.emit(&mut Vec::new(), 1 << 40), Err(ProbeRefusal::OutOfReach));
    }
}
