//! Translations kept in the host's memory, which the processes of one run share.
//!
//! A shell script runs the same few programs a thousand times. Where no folder is used, the second
//! process of a program takes over what the first one has left here. The rules for files hold for
//! these bytes too: they are restored as a whole, and each module's part is verified before it is
//! used. **Leaves out** anything on disk, and sharing between processes that live at the same time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The most bytes that are kept; the least recently used translations are dropped first.
const BYTES_MAX: usize = 256 << 20;

/// The translations of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunTranslations(Rc<RefCell<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    programs: HashMap<Vec<u8>, Program>,
    /// Bytes of all programs.
    bytes: usize,
    /// How often translations were read or written: the clock of their last uses.
    uses: u64,
}

#[derive(Debug)]
struct Program {
    body: Rc<Vec<u8>>,
    fragments: u64,
    used: u64,
}

impl Kept {
    fn remove(&mut self, identity: &[u8]) -> bool {
        let removed = self.programs.remove(identity);
        self.bytes -= removed.as_ref().map_or(0, |program| program.body.len());
        removed.is_some()
    }

    /// Drops programs, the least recently used first, until `more` bytes have room.
    fn make_room(&mut self, more: usize) {
        while self.bytes + more > BYTES_MAX {
            let oldest = self.programs.iter().min_by_key(|(_, program)| program.used);
            let Some(identity) = oldest.map(|(identity, _)| identity.clone()) else { return };
            self.remove(&identity);
        }
    }
}

/// The place in memory of one image's translations.
#[derive(Debug)]
pub(super) struct MemoryStore {
    run: RunTranslations,
    identity: Vec<u8>,
    /// What this image has read or written last, if it has done either.
    taken: Option<Rc<Vec<u8>>>,
}

impl MemoryStore {
    /// The place of the image with this `identity`.
    pub(super) fn new(run: &RunTranslations, identity: Vec<u8>) -> MemoryStore {
        MemoryStore { run: run.clone(), identity, taken: None }
    }

    /// What a former image of this identity has left.
    pub(super) fn read(&mut self) -> Option<Rc<Vec<u8>>> {
        let mut kept = self.run.0.borrow_mut();
        kept.uses += 1;
        let used = kept.uses;
        let program = kept.programs.get_mut(&self.identity)?;
        program.used = used;
        self.taken = Some(program.body.clone());
        Some(program.body.clone())
    }

    /// Keeps `body`, which holds this number of fragments, unless another image has replaced or
    /// removed what this one began with.
    pub(super) fn write(&mut self, mut body: Vec<u8>, fragments: u64) {
        let mut kept = self.run.0.borrow_mut();
        let stays = match (&self.taken, kept.programs.get(&self.identity)) {
            (None, None) => false,
            // Both began with nothing: what has more fragments stays.
            (None, Some(there)) => there.fragments >= fragments,
            (Some(_), None) => true,
            (Some(taken), Some(there)) => !Rc::ptr_eq(taken, &there.body),
        };
        if stays {
            return;
        }
        kept.remove(&self.identity);
        if body.len() > BYTES_MAX {
            return;
        }
        body.shrink_to_fit();
        kept.make_room(body.len());
        kept.bytes += body.len();
        kept.uses += 1;
        let used = kept.uses;
        let body = Rc::new(body);
        self.taken = Some(body.clone());
        kept.programs.insert(self.identity.clone(), Program { body, fragments, used });
    }

    /// Removes what this image has read, unless something else has replaced it.
    pub(super) fn give_up(&self) {
        let mut kept = self.run.0.borrow_mut();
        let there = kept.programs.get(&self.identity);
        if there.zip(self.taken.as_ref()).is_some_and(|(there, taken)| Rc::ptr_eq(&there.body, taken)) {
            kept.remove(&self.identity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(run: &RunTranslations) -> usize {
        let kept = run.0.borrow();
        assert_eq!(kept.bytes, kept.programs.values().map(|program| program.body.len()).sum());
        kept.bytes
    }

    fn read(run: &RunTranslations, identity: &[u8]) -> Option<usize> {
        MemoryStore::new(run, identity.to_vec()).read().map(|body| body.len())
    }

    #[test]
    fn the_next_image_of_a_program_reads_what_the_last_one_wrote() {
        let run = RunTranslations::default();
        let mut first = MemoryStore::new(&run, b"program".to_vec());
        assert!(first.read().is_none());
        first.write(vec![1; 100], 10);
        assert_eq!((read(&run, b"program"), read(&run, b"another")), (Some(100), None));
        let mut second = MemoryStore::new(&run, b"program".to_vec());
        assert_eq!(*second.read().unwrap(), vec![1; 100]);
        second.write(vec![2; 150], 15);
        assert_eq!((read(&run, b"program"), bytes(&run)), (Some(150), 150));
    }

    #[test]
    fn of_images_that_lived_together_the_one_with_more_fragments_stays() {
        let run = RunTranslations::default();
        let [mut one, mut two, mut three] = [(); 3].map(|()| MemoryStore::new(&run, b"program".to_vec()));
        two.write(vec![0; 20], 20);
        one.write(vec![0; 10], 10);
        assert_eq!(read(&run, b"program"), Some(20));
        three.write(vec![0; 30], 30);
        assert_eq!((read(&run, b"program"), bytes(&run)), (Some(30), 30));
        // What has been replaced meanwhile is neither written over nor removed.
        let mut late = MemoryStore::new(&run, b"program".to_vec());
        late.read();
        let mut next = MemoryStore::new(&run, b"program".to_vec());
        next.read();
        next.write(vec![0; 40], 40);
        late.write(vec![0; 50], 50);
        late.give_up();
        assert_eq!(read(&run, b"program"), Some(40));
        // Nothing was read, so nothing is under suspicion.
        MemoryStore::new(&run, b"program".to_vec()).give_up();
        assert_eq!(read(&run, b"program"), Some(40));
        let mut used = MemoryStore::new(&run, b"program".to_vec());
        used.read();
        used.give_up();
        assert_eq!((read(&run, b"program"), bytes(&run)), (None, 0));
        used.write(vec![0; 60], 60);
        assert_eq!(read(&run, b"program"), None, "another image has removed what this one used");
    }

    #[test]
    fn the_least_recently_used_translations_make_room() {
        let run = RunTranslations::default();
        let third = BYTES_MAX / 3;
        for identity in [b"a", b"b", b"c"] {
            MemoryStore::new(&run, identity.to_vec()).write(vec![0; third], 1);
        }
        assert_eq!(read(&run, b"a"), Some(third));
        MemoryStore::new(&run, b"d".to_vec()).write(vec![0; third], 1);
        let left = [b"a", b"b", b"c", b"d"].map(|identity| read(&run, identity).is_some());
        assert_eq!((left, bytes(&run)), ([true, false, true, true], 3 * third));
        MemoryStore::new(&run, b"e".to_vec()).write(vec![0; BYTES_MAX + 1], 1);
        assert_eq!((read(&run, b"e"), bytes(&run)), (None, 3 * third), "too large");
    }
}
