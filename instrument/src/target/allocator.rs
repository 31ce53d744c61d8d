//! How this process gives memory back to the system.
//!
//! **The problem.** In a run that follows children, each image that ends leaves tables of
//! megabytes, and the next one needs as many. The C library gives each of them back and asks for
//! it again, and the kernel clears every page once more. **The idea.** Such a run keeps what it
//! has freed, but for blocks so large that they are mapped alone: most of their pages are never
//! touched, they begin as zeros, and they grow without being copied. One of the few files with
//! `unsafe`. **Leaves out** other C libraries than glibc.

/// Blocks of this many bytes are mapped alone: the largest number that glibc takes.
#[cfg(target_env = "gnu")]
const LARGE: i32 = 32 << 20;

/// Makes the C library of this process keep freed memory for later allocations, large ones too but
/// for the largest. A program that is going to run one that starts many others calls this first;
/// the most memory that it has at a time stays nearly the same. Where the C library is not glibc,
/// nothing changes.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the calls take integers only, and the C library serialises them with allocations.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        }
    }
}
