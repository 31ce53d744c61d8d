//! The functions of the header, once for each type of keys.
//!
//! A pointer from C is one of four kinds, and each kind is read in one place: an array, a path, a
//! result, an object of this library.

use std::ffi::{c_char, c_int, c_void, CStr};

use search::{Index, Isa, Iter, Key};

use crate::status::{sentence, status_of, Failure};

/// An array of `count` elements from C; a null one is empty.
///
/// # Safety
/// Unless null, `start` must point at `count` elements that nobody changes while the slice lives.
unsafe fn array<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if start.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller promises that the elements are there and stay as they are.
    unsafe { std::slice::from_raw_parts(start, count) }
}

/// An array of `count` elements to be written; a null one is empty.
///
/// # Safety
/// Unless null, `start` must point at `count` elements that only the slice's owner uses.
unsafe fn array_mut<'a, T>(start: *mut T, count: usize) -> &'a mut [T] {
    if start.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: the caller promises that the elements are there and that nobody else uses them.
    unsafe { std::slice::from_raw_parts_mut(start, count) }
}

/// A path from C.
///
/// # Safety
/// Unless null, `path` must end in a zero.
unsafe fn path<'a>(path: *const c_char) -> Result<&'a str, Failure> {
    if path.is_null() {
        return Err(Failure::argument("the path is a null pointer"));
    }
    // SAFETY: the caller promises a zero at the end.
    let text = unsafe { CStr::from_ptr(path) };
    text.to_str().map_err(|_| Failure::argument("the path is not UTF-8"))
}

/// Stores what `make` makes where a result is wanted, on the heap; a null pointer on failure.
///
/// # Safety
/// Unless null, `result` must point at a pointer.
unsafe fn store<T>(result: *mut *mut T, make: impl FnOnce() -> Result<T, Failure>) -> c_int {
    status_of(|| {
        if result.is_null() {
            return Err(Failure::argument("the place of the result is a null pointer"));
        }
        // SAFETY: the caller promises a pointer there.
        unsafe { *result = std::ptr::null_mut() };
        let made = Box::into_raw(Box::new(make()?));
        // SAFETY: the caller promises a pointer there.
        unsafe { *result = made };
        Ok(())
    })
}

/// Frees what [`store`] stored; a null pointer is allowed.
///
/// # Safety
/// `object` must be null or come from this library, and must not be used again.
unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller promises that the object is this library's, which boxes all of them.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// Refuses lengths that no array of C has.
fn checked<K>(n: usize) -> Result<usize, Failure> {
    match n.checked_mul(size_of::<K>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(n),
        _ => Err(Failure::argument(format!("{n} keys are more than memory can hold"))),
    }
}

/// Copies keys of consecutive ranks; returns how many there were.
fn read<K: Key>(index: &Index<K>, first: usize, keys: &mut [K]) -> usize {
    let end = index.len().min(first.saturating_add(keys.len()));
    let found = index.iter_ranks(first.min(end)..end);
    keys.iter_mut().zip(found).map(|(slot, key)| *slot = key).count()
}

/// Writes a key, if there is one, to its place; returns whether there is one.
///
/// # Safety
/// `place` must point at a key.
unsafe fn give<K>(key: Option<K>, place: *mut K) -> bool {
    let Some(key) = key else { return false };
    // SAFETY: the caller promises the place of a key.
    unsafe { place.write(key) };
    true
}

/// Copies as much of `text` as fits, and a zero; returns the bytes that all of it takes.
fn copy_text(text: &str, into: &mut [c_char]) -> usize {
    if let Some((last, others)) = into.split_last_mut() {
        let copied = text.len().min(others.len());
        others.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte as c_char);
        *others.get_mut(copied).unwrap_or(last) = 0;
    }
    text.len() + 1
}

/// Why the last function that failed in this thread did so.
#[no_mangle]
pub extern "C" fn lfindex_message() -> *const c_char {
    sentence()
}

/// The instruction set that queries use on this machine.
#[no_mangle]
pub extern "C" fn lfindex_instructions() -> *const c_char {
    match Isa::detect() {
        Isa::Avx512 => c"avx512".as_ptr(),
        Isa::Avx2 => c"avx2".as_ptr(),
        Isa::Neon => c"neon".as_ptr(),
        _ => c"scalar".as_ptr(),
    }
}

/// Defines the functions of the header's `LFINDEX_DECLARE`.
macro_rules! define_functions {
    ($key:ty, $build:ident, $build_unsorted:ident, $open:ident, $save:ident, $from_bytes:ident, $free:ident,
     $length:ident, $memory_bytes:ident, $lower_bound:ident, $upper_bound:ident, $contains:ident, $batch:ident,
     $read:ident, $iterate:ident, $next:ident, $next_back:ident, $iterator_free:ident, $explain:ident $(,)?) => {
        /// Builds from `n` sorted keys.
        ///
        /// # Safety
        /// As the header says: valid pointers, or null ones where a length is 0.
        #[no_mangle]
        pub unsafe extern "C" fn $build(keys: *const $key, n: usize, index: *mut *mut Index<$key>) -> c_int {
            // SAFETY: the header asks for `n` keys, and for a pointer in which the result goes.
            unsafe { store(index, || Ok(Index::build(array(keys, checked::<$key>(n)?))?)) }
        }

        /// Sorts a copy of `n` keys, then builds with this number of threads.
        ///
        /// # Safety
        /// As the header says: valid pointers, or null ones where a length is 0.
        #[no_mangle]
        pub unsafe extern "C" fn $build_unsorted(
            keys: *const $key,
            n: usize,
            threads: usize,
            index: *mut *mut Index<$key>,
        ) -> c_int {
            // SAFETY: the header asks for `n` keys, and for a pointer in which the result goes.
            unsafe {
                store(index, || {
                    let keys = array(keys, checked::<$key>(n)?).to_vec();
                    Ok(Index::build_parallel(keys, threads.max(1))?)
                })
            }
        }

        /// Reads an index file and checks it.
        ///
        /// # Safety
        /// `file` must be a C string, and `index` must point at a pointer.
        #[no_mangle]
        pub unsafe extern "C" fn $open(file: *const c_char, index: *mut *mut Index<$key>) -> c_int {
            // SAFETY: the header asks for a C string, and for a pointer in which the result goes.
            unsafe { store(index, || Ok(Index::open(path(file)?)?)) }
        }

        /// Writes an index file, whole or not at all.
        ///
        /// # Safety
        /// `index` must be an index of this library, and `file` a C string.
        #[no_mangle]
        pub unsafe extern "C" fn $save(index: *const Index<$key>, file: *const c_char) -> c_int {
            // SAFETY: the header asks for an index that is not freed, and for a C string.
            status_of(|| Ok(unsafe { (*index).save(path(file)?) }?))
        }

        /// Reads an index from the bytes of a file.
        ///
        /// # Safety
        /// `bytes` must point at `length` bytes, and `index` at a pointer.
        #[no_mangle]
        pub unsafe extern "C" fn $from_bytes(
            bytes: *const c_void,
            length: usize,
            index: *mut *mut Index<$key>,
        ) -> c_int {
            // SAFETY: the header asks for that many bytes, and for a pointer in which the result
            // goes.
            unsafe { store(index, || Ok(Index::from_bytes(array(bytes.cast(), checked::<u8>(length)?))?)) }
        }

        /// Frees an index.
        ///
        /// # Safety
        /// `index` must be null or an index of this library that nobody uses any more.
        #[no_mangle]
        pub unsafe extern "C" fn $free(index: *mut Index<$key>) {
            // SAFETY: the header asks for null or for an index that is not used again.
            unsafe { free(index) }
        }

        /// Number of keys.
        ///
        /// # Safety
        /// `index` must be an index of this library.
        #[no_mangle]
        pub unsafe extern "C" fn $length(index: *const Index<$key>) -> usize {
            // SAFETY: the header asks for an index that is not freed.
            unsafe { &*index }.len()
        }

        /// Bytes of memory.
        ///
        /// # Safety
        /// `index` must be an index of this library.
        #[no_mangle]
        pub unsafe extern "C" fn $memory_bytes(index: *const Index<$key>) -> usize {
            // SAFETY: the header asks for an index that is not freed.
            unsafe { &*index }.bytes()
        }

        /// The number of keys less than `key`.
        ///
        /// # Safety
        /// `index` must be an index of this library.
        #[no_mangle]
        pub unsafe extern "C" fn $lower_bound(index: *const Index<$key>, key: $key) -> usize {
            // SAFETY: the header asks for an index that is not freed.
            unsafe { &*index }.lower_bound(key)
        }

        /// The number of keys not greater than `key`.
        ///
        /// # Safety
        /// `index` must be an index of this library.
        #[no_mangle]
        pub unsafe extern "C" fn $upper_bound(index: *const Index<$key>, key: $key) -> usize {
            // SAFETY: the header asks for an index that is not freed.
            unsafe { &*index }.upper_bound(key)
        }

        /// Whether some key equals `key`.
        ///
        /// # Safety
        /// `index` must be an index of this library.
        #[no_mangle]
        pub unsafe extern "C" fn $contains(index: *const Index<$key>, key: $key) -> bool {
            // SAFETY: the header asks for an index that is not freed.
            unsafe { &*index }.contains(key)
        }

        /// The ranks of `count` keys.
        ///
        /// # Safety
        /// `index` must be an index of this library, and the arrays must have `count` elements.
        #[no_mangle]
        pub unsafe extern "C" fn $batch(
            index: *const Index<$key>,
            keys: *const $key,
            ranks: *mut usize,
            count: usize,
            threads: usize,
        ) {
            // SAFETY: the header asks for an index that is not freed, and for arrays of that
            // length.
            let (index, keys, ranks) = unsafe { (&*index, array(keys, count), array_mut(ranks, count)) };
            index.batch_parallel(keys, ranks, threads.max(1));
        }

        /// The keys of consecutive ranks.
        ///
        /// # Safety
        /// `index` must be an index of this library, and the array must have `count` elements.
        #[no_mangle]
        pub unsafe extern "C" fn $read(
            index: *const Index<$key>,
            first: usize,
            keys: *mut $key,
            count: usize,
        ) -> usize {
            // SAFETY: the header asks for an index that is not freed, and for that many keys.
            unsafe { read(&*index, first, array_mut(keys, count)) }
        }

        /// An iterator over a range of ranks.
        ///
        /// # Safety
        /// `index` must be an index of this library that is freed after the iterator.
        #[no_mangle]
        pub unsafe extern "C" fn $iterate<'a>(
            index: *const Index<$key>,
            first: usize,
            end: usize,
        ) -> *mut Iter<'a, $key> {
            // SAFETY: the header asks for an index that outlives its iterators.
            let index = unsafe { &*index };
            let end = end.min(index.len());
            Box::into_raw(Box::new(index.iter_ranks(first.min(end)..end)))
        }

        /// The next key from the front.
        ///
        /// # Safety
        /// `iterator` must be an iterator of this library, and `key` point at a key.
        #[no_mangle]
        pub unsafe extern "C" fn $next(iterator: *mut Iter<'_, $key>, key: *mut $key) -> bool {
            // SAFETY: the header asks for an iterator that one thread uses at a time, and for the
            // place of a key.
            unsafe { give((*iterator).next(), key) }
        }

        /// The next key from the back.
        ///
        /// # Safety
        /// `iterator` must be an iterator of this library, and `key` point at a key.
        #[no_mangle]
        pub unsafe extern "C" fn $next_back(iterator: *mut Iter<'_, $key>, key: *mut $key) -> bool {
            // SAFETY: the header asks for an iterator that one thread uses at a time, and for the
            // place of a key.
            unsafe { give((*iterator).next_back(), key) }
        }

        /// Frees an iterator.
        ///
        /// # Safety
        /// `iterator` must be null or an iterator of this library that nobody uses any more.
        #[no_mangle]
        pub unsafe extern "C" fn $iterator_free(iterator: *mut Iter<'_, $key>) {
            // SAFETY: the header asks for null or for an iterator that is not used again.
            unsafe { free(iterator) }
        }

        /// The plan in words.
        ///
        /// # Safety
        /// `index` must be an index of this library, and `text` have `size` bytes.
        #[no_mangle]
        pub unsafe extern "C" fn $explain(
            index: *const Index<$key>,
            text: *mut c_char,
            size: usize,
        ) -> usize {
            // SAFETY: the header asks for an index that is not freed, and for that many bytes.
            let (index, text) = unsafe { (&*index, array_mut(text, size)) };
            copy_text(&index.explain(), text)
        }
    };
}

define_functions!(
    u8,
    lfindex_u8_build,
    lfindex_u8_build_unsorted,
    lfindex_u8_open,
    lfindex_u8_save,
    lfindex_u8_from_bytes,
    lfindex_u8_free,
    lfindex_u8_length,
    lfindex_u8_memory_bytes,
    lfindex_u8_lower_bound,
    lfindex_u8_upper_bound,
    lfindex_u8_contains,
    lfindex_u8_batch,
    lfindex_u8_read,
    lfindex_u8_iterate,
    lfindex_u8_next,
    lfindex_u8_next_back,
    lfindex_u8_iterator_free,
    lfindex_u8_explain,
);

define_functions!(
    i8,
    lfindex_i8_build,
    lfindex_i8_build_unsorted,
    lfindex_i8_open,
    lfindex_i8_save,
    lfindex_i8_from_bytes,
    lfindex_i8_free,
    lfindex_i8_length,
    lfindex_i8_memory_bytes,
    lfindex_i8_lower_bound,
    lfindex_i8_upper_bound,
    lfindex_i8_contains,
    lfindex_i8_batch,
    lfindex_i8_read,
    lfindex_i8_iterate,
    lfindex_i8_next,
    lfindex_i8_next_back,
    lfindex_i8_iterator_free,
    lfindex_i8_explain,
);

define_functions!(
    u16,
    lfindex_u16_build,
    lfindex_u16_build_unsorted,
    lfindex_u16_open,
    lfindex_u16_save,
    lfindex_u16_from_bytes,
    lfindex_u16_free,
    lfindex_u16_length,
    lfindex_u16_memory_bytes,
    lfindex_u16_lower_bound,
    lfindex_u16_upper_bound,
    lfindex_u16_contains,
    lfindex_u16_batch,
    lfindex_u16_read,
    lfindex_u16_iterate,
    lfindex_u16_next,
    lfindex_u16_next_back,
    lfindex_u16_iterator_free,
    lfindex_u16_explain,
);

define_functions!(
    i16,
    lfindex_i16_build,
    lfindex_i16_build_unsorted,
    lfindex_i16_open,
    lfindex_i16_save,
    lfindex_i16_from_bytes,
    lfindex_i16_free,
    lfindex_i16_length,
    lfindex_i16_memory_bytes,
    lfindex_i16_lower_bound,
    lfindex_i16_upper_bound,
    lfindex_i16_contains,
    lfindex_i16_batch,
    lfindex_i16_read,
    lfindex_i16_iterate,
    lfindex_i16_next,
    lfindex_i16_next_back,
    lfindex_i16_iterator_free,
    lfindex_i16_explain,
);

define_functions!(
    u32,
    lfindex_u32_build,
    lfindex_u32_build_unsorted,
    lfindex_u32_open,
    lfindex_u32_save,
    lfindex_u32_from_bytes,
    lfindex_u32_free,
    lfindex_u32_length,
    lfindex_u32_memory_bytes,
    lfindex_u32_lower_bound,
    lfindex_u32_upper_bound,
    lfindex_u32_contains,
    lfindex_u32_batch,
    lfindex_u32_read,
    lfindex_u32_iterate,
    lfindex_u32_next,
    lfindex_u32_next_back,
    lfindex_u32_iterator_free,
    lfindex_u32_explain,
);

define_functions!(
    i32,
    lfindex_i32_build,
    lfindex_i32_build_unsorted,
    lfindex_i32_open,
    lfindex_i32_save,
    lfindex_i32_from_bytes,
    lfindex_i32_free,
    lfindex_i32_length,
    lfindex_i32_memory_bytes,
    lfindex_i32_lower_bound,
    lfindex_i32_upper_bound,
    lfindex_i32_contains,
    lfindex_i32_batch,
    lfindex_i32_read,
    lfindex_i32_iterate,
    lfindex_i32_next,
    lfindex_i32_next_back,
    lfindex_i32_iterator_free,
    lfindex_i32_explain,
);

define_functions!(
    u64,
    lfindex_u64_build,
    lfindex_u64_build_unsorted,
    lfindex_u64_open,
    lfindex_u64_save,
    lfindex_u64_from_bytes,
    lfindex_u64_free,
    lfindex_u64_length,
    lfindex_u64_memory_bytes,
    lfindex_u64_lower_bound,
    lfindex_u64_upper_bound,
    lfindex_u64_contains,
    lfindex_u64_batch,
    lfindex_u64_read,
    lfindex_u64_iterate,
    lfindex_u64_next,
    lfindex_u64_next_back,
    lfindex_u64_iterator_free,
    lfindex_u64_explain,
);

define_functions!(
    i64,
    lfindex_i64_build,
    lfindex_i64_build_unsorted,
    lfindex_i64_open,
    lfindex_i64_save,
    lfindex_i64_from_bytes,
    lfindex_i64_free,
    lfindex_i64_length,
    lfindex_i64_memory_bytes,
    lfindex_i64_lower_bound,
    lfindex_i64_upper_bound,
    lfindex_i64_contains,
    lfindex_i64_batch,
    lfindex_i64_read,
    lfindex_i64_iterate,
    lfindex_i64_next,
    lfindex_i64_next_back,
    lfindex_i64_iterator_free,
    lfindex_i64_explain,
);

define_functions!(
    f32,
    lfindex_f32_build,
    lfindex_f32_build_unsorted,
    lfindex_f32_open,
    lfindex_f32_save,
    lfindex_f32_from_bytes,
    lfindex_f32_free,
    lfindex_f32_length,
    lfindex_f32_memory_bytes,
    lfindex_f32_lower_bound,
    lfindex_f32_upper_bound,
    lfindex_f32_contains,
    lfindex_f32_batch,
    lfindex_f32_read,
    lfindex_f32_iterate,
    lfindex_f32_next,
    lfindex_f32_next_back,
    lfindex_f32_iterator_free,
    lfindex_f32_explain,
);

define_functions!(
    f64,
    lfindex_f64_build,
    lfindex_f64_build_unsorted,
    lfindex_f64_open,
    lfindex_f64_save,
    lfindex_f64_from_bytes,
    lfindex_f64_free,
    lfindex_f64_length,
    lfindex_f64_memory_bytes,
    lfindex_f64_lower_bound,
    lfindex_f64_upper_bound,
    lfindex_f64_contains,
    lfindex_f64_batch,
    lfindex_f64_read,
    lfindex_f64_iterate,
    lfindex_f64_next,
    lfindex_f64_next_back,
    lfindex_f64_iterator_free,
    lfindex_f64_explain,
);
