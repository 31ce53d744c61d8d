//! Where direct calls and jumps lead, for observers of calls: their records leave the target out.

use super::Translator;
use crate::call::{CallRecords, DirectTarget};
use crate::code::fragment::Fragment;
use crate::code::superblock::BasicBlock;
use crate::plan::block::{recorded_transfer, RecordedTransfer};
use iced_x86::{Code, FlowControl};

impl Translator {
    /// Notes the target of the direct call or jump that ends a fragment with this last block.
    pub(super) fn note_direct_target(&mut self, last: Option<&BasicBlock>) {
        let Some(last) = last.filter(|_| self.calls != CallRecords::None) else { return };
        if let Some(RecordedTransfer::DirectCall(target) | RecordedTransfer::DirectJump(target)) =
            recorded_transfer(last)
        {
            self.direct_targets.push(DirectTarget { block: last.number, target });
        }
    }

    /// Notes the targets in the restored fragments of a module: also in those that were tuned
    /// since, because links may still lead to them. Jumps within a function are noted too, and have
    /// no records.
    pub(super) fn note_restored_targets(&mut self, module: u32) {
        if self.calls == CallRecords::None {
            return;
        }
        let mut decoded = Vec::new();
        for fragment_index in 0..self.unverified.fragments.min(self.cache.fragments.len()) {
            let Fragment { first_block, blocks, .. } = self.cache.fragments[fragment_index];
            let number = first_block + blocks - 1;
            let block = &self.blocks[number as usize];
            let last = block.count.checked_sub(1).filter(|_| block.module == module);
            let Some(last) = last else { continue };
            let Some(last) = self.instructions.get((block.first + last) as usize) else { continue };
            let flow = Code::try_from(usize::from(last.code)).map(Code::flow_control);
            if !matches!(flow, Ok(FlowControl::Call | FlowControl::UnconditionalBranch)) {
                continue;
            }
            decoded.clear();
            self.reader.block(block.ip + u64::from(last.offset), &mut decoded);
            let instruction = decoded.first().map(|first| first.instruction);
            let near = instruction
                .filter(|instruction| instruction.is_call_near() || instruction.is_jmp_short_or_near());
            let target = near.map(|near| near.near_branch_target());
            self.direct_targets.extend(target.map(|target| DirectTarget { block: number, target }));
        }
    }
}
