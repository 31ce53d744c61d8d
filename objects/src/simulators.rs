//! The simulated caches of each process image. They start empty, also those of a forked child, as
//! under `lightfoot cache --follow-children`.

use crate::by_image::ByImage;
use event::Stream;
use simulate::{Counts, Levels, Simulator, WriteBacks};

/// The simulators of the images that live.
pub(crate) struct Simulators {
    levels: Levels,
    stream: Stream,
    image: u32,
    /// That of the image whose records are read, from its first record on.
    present: Option<Simulator>,
    waiting: ByImage<Simulator>,
    /// That of an image that has ended, for reuse.
    spare: Option<Simulator>,
}

impl Simulators {
    /// Simulators of `levels`, from a stream that was planned for them.
    pub(crate) fn new(levels: &Levels, stream: Stream) -> Simulators {
        let levels = levels.clone();
        Simulators { levels, stream, image: 0, present: None, waiting: ByImage::default(), spare: None }
    }

    /// That of the image whose records are read.
    pub(crate) fn present(&mut self) -> &mut Simulator {
        let Simulators { levels, stream, spare, present, .. } = self;
        present.get_or_insert_with(|| {
            spare.take().and_then(Simulator::emptied).unwrap_or_else(|| {
                Simulator::of_stream(levels, stream, WriteBacks::Ignored).expect("the levels were checked")
            })
        })
    }

    /// Makes an image the one whose records are read.
    pub(crate) fn turn_to(&mut self, image: u32) {
        if image == self.image {
            return;
        }
        let next = self.waiting.remove(image);
        let former = std::mem::replace(&mut self.present, next);
        let number = std::mem::replace(&mut self.image, image);
        if let Some(former) = former {
            self.waiting.insert(number, former);
        }
    }

    /// This thread of an image makes no more records.
    pub(crate) fn thread_ends(&mut self, image: u32, thread: u32) {
        let simulator = match image == self.image {
            true => self.present.as_mut(),
            false => self.waiting.get_mut(image),
        };
        simulator.map(|simulator| simulator.end_thread(thread));
    }

    /// Ends an image; returns what was counted, under its own numbers.
    pub(crate) fn ended(&mut self, image: u32) -> Counts {
        let ended = match image == self.image {
            true => self.present.take(),
            false => self.waiting.remove(image),
        };
        let Some(mut simulator) = ended else { return Counts::default() };
        let counts = simulator.take_counts();
        self.spare = Some(simulator);
        counts
    }
}
