//! Regions: parts of a program that `lightfoot count --region NAME` and `lightfoot cache --region NAME` count apart.
//!
//! **What.** [`region_begin!`] and [`region_end!`] mark a place in the code; [`region!`] marks a scope. Natively a mark is a `nop` and a jump over
//! the region's name: no register, no flag and no memory changes, about a cycle is spent, and no library is needed at run time.
//! `include/lightfoot_region.h` does the same for C and C++. **Why this way.** lightfoot sees every block of code before it runs; a mark ends its
//! block, so a region begins and ends exactly between two instructions. **Leaves out** names made at run time: they are literals, without
//! quotes, braces and backslashes. On other processors than x86-64 marks are nothing.
//!
//! Regions nest, belong to the thread that opened them, and may be opened from several places.
//!
//! ```
//! fn lookup(table: &[u64], key: u64) -> Option<usize> {
//!     let _open = region::region!("lookup");
//!     table.iter().position(|&entry| entry == key)
//! }
//! assert_eq!(lookup(&[1, 2, 3], 3), Some(2));
//! ```

#![no_std]

#[doc(hidden)]
#[macro_export]
macro_rules! mark {
    ($kind:literal, $name:literal) => {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `nop`, and a jump over the bytes of the name that stand between it and its target; neither changes anything.
        unsafe {
            ::core::arch::asm!(
                ".byte 0x0f, 0x1f, 0x80",
                concat!(".ascii \"", $kind, "\""),
                "jmp 2f",
                concat!(".asciz \"", $name, "\""),
                "2:",
                options(nostack, preserves_flags)
            )
        }
    };
}

/// Opens the region of this name in this thread.
#[macro_export]
macro_rules! region_begin {
    ($name:literal) => {
        $crate::mark!("LFTB", $name)
    };
}

/// Closes the region of this name in this thread.
#[macro_export]
macro_rules! region_end {
    ($name:literal) => {
        $crate::mark!("LFTE", $name)
    };
}

/// Opens the region of this name until the value that this gives is dropped.
#[macro_export]
macro_rules! region {
    ($name:literal) => {{
        struct Open;
        impl Drop for Open {
            #[inline(always)]
            fn drop(&mut self) {
                $crate::region_end!($name);
            }
        }
        $crate::region_begin!($name);
        Open
    }};
}
