//! Rights that a program's file would give to the program, and that the kernel withholds from
//! traced processes.
//!
//! A file can be set-user-ID or set-group-ID, or have capabilities. Natively the program gets those
//! rights. Under `ptrace` it runs without them; if the tracer is privileged, it runs with another
//! identity, which may not use the engine's memory. In both cases it would not behave as natively.
//! Some files give no new rights: a file that belongs to the caller, one with capabilities that the
//! caller has, and any file for which the system ignores rights (`nosuid`, `no_new_privs`). One of
//! the few files with `unsafe`. Source: capabilities(7), execve(2), and `struct vfs_ns_cap_data` of
//! the kernel.

use std::ffi::CString;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const SET_USER: u32 = 0o4000;
/// The set-group-ID bit, with the group's right to execute: without that right the bit has another
/// meaning.
const SET_GROUP: u32 = 0o2010;
/// The most bytes of the attribute that holds capabilities.
const ATTRIBUTE_BYTES: usize = 24;

/// The reason why a file gives rights to a process that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileRights {
    /// The file is set-user-ID or set-group-ID.
    Identity,
    /// The file has capabilities.
    Capabilities,
}

impl FileRights {
    /// The error message for a program that is refused for this reason.
    pub(crate) fn refusal(self) -> &'static str {
        match self {
            FileRights::Identity => {
                "it is setuid or setgid, and the kernel drops those rights under tracing; run it as its owner"
            }
            FileRights::Capabilities => {
                "it has capabilities (see getcap), and the kernel drops those rights under tracing; run it as root, or \
                 run a copy of it, because copies have no capabilities"
            }
        }
    }

    /// A name for such a file in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FileRights::Identity => "setuid or setgid",
            FileRights::Capabilities => "a file with capabilities",
        }
    }
}

/// The identity and the capabilities of this process.
#[derive(Clone, Copy, Debug, Default)]
struct HostRights {
    user: u32,
    group: u32,
    permitted: u64,
    inheritable: u64,
    bounding: u64,
    gains_nothing: bool,
}

impl HostRights {
    fn this() -> HostRights {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        // Each line holds four numbers: real, effective, saved and file system identity.
        let effective = |name| field(name).and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
        let set = |name| field(name).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
        HostRights {
            user: effective("Uid:").unwrap_or(0),
            group: effective("Gid:").unwrap_or(0),
            permitted: set("CapPrm:"),
            inheritable: set("CapInh:"),
            bounding: set("CapBnd:"),
            gains_nothing: field("NoNewPrivs:") == Some("1"),
        }
    }

    fn gains_identity(&self, about: &Metadata) -> bool {
        let mode = about.mode();
        mode & SET_USER != 0 && about.uid() != self.user
            || mode & SET_GROUP == SET_GROUP && about.gid() != self.group
    }

    fn gains_capabilities(&self, attribute: &[u8]) -> bool {
        let Some([permitted, inheritable]) = capabilities(attribute) else { return false };
        (permitted & self.bounding | inheritable & self.inheritable) & !self.permitted != 0
    }
}

/// The reason why executing the file would give new rights to this process, if it would.
pub(crate) fn given(path: &Path, about: &Metadata) -> Option<FileRights> {
    const SET_ANY: u32 = 0o6000;
    let attribute = attribute(path);
    if about.mode() & SET_ANY == 0 && attribute.is_empty() {
        return None;
    }
    let caller = HostRights::this();
    if caller.gains_nothing || ignores_rights(path) {
        return None;
    }
    let identity = caller.gains_identity(about).then_some(FileRights::Identity);
    identity.or_else(|| caller.gains_capabilities(&attribute).then_some(FileRights::Capabilities))
}

/// The permitted and the inheritable capabilities in a file's attribute.
fn capabilities(attribute: &[u8]) -> Option<[u64; 2]> {
    let word = |at: usize| Some(u64::from(u32::from_le_bytes(attribute.get(at..at + 4)?.try_into().ok()?)));
    // The first revision of the attribute has 32 bits of each set; later ones have 64.
    let high = |at| word(at).map_or(0, |bits| bits << 32);
    Some([word(4)? | high(12), word(8)? | high(16)])
}

/// The attribute that holds a file's capabilities; empty if the file has none.
fn attribute(path: &Path) -> Vec<u8> {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return Vec::new() };
    let mut bytes = vec![0u8; ATTRIBUTE_BYTES];
    let into = bytes.as_mut_ptr().cast();
    let name = c"security.capability";
    // SAFETY: both strings end with a NUL, and the kernel writes at most `ATTRIBUTE_BYTES` bytes,
    // which is the size of the buffer.
    let got = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), into, ATTRIBUTE_BYTES) };
    bytes.truncate(usize::try_from(got).unwrap_or(0));
    bytes
}

/// Whether the file system of `path` is mounted so that its files give no rights.
fn ignores_rights(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path ends with a NUL, and all zeroes are a valid `statvfs`, which the call fills.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        libc::statvfs(path.as_ptr(), &mut about) == 0 && about.f_flag & libc::ST_NOSUID != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cap_net_raw` (13) and `cap_checkpoint_restore` (40) permitted, `cap_chown` (0) inheritable,
    /// and the effective bit.
    const ATTRIBUTE: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];

    #[test]
    fn capabilities_are_read_as_the_kernel_writes_them() {
        assert_eq!(capabilities(&ATTRIBUTE), Some([1 << 13 | 1 << 40, 1]));
        assert_eq!(capabilities(&[1, 0, 0, 1, 2, 0, 0, 0, 4, 0, 0, 0]), Some([2, 4]));
        assert_eq!(capabilities(&[]), None);
    }

    #[test]
    fn only_what_the_caller_lacks_is_gained() {
        let all = HostRights { permitted: u64::MAX, bounding: u64::MAX, ..HostRights::default() };
        assert!(!all.gains_capabilities(&ATTRIBUTE));
        let none = HostRights { permitted: 0, ..all };
        assert!(none.gains_capabilities(&ATTRIBUTE));
        assert!(
            !HostRights { bounding: 1, ..none }.gains_capabilities(&ATTRIBUTE),
            "outside of the bounding set"
        );
        assert!(HostRights { bounding: 1, inheritable: 1, ..none }.gains_capabilities(&ATTRIBUTE));
        assert!(!none.gains_capabilities(&[]));
    }
}
