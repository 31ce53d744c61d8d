//! Cuts the program's code into superblocks.

use super::policy::{Ahead, Extent, Role};
use super::Translator;
use crate::code::decode::{Decoded, End};
use crate::code::event_request::EventRequests;
use crate::code::fragment::near;
use crate::code::superblock::BasicBlock;
use crate::profile::{Block, Instruction};
use crate::target::trust::{Modules, Trust};
use iced_x86::FlowControl;

impl Translator {
    /// Decodes the superblock at `pc` and enters its blocks into the profile.
    pub(super) fn superblock(
        &mut self,
        pc: u64,
        (trust, module): (Trust, u32),
        extent: Extent,
        modules: &mut impl Modules,
    ) -> Option<Vec<BasicBlock>> {
        let mut blocks: Vec<BasicBlock> = Vec::new();
        let mut ip = pc;
        loop {
            let mut instructions = self.spare.pop().unwrap_or_default();
            // The list of a former block is reused: its allocation fits.
            let end = self.decode(ip, (trust, module), &mut instructions, modules);
            if end == End::Unreadable {
                self.spare.push(instructions);
                if blocks.is_empty() {
                    return None;
                }
                blocks.last_mut().expect("not empty").next = None;
                return Some(blocks);
            }
            let number = self.enter_block(ip, module, &mut instructions);
            let mut block =
                BasicBlock { ip, instructions, end, number, next: None, events: EventRequests::default() };
            let next = follow(&block);
            // Fresh code ends where other code begins or after a few blocks; code that is
            // translated again has as many blocks as were asked for.
            let room = match extent {
                Extent::UpToKnownCode => blocks.len() + 1 < self.translate_ahead().blocks,
                Extent::Blocks(count) => blocks.len() + 1 < count,
            };
            block.next = next.filter(|&n| {
                room && n != pc
                    && trust == Trust::Text
                    && (extent != Extent::UpToKnownCode || self.cache.find(n).is_none())
                    && near(ip, n)
                    // A page has one mapping; elsewhere code may not be text, or another module's.
                    && ((n ^ ip) < 4096 || modules.at(n) == Some((trust, module)))
                    // No block twice: a branch back is an exit.
                    && blocks.iter().all(|p| p.ip != n)
                    && n != ip
            });
            let go_on = block.next;
            blocks.push(block);
            match go_on {
                Some(n) => ip = n,
                None => return Some(blocks),
            }
        }
    }

    fn enter_block(&mut self, ip: u64, module: u32, instructions: &mut [Decoded]) -> u32 {
        let first = self.instructions.len() as u32;
        // The profile needs the loads and stores of each instruction.
        for d in instructions.iter_mut() {
            d.shape = self.shapes.of(&d.instruction);
            let (loads, stores) = self.shapes.counts(d.shape);
            self.instructions.push(Instruction {
                offset: (d.instruction.ip() - ip) as u16,
                len: d.instruction.len() as u8,
                loads,
                stores,
                code: d.instruction.code() as u16,
            });
        }
        let len = instructions.last().map_or(0, |d| d.instruction.next_ip() - ip) as u32;
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

    /// Notes the addresses to which `blocks` may lead, those behind the last block first: most
    /// superblocks are run to their ends.
    pub(super) fn note_targets(&mut self, blocks: &[BasicBlock], ahead: &mut Ahead) {
        for block in blocks.iter().rev() {
            let Some(d) = block.last() else { continue };
            let (next, targets) = (d.instruction.next_ip(), &mut ahead.targets);
            match d.instruction.flow_control() {
                FlowControl::ConditionalBranch => {
                    if block.next.is_none() {
                        targets.push((next, Role::Branch));
                    }
                    targets.push((d.instruction.near_branch_target(), Role::Branch));
                }
                FlowControl::UnconditionalBranch if block.next.is_none() => {
                    targets.push((d.instruction.near_branch_target(), Role::Branch));
                }
                // The function, and where it will return to.
                FlowControl::Call if d.instruction.is_call_near() => {
                    targets.push((d.instruction.near_branch_target(), Role::Branch));
                    targets.push((next, Role::Return));
                }
                FlowControl::IndirectCall => targets.push((next, Role::Return)),
                FlowControl::Next if block.next.is_none() => targets.push((next, Role::Branch)),
                _ => {}
            }
        }
    }
}

/// The address at which a superblock may go on after `block`: the fall-through edge, or the target
/// of a direct jump.
fn follow(block: &BasicBlock) -> Option<u64> {
    let d = block.last()?;
    if block.end == End::Limit {
        return Some(d.instruction.next_ip());
    }
    match d.instruction.flow_control() {
        FlowControl::ConditionalBranch => Some(d.instruction.next_ip()),
        FlowControl::UnconditionalBranch if d.instruction.is_jmp_short_or_near() => {
            Some(d.instruction.near_branch_target())
        }
        _ => None,
    }
}
