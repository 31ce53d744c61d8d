//! Bodies: code that is jumped over while nothing can match there, and code that runs again.

use super::*;

impl Emitter<'_, '_> {
    pub(super) fn if_any(&mut self, condition: Value, body: &[Instruction], yields: &[(Value, Value)]) {
        // Nothing may be locked across a jump, and both ways begin with this state.
        let condition_register = self.in_register(condition);
        self.code.test_any(condition_register, self.registers.scratch);
        self.allocator.finish();
        let (skip, idle) = self.skip_body(body);
        let fork = self.allocator.fork();
        self.body(body);
        self.allocator.at += 1;
        // What the body yields goes to the frame, where the way around it puts zeros.
        let mut places = Vec::new();
        for &(outer, inner) in yields {
            let register = self.in_register(inner);
            let place = self.allocator.set_frame(outer);
            self.code.store(place, register);
            self.allocator.finish();
            places.push(place);
        }
        if let Some(idle) = idle {
            self.find_idle(body, idle);
        }
        // Back to the state of the fork, which the way around the body still has.
        self.allocator.join(self.code, &fork);
        let done = self.code.jump(When::Always);
        self.code.land(skip);
        self.code.clear(self.registers.scratch);
        places.iter().for_each(|&place| self.code.store(place, self.registers.scratch));
        self.code.land(done);
        yields.iter().for_each(|&(outer, _)| {
            self.allocator.set_frame(outer);
        });
    }

    /// The jump over a body whose condition has just been tested, and for one with carries the slot
    /// that says whether all of them are gone: until then the body runs.
    fn skip_body(&mut self, body: &[Instruction]) -> (Jump, Option<Address>) {
        if !body.iter().any(owns_carries) {
            return (self.code.jump(When::Zero), None);
        }
        let idle = self.allocator.slot();
        self.idle.push(idle);
        let has_condition = self.code.jump(When::NotZero);
        self.code.compare_zero(idle);
        let skip = self.code.jump(When::NotZero);
        self.code.land(has_condition);
        let runs = *self.runs.get_or_insert_with(|| self.allocator.slot());
        self.code.count(runs);
        (skip, Some(idle))
    }

    /// Whether a body hands nothing on to the next block, to its slot. Of what an advance keeps,
    /// the last bits count: vectors of one distance are united and shifted at once.
    fn find_idle(&mut self, body: &[Instruction], idle: Address) {
        let Registers { scratch, scratch_2, .. } = self.registers;
        let (mut advances, mut sums) = (Vec::new(), Vec::new());
        distances_of(body, &mut advances, &mut sums);
        self.code.clear(scratch);
        while let Some(&(by, _)) = advances.last() {
            self.code.clear(scratch_2);
            advances.retain(|&(other, carry)| {
                if other == by {
                    let kept = Operand::Memory(received(carry));
                    self.code.vector(VPORQ, scratch_2, scratch_2, kept);
                }
                other != by
            });
            self.code.shift_right(scratch_2, 64 - by);
            self.code.vector(VPORQ, scratch, scratch, Operand::Register(scratch_2));
        }
        self.code.store(idle, scratch);
        let last_word = if self.target == Target::Avx2 { 0 } else { 8 };
        self.code.load_word(RAX, Address { bytes: idle.bytes + last_word, ..idle });
        self.code.clear(scratch);
        self.code.store(idle, scratch);
        sums.into_iter().for_each(|carry| self.code.unite_byte(received(carry)));
        self.code.store_if_zero(idle);
    }

    pub(super) fn while_any(
        &mut self,
        to: Value,
        initial: Value,
        frontier: Value,
        body: &[Instruction],
        next: Value,
    ) {
        // Both what was reached and the frontier live in the frame: the body begins with memory and
        // registers that are the same in every round.
        let carries = carries_of(body);
        let start = self.in_register(initial);
        let (all, front) = (self.allocator.set_frame(to), self.allocator.set_frame(frontier));
        self.code.store(all, start);
        self.code.store(front, start);
        self.allocator.finish();
        // The second bank collects what all rounds of the outermost loop hand on.
        if self.loops == 0 {
            self.clear(carries.iter().map(|&carry| self.handed_on(carry)).collect());
        }
        self.loops += 1;
        let head = self.code.here();
        let fork = self.allocator.fork();
        self.body(body);
        self.allocator.at += 1;
        // What the body found and was not there before is the next frontier, and joins the rest.
        let new = self.in_register(next);
        self.code.load(self.registers.scratch, Operand::Memory(all));
        self.code.vector(VPANDNQ, self.registers.scratch_2, self.registers.scratch, Operand::Register(new));
        self.code.vector(
            VPORQ,
            self.registers.scratch,
            self.registers.scratch,
            Operand::Register(self.registers.scratch_2),
        );
        self.code.store(all, self.registers.scratch);
        self.code.store(front, self.registers.scratch_2);
        self.allocator.finish();
        // Only the first round receives what the block before handed on.
        self.clear(carries.iter().map(|&carry| received(carry)).collect());
        self.code.test_any(self.registers.scratch_2, self.registers.scratch);
        // The jump back needs the registers of the loop's head. Loads leave the flags alone.
        self.allocator.join(self.code, &fork);
        let again = self.code.jump(When::NotZero);
        self.code.land_at(again, head);
        self.loops -= 1;
        // What was collected becomes what the next block receives.
        if self.loops == 0 {
            for carry in carries {
                self.code.load(self.registers.scratch, Operand::Memory(self.handed_on(carry)));
                self.code.store(received(carry), self.registers.scratch);
            }
        }
        self.allocator.set_frame(to);
    }

    fn clear(&mut self, places: Vec<Address>) {
        self.code.clear(self.registers.scratch);
        places.into_iter().for_each(|place| self.code.store(place, self.registers.scratch));
    }
}

/// The carries of a body, bodies inside included.
fn carries_of(body: &[Instruction]) -> Vec<Carry> {
    let mut all = Vec::new();
    for one in body {
        all.extend(one.op.carry());
        all.extend(one.op.body().map(carries_of).unwrap_or_default());
    }
    all
}

/// The carries of a body's advances, with their distances, and those of its sums.
fn distances_of(body: &[Instruction], advances: &mut Vec<(u8, Carry)>, sums: &mut Vec<Carry>) {
    for one in body {
        match one.op {
            Op::Advance { by, carry, .. } => advances.push((by, carry)),
            _ => sums.extend(one.op.carry()),
        }
        distances_of(one.op.body().unwrap_or_default(), advances, sums);
    }
}
