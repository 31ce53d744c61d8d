//! What each process image that lives has: a list, because few live at a time.

/// Values by image.
pub(crate) struct ByImage<T>(Vec<(u32, T)>);

impl<T> Default for ByImage<T> {
    fn default() -> ByImage<T> {
        ByImage(Vec::new())
    }
}

impl<T> ByImage<T> {
    /// Takes an image's value.
    pub(crate) fn remove(&mut self, image: u32) -> Option<T> {
        let at = self.0.iter().position(|(number, _)| *number == image)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Gives an image, which has none, a value.
    pub(crate) fn insert(&mut self, image: u32, value: T) {
        self.0.push((image, value));
    }

    /// An image's value, which is made where there is none.
    pub(crate) fn get_or(&mut self, image: u32, new: impl FnOnce() -> T) -> &mut T {
        let known = self.0.iter().position(|(number, _)| *number == image);
        let at = known.unwrap_or_else(|| {
            self.0.push((image, new()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// An image's value.
    pub(crate) fn get_mut(&mut self, image: u32) -> Option<&mut T> {
        self.0.iter_mut().find(|(number, _)| *number == image).map(|found| &mut found.1)
    }
}
