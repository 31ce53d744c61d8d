//! Cuts the program's code into superblocks.

use super::policy::{Ahead, Extent, Role};
use super::Translator;
use crate::call::{stub_number, CallRecords};
use crate::code::decode::{Decoded, End};
use crate::code::event_request::EventRequests;
use crate::code::fragment::near;
use crate::code::superblock::BasicBlock;
use crate::profile::{Block, Instruction};
use crate::room::make_room;
use crate::target::trust::{Modules, Trust};
use iced_x86::FlowControl;
use std::ops::Range;

impl Translator {
    /// Decodes the superblock at `pc` and enters its blocks into the profile.
    pub(super) fn superblock(
        &mut self,
        pc: u64,
        (trust, module): (Trust, u32),
        extent: Extent,
        modules: &mut impl Modules,
    ) -> Option<Vec<BasicBlock>> {
        let mut blocks: Vec<BasicBlock> = Vec::with_capacity(self.translate_ahead().blocks);
        let mut ip = pc;
        self.watch.meets((trust, module), modules);
        loop {
            let mut instructions = self.spare.pop().unwrap_or_default();
            // The list is a former block's, so its allocation is reused.
            let end = self.decode(ip, (trust, module), &mut instructions, modules);
            let end = self.watch.cut(&mut instructions, end);
            if end == End::Unreadable {
                self.spare.push(instructions);
                if blocks.is_empty() {
                    return None;
                }
                blocks.last_mut().expect("not empty").next = None;
                return Some(blocks);
            }
            let number = self.enter_block(ip, module, &mut instructions);
            let events = EventRequests::default();
            let mut block = BasicBlock {
                ip,
                instructions,
                end,
                number,
                next: None,
                events,
                is_tail_jump: false,
                jumps_within: None,
                is_stub: false,
            };
            block.is_stub = self.is_stub(&block, (trust, module), modules);
            block.jumps_within = self.jumps_within(&block, (trust, module), modules);
            block.is_tail_jump = self.is_tail_jump(&block, (trust, module), modules);
            let next = follow(&block).filter(|_| !block.is_tail_jump);
            // New code ends where another fragment begins or after a few blocks. Code that is
            // translated again has the requested number of blocks.
            let room = match extent {
                Extent::UpToKnownCode => blocks.len() + 1 < self.translate_ahead().blocks,
                Extent::Blocks(count) => blocks.len() + 1 < count,
            };
            block.next = next.filter(|&target| {
                room && target != pc
                    && trust == Trust::Text
                    && (extent != Extent::UpToKnownCode || self.cache.find(target).is_none())
                    && near(ip, target)
                    && !self.watch.has(target)
                    // Within a page the mapping is the same. In another page the code may not be
                    // text, or may belong to another module.
                    && ((target ^ ip) < 4096 || modules.at(target) == Some((trust, module)))
                    // A superblock has no block twice: a branch back is an exit.
                    && blocks.iter().all(|block| block.ip != target)
                    && target != ip
            });
            let go_on = block.next;
            blocks.push(block);
            match go_on {
                Some(target) => ip = target,
                None => return Some(blocks),
            }
        }
    }

    /// Whether the block ends with a direct jump into another function, which is recorded as calls
    /// are.
    fn is_tail_jump(
        &self,
        block: &BasicBlock,
        (trust, module): (Trust, u32),
        modules: &impl Modules,
    ) -> bool {
        let Some(last) = block.last().filter(|_| self.calls != CallRecords::None) else { return false };
        let instruction = &last.instruction;
        let jumps = block.end == End::Transfer && instruction.is_jmp_short_or_near();
        jumps && trust == Trust::Text && {
            let target = instruction.near_branch_target();
            self.watch.leaves_function(modules.module(module), instruction.ip(), target)
        }
    }

    /// The addresses of the function whose jump by a register or memory ends the block, if calls
    /// are recorded and the marker knows the function. The jumps of stubs are told apart by their
    /// targets.
    fn jumps_within(
        &self,
        block: &BasicBlock,
        (trust, module): (Trust, u32),
        modules: &impl Modules,
    ) -> Option<Range<u64>> {
        let jump = self.recorded_jump(block, trust).filter(|_| !block.is_stub)?;
        self.watch.function_around(modules.module(module), jump)
    }

    /// Whether the block is a stub of the linkage table, and calls are recorded. The jump must lie
    /// in the eighth of the block's address, by which observers know the stub.
    fn is_stub(&self, block: &BasicBlock, (trust, module): (Trust, u32), modules: &impl Modules) -> bool {
        let Some(jump) = self.recorded_jump(block, trust) else { return false };
        stub_number(jump) == stub_number(block.ip) && self.watch.is_stub(modules.module(module), jump)
    }

    /// The address of the jump by a register or memory that ends a block of text, if calls are
    /// recorded.
    fn recorded_jump(&self, block: &BasicBlock, trust: Trust) -> Option<u64> {
        let last = block.last().filter(|_| self.calls != CallRecords::None && trust == Trust::Text)?;
        let jumps = last.instruction.flow_control() == FlowControl::IndirectBranch;
        (block.end == End::Transfer && jumps).then(|| last.instruction.ip())
    }

    /// Enters a block and its instructions into the profile; returns the block's number.
    fn enter_block(&mut self, ip: u64, module: u32, instructions: &mut [Decoded]) -> u32 {
        let first = self.instructions.len() as u32;
        self.instructions.make_room(instructions.len());
        // The profile needs the loads and stores of each instruction.
        for decoded in instructions.iter_mut() {
            decoded.shape = self.shapes.of(&decoded.instruction);
            let (loads, stores) = self.shapes.counts(decoded.shape);
            self.instructions.push(Instruction {
                offset: (decoded.instruction.ip() - ip) as u16,
                len: decoded.instruction.len() as u8,
                loads,
                stores,
                code: decoded.instruction.code() as u16,
            });
        }
        let len = instructions.last().map_or(0, |decoded| decoded.instruction.next_ip() - ip) as u32;
        make_room(&mut self.blocks, 1);
        self.blocks.push(Block {
            ip,
            len,
            module,
            first,
            count: instructions.len() as u32,
            executions: 0,
            taken: 0,
        });
        self.blocks.len() as u32 - 1
    }

    /// Notes the addresses to which `blocks` may lead. The targets of the last block come first,
    /// because most superblocks run to their ends.
    pub(super) fn note_targets(&mut self, blocks: &[BasicBlock], ahead: &mut Ahead) {
        for block in blocks.iter().rev() {
            let Some(decoded) = block.last() else { continue };
            let (next, targets) = (decoded.instruction.next_ip(), &mut ahead.targets);
            match decoded.instruction.flow_control() {
                FlowControl::ConditionalBranch => {
                    if block.next.is_none() {
                        targets.push((next, Role::Branch));
                    }
                    targets.push((decoded.instruction.near_branch_target(), Role::Branch));
                }
                FlowControl::UnconditionalBranch if block.next.is_none() => {
                    targets.push((decoded.instruction.near_branch_target(), Role::Branch));
                }
                // The called function, and the address to which it will return.
                FlowControl::Call if decoded.instruction.is_call_near() => {
                    targets.push((decoded.instruction.near_branch_target(), Role::Branch));
                    targets.push((next, Role::Return));
                }
                FlowControl::IndirectCall => targets.push((next, Role::Return)),
                FlowControl::Next if block.next.is_none() => targets.push((next, Role::Branch)),
                _ => {}
            }
        }
    }
}

/// The address at which a superblock may continue after `block`: the next instruction, or the
/// target of a direct jump.
fn follow(block: &BasicBlock) -> Option<u64> {
    let decoded = block.last()?;
    if block.end == End::Limit {
        return Some(decoded.instruction.next_ip());
    }
    match decoded.instruction.flow_control() {
        FlowControl::ConditionalBranch => Some(decoded.instruction.next_ip()),
        FlowControl::UnconditionalBranch if decoded.instruction.is_jmp_short_or_near() => {
            Some(decoded.instruction.near_branch_target())
        }
        _ => None,
    }
}
