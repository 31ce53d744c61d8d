//! When records are made: a grid of edges, in time or in events.

use crate::counter::Alarm;
use std::time::Duration;

/// The grid at whose edges records end.
#[derive(Debug)]
pub enum Pace {
    /// An edge after each such time, at least a microsecond.
    Time(Duration),
    /// An edge whenever the first metric of the first set has grown by this much. The alarm belongs
    /// to that metric's group.
    Counted(Alarm, u64),
}

/// Why collecting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The program ended.
    Program,
    /// The caller's `stop` returned true.
    Stopped,
}

/// Edges, at multiples of the interval.
pub(super) struct Grid {
    length: u64,
    pub(super) edge: u64,
    last: u64,
}

impl Grid {
    pub(super) fn new(pace: &Pace) -> Grid {
        let length = match pace {
            Pace::Time(interval) => u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1000),
            Pace::Counted(_, length) => (*length).max(1),
        };
        Grid { length, edge: length, last: 0 }
    }

    pub(super) fn left(&self, position: u64) -> u64 {
        self.edge.saturating_sub(position)
    }

    /// The interval that ends at `position`: its start, its length, and the number of edges inside
    /// it.
    pub(super) fn step(&mut self, position: u64) -> (u64, u64, u32) {
        let (start, dt) = (self.last, position.saturating_sub(self.last));
        let missed = position.saturating_sub(self.edge) / self.length;
        if position >= self.edge {
            self.edge = self.edge.saturating_add((missed + 1).saturating_mul(self.length));
        }
        self.last = start + dt;
        (start, dt, u32::try_from(missed).unwrap_or(u32::MAX))
    }
}
