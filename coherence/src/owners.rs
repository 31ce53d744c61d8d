//! Which turn of a round touches a line.
//!
//! A line that one turn of a round touches, or that no turn writes, is the same for that turn
//! whatever the others do meanwhile, as long as the core has it. So references to such lines need
//! no place in the order of the round. **How:** a byte for each value of a hash of lines. Lines of
//! one value are taken for one, which costs time and changes no number.

/// Values of the hash.
const VALUES: usize = 1 << 13;

/// What a touch does to a line.
#[derive(Clone, Copy)]
pub(crate) struct Touched(u16);

impl Touched {
    pub(crate) const READ: Touched = Touched(0);
    pub(crate) const WRITTEN: Touched = Touched(1 << 15);
}

/// Turns from this one on share a bit, and touch what is written in order.
const MANY: usize = 14;

/// The lines of a round.
#[derive(Debug)]
pub(crate) struct Owners {
    /// A bit for each turn that touches a line, and that of [`Touched::WRITTEN`].
    lines: Box<[u16; VALUES]>,
}

impl Default for Owners {
    fn default() -> Owners {
        Owners { lines: Box::new([0; VALUES]) }
    }
}

#[inline(always)]
fn hash(line: u64) -> usize {
    (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - VALUES.trailing_zeros())) as usize
}

impl Owners {
    /// Forgets the last round.
    pub(crate) fn clear(&mut self) {
        self.lines.fill(0);
    }

    /// The marks of a turn.
    pub(crate) fn marks(&mut self, turn: usize) -> Marks<'_> {
        Marks { lines: &mut self.lines, turn: 1 << turn.min(MANY) }
    }

    /// What a turn may touch out of order.
    #[inline(always)]
    pub(crate) fn of(&self, turn: usize) -> Owned<'_> {
        Owned { lines: &self.lines, own: if turn < MANY { Touched::WRITTEN.0 | 1 << turn } else { 0 } }
    }
}

/// The lines of a round, to be marked by a turn.
pub(crate) struct Marks<'a> {
    lines: &'a mut [u16; VALUES],
    turn: u16,
}

impl Marks<'_> {
    /// The turn touches a line.
    #[inline(always)]
    pub(crate) fn touches(&mut self, line: u64, touched: Touched) {
        let known = &mut self.lines[hash(line)];
        let all = *known | self.turn | touched.0;
        // Most touches are not the first ones, and need not wait for each other.
        if *known != all {
            *known = all;
        }
    }
}

/// The lines that a turn may touch out of order.
#[derive(Clone, Copy)]
pub(crate) struct Owned<'a> {
    lines: &'a [u16; VALUES],
    /// How a line is known that no other turn touches.
    own: u16,
}

impl Owned<'_> {
    /// Whether a line is one of them.
    #[inline(always)]
    pub(crate) fn has(self, line: u64) -> bool {
        let known = self.lines[hash(line)];
        (known < Touched::WRITTEN.0) | (known == self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_turn_and_lines_that_nobody_writes_need_no_order() {
        let mut owners = Owners::default();
        use Touched as T;
        for (turn, line, touched) in
            [(0, 1, T::WRITTEN), (0, 2, T::READ), (1, 2, T::READ), (0, 3, T::READ), (1, 3, T::WRITTEN)]
        {
            owners.marks(turn).touches(line, touched);
        }
        for turn in [300, 301] {
            owners.marks(turn).touches(4, T::WRITTEN);
        }
        let has = |turn: usize| [1, 2, 3, 4].map(|line| owners.of(turn).has(line));
        assert_eq!(has(0), [true, true, false, false]);
        assert_eq!(has(1), [false, true, false, false]);
        assert_eq!(has(300), [false, true, false, false], "turns without a number of their own");
        owners.clear();
        assert!((0..100).all(|line| owners.of(1).has(line)));
    }
}
