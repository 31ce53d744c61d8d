//! How this process gives memory back to the system.
//!
//! **The problem.** In a run that follows children, each image that ends leaves tables of
//! megabytes, and the next one needs as many. The C library gives each of them back and asks for
//! it again, and the kernel clears every page once more. **The idea.** Such a run keeps what it
//! has freed. One of the few files with `unsafe`. **Leaves out** other C libraries than glibc.

/// Makes the C library of this process keep freed memory for later allocations, large ones too. A
/// program that is going to run one that starts many others calls this first; the most memory that
/// it has at a time stays nearly the same. Where the C library is not glibc, nothing changes.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the calls take integers only, and the C library serialises them with allocations.
        unsafe {
            libc::mallopt(libc::M_MMAP_MAX, 0);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        }
    }
}
