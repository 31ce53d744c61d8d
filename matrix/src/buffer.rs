//! Memory for panels, aligned to a cache line, and a pool of scratch buffers.
//!
//! Scratch memory comes from a small pool: a fresh allocation of a few megabytes costs a page fault
//! per 4 KB, about 5 % of a multiplication with N = 1024. The pool keeps at most [`POOL_BUFFERS`]
//! buffers, the largest ones: small ones that are no longer wanted must not keep out large ones.
//!
//! Buffers of a huge page or more are requested on huge pages, and scratch memory from half a
//! megabyte on is rounded up to one: the panels of a block then take one entry of the TLB in place
//! of hundreds.

use crate::{Element, Error};
use std::alloc::{alloc, alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Mutex;

/// Alignment of every buffer: a cache line, and the widest vector register.
const ALIGN: usize = 64;
/// Bytes of a huge page, and the alignment of buffers that may lie on some.
const HUGE_BYTES: usize = 2 << 20;
/// Scratch memory of as many bytes gets whole huge pages.
const WORTH_HUGE_PAGES: usize = HUGE_BYTES / 4;
/// The most buffers that the pool keeps.
const POOL_BUFFERS: usize = 16;

/// An aligned allocation without a type.
struct Bytes {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: `Bytes` owns its allocation alone; nothing else points into it.
unsafe impl Send for Bytes {}
// SAFETY: shared access only reads.
unsafe impl Sync for Bytes {}

impl Bytes {
    fn layout(len: usize) -> Layout {
        let align = if len >= HUGE_BYTES { HUGE_BYTES } else { ALIGN };
        Layout::from_size_align(len, align).expect("sizes are checked before allocation")
    }

    fn zeroed(len: usize) -> Bytes {
        if len == 0 {
            return Bytes { start: NonNull::<Line>::dangling().cast(), len };
        }
        let layout = Bytes::layout(len);
        if len >= HUGE_BYTES {
            return Bytes::zeroed_on_huge_pages(layout);
        }
        // SAFETY: the layout has a size above zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) });
        Bytes { start: start.unwrap_or_else(|| handle_alloc_error(layout)), len }
    }

    /// Memory whose pages are requested before the zeros are written, which decides their size.
    fn zeroed_on_huge_pages(layout: Layout) -> Bytes {
        let len = layout.size();
        // SAFETY: the layout has a size above zero.
        let start = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        // A refusal leaves small pages.
        #[cfg(target_os = "linux")]
        // SAFETY: these are whole pages of the allocation, whose contents the advice keeps.
        unsafe {
            libc::madvise(start.as_ptr().cast(), len / HUGE_BYTES * HUGE_BYTES, libc::MADV_HUGEPAGE);
        }
        // SAFETY: the allocation has `len` bytes.
        unsafe { start.as_ptr().write_bytes(0, len) };
        Bytes { start, len }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: `zeroed` allocated it with this layout, and nothing else frees it.
            unsafe { dealloc(self.start.as_ptr(), Bytes::layout(self.len)) }
        }
    }
}

/// A type with a buffer's alignment, for the dangling pointer of an empty buffer.
#[repr(align(64))]
struct Line;

/// A slice of `T` on aligned memory.
pub(crate) struct Buffer<T> {
    bytes: Bytes,
    len: usize,
    element: std::marker::PhantomData<T>,
}

/// A type of which all-zero bytes are a value.
pub(crate) trait Zeroed: Copy {}
impl<T: Element> Zeroed for T {}
/// Words of packed operands of [`crate::mixed`].
impl Zeroed for u32 {}

impl<T: Zeroed> Buffer<T> {
    /// A buffer of `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Result<Buffer<T>, Error> {
        Ok(Buffer { bytes: Bytes::zeroed(byte_len::<T>(len)?), len, element: std::marker::PhantomData })
    }

    /// A buffer of `len` elements with any contents: the smallest of the pool that is large enough,
    /// or a new one.
    pub(crate) fn scratch(len: usize) -> Result<Scratch<T>, Error> {
        let wanted = match byte_len::<T>(len)? {
            small if small < WORTH_HUGE_PAGES => small,
            large => large.checked_next_multiple_of(HUGE_BYTES).unwrap_or(large),
        };
        let mut pool = POOL.lock().unwrap_or_else(|broken| broken.into_inner());
        let fits = pool.iter().enumerate().filter(|(_, bytes)| bytes.len >= wanted);
        let best = fits.min_by_key(|(_, bytes)| bytes.len).map(|(index, _)| index);
        let bytes = best.map(|index| pool.swap_remove(index));
        drop(pool);
        let bytes = bytes.unwrap_or_else(|| Bytes::zeroed(wanted));
        Ok(Scratch(Some(Buffer { bytes, len, element: std::marker::PhantomData })))
    }
}

fn byte_len<T>(len: usize) -> Result<usize, Error> {
    let bytes =
        len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize - 2 * HUGE_BYTES);
    bytes.map(|bytes| bytes.next_multiple_of(ALIGN)).ok_or(Error::TooLarge { rows: len, cols: 1 })
}

impl<T: Zeroed> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        let mut copy = Buffer::zeroed(self.len).expect("as large as one that exists");
        copy.copy_from_slice(self);
        copy
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the allocation holds `len` elements, zeroed at first, and zero bytes are a value
        // of `Zeroed` types.
        unsafe { std::slice::from_raw_parts(self.bytes.start.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the allocation holds `len` initialised elements, and `&mut self` makes the access
        // unique.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.start.as_ptr().cast(), self.len) }
    }
}

static POOL: Mutex<Vec<Bytes>> = Mutex::new(Vec::new());

/// A buffer that returns to the pool when it is dropped.
pub(crate) struct Scratch<T>(Option<Buffer<T>>);

impl<T> Deref for Scratch<T> {
    type Target = Buffer<T>;
    fn deref(&self) -> &Buffer<T> {
        self.0.as_ref().expect("taken only when dropped")
    }
}

impl<T> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut Buffer<T> {
        self.0.as_mut().expect("taken only when dropped")
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        let Some(buffer) = self.0.take() else { return };
        let mut pool = POOL.lock().unwrap_or_else(|broken| broken.into_inner());
        let mut bytes = buffer.bytes;
        if bytes.len > 0 && pool.len() < POOL_BUFFERS {
            return pool.push(bytes);
        }
        let smallest = pool.iter_mut().min_by_key(|kept| kept.len).filter(|kept| kept.len < bytes.len);
        if let Some(kept) = smallest {
            std::mem::swap(kept, &mut bytes);
        }
        // Freeing memory takes longer than anything else here, and needs no lock.
        drop(pool);
    }
}
