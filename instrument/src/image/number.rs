//! Numbers of system calls before which a thread stops for the host, and why it does.
//!
//! A program makes most system calls natively. It stops before those that change what the engine
//! relies on, and, where a run asks for it, before those that tell machines or runs apart. **Leaves
//! out** what the host does at the stop (`host::system_call`, `host::shown`).

pub(crate) const READ: u64 = libc::SYS_read as u64;
pub(crate) const OPEN: u64 = libc::SYS_open as u64;
pub(crate) const POLL: u64 = libc::SYS_poll as u64;
pub(crate) const MMAP: u64 = libc::SYS_mmap as u64;
pub(crate) const MPROTECT: u64 = libc::SYS_mprotect as u64;
pub(crate) const MUNMAP: u64 = libc::SYS_munmap as u64;
pub(crate) const SIGACTION: u64 = libc::SYS_rt_sigaction as u64;
pub(crate) const SIGPROCMASK: u64 = libc::SYS_rt_sigprocmask as u64;
pub(crate) const SIGRETURN: u64 = libc::SYS_rt_sigreturn as u64;
pub(crate) const PREAD: u64 = libc::SYS_pread64 as u64;
pub(crate) const READV: u64 = libc::SYS_readv as u64;
pub(crate) const SELECT: u64 = libc::SYS_select as u64;
pub(crate) const MREMAP: u64 = libc::SYS_mremap as u64;
pub(crate) const NANOSLEEP: u64 = libc::SYS_nanosleep as u64;
pub(crate) const ALARM: u64 = libc::SYS_alarm as u64;
pub(crate) const SETITIMER: u64 = libc::SYS_setitimer as u64;
pub(crate) const GETPID: u64 = libc::SYS_getpid as u64;
pub(crate) const CONNECT: u64 = libc::SYS_connect as u64;
pub(crate) const BIND: u64 = libc::SYS_bind as u64;
pub(crate) const CLONE: u64 = libc::SYS_clone as u64;
pub(crate) const KILL: u64 = libc::SYS_kill as u64;
pub(crate) const GETTIMEOFDAY: u64 = libc::SYS_gettimeofday as u64;
pub(crate) const GETRUSAGE: u64 = libc::SYS_getrusage as u64;
pub(crate) const SYSINFO: u64 = libc::SYS_sysinfo as u64;
pub(crate) const TIMES: u64 = libc::SYS_times as u64;
pub(crate) const PTRACE: u64 = libc::SYS_ptrace as u64;
pub(crate) const SETPGID: u64 = libc::SYS_setpgid as u64;
pub(crate) const GETPPID: u64 = libc::SYS_getppid as u64;
pub(crate) const GETPGID: u64 = libc::SYS_getpgid as u64;
pub(crate) const GETSID: u64 = libc::SYS_getsid as u64;
pub(crate) const SIGTIMEDWAIT: u64 = libc::SYS_rt_sigtimedwait as u64;
pub(crate) const SIGQUEUEINFO: u64 = libc::SYS_rt_sigqueueinfo as u64;
pub(crate) const GETPRIORITY: u64 = libc::SYS_getpriority as u64;
pub(crate) const SETPRIORITY: u64 = libc::SYS_setpriority as u64;
pub(crate) const SCHED_SETPARAM: u64 = libc::SYS_sched_setparam as u64;
pub(crate) const SCHED_GETPARAM: u64 = libc::SYS_sched_getparam as u64;
pub(crate) const SCHED_SETSCHEDULER: u64 = libc::SYS_sched_setscheduler as u64;
pub(crate) const SCHED_GETSCHEDULER: u64 = libc::SYS_sched_getscheduler as u64;
pub(crate) const SCHED_GET_INTERVAL: u64 = libc::SYS_sched_rr_get_interval as u64;
pub(crate) const PRCTL: u64 = libc::SYS_prctl as u64;
pub(crate) const ARCH_PRCTL: u64 = libc::SYS_arch_prctl as u64;
pub(crate) const GETTID: u64 = libc::SYS_gettid as u64;
pub(crate) const TKILL: u64 = libc::SYS_tkill as u64;
pub(crate) const TIME: u64 = libc::SYS_time as u64;
pub(crate) const FUTEX: u64 = libc::SYS_futex as u64;
pub(crate) const SET_AFFINITY: u64 = libc::SYS_sched_setaffinity as u64;
pub(crate) const GET_AFFINITY: u64 = libc::SYS_sched_getaffinity as u64;
pub(crate) const TIMER_SETTIME: u64 = libc::SYS_timer_settime as u64;
pub(crate) const CLOCK_GETTIME: u64 = libc::SYS_clock_gettime as u64;
pub(crate) const CLOCK_GETRES: u64 = libc::SYS_clock_getres as u64;
pub(crate) const CLOCK_NANOSLEEP: u64 = libc::SYS_clock_nanosleep as u64;
pub(crate) const EPOLL_WAIT: u64 = libc::SYS_epoll_wait as u64;
pub(crate) const TGKILL: u64 = libc::SYS_tgkill as u64;
pub(crate) const OPENAT: u64 = libc::SYS_openat as u64;
pub(crate) const PSELECT: u64 = libc::SYS_pselect6 as u64;
pub(crate) const PPOLL: u64 = libc::SYS_ppoll as u64;
pub(crate) const EPOLL_PWAIT: u64 = libc::SYS_epoll_pwait as u64;
pub(crate) const TIMERFD_SETTIME: u64 = libc::SYS_timerfd_settime as u64;
pub(crate) const TGSIGQUEUEINFO: u64 = libc::SYS_rt_tgsigqueueinfo as u64;
pub(crate) const PRLIMIT: u64 = libc::SYS_prlimit64 as u64;
pub(crate) const GETCPU: u64 = libc::SYS_getcpu as u64;
pub(crate) const SCHED_SETATTR: u64 = libc::SYS_sched_setattr as u64;
pub(crate) const SCHED_GETATTR: u64 = libc::SYS_sched_getattr as u64;
pub(crate) const SECCOMP: u64 = libc::SYS_seccomp as u64;
pub(crate) const GETRANDOM: u64 = libc::SYS_getrandom as u64;
pub(crate) const PKEY_MPROTECT: u64 = libc::SYS_pkey_mprotect as u64;
pub(crate) const RSEQ: u64 = libc::SYS_rseq as u64;
pub(crate) const PIDFD_OPEN: u64 = libc::SYS_pidfd_open as u64;
pub(crate) const CLONE3: u64 = libc::SYS_clone3 as u64;
pub(crate) const OPENAT2: u64 = libc::SYS_openat2 as u64;
pub(crate) const EPOLL_PWAIT2: u64 = libc::SYS_epoll_pwait2 as u64;

pub(crate) const ALL: [u64; 16] = [
    MMAP,
    MPROTECT,
    PKEY_MPROTECT,
    MUNMAP,
    SIGACTION,
    SIGPROCMASK,
    SIGRETURN,
    MREMAP,
    CLONE,
    ARCH_PRCTL,
    SET_AFFINITY,
    GET_AFFINITY,
    RSEQ,
    CLONE3,
    PRCTL,
    SECCOMP,
];
/// Calls that stop if children are counted, because the host already traces the children.
pub(crate) const OF_TRACERS: [u64; 1] = [PTRACE];
/// Calls that stop if a processor is declared.
pub(crate) const OF_PROCESSORS: [u64; 1] = [GETCPU];
/// Calls that stop if a run is to repeat exactly.
pub(crate) const OF_REPEATING: [u64; 28] = [
    GETPID,
    GETTID,
    GETPPID,
    NANOSLEEP,
    CLOCK_NANOSLEEP,
    POLL,
    PPOLL,
    SELECT,
    PSELECT,
    EPOLL_WAIT,
    EPOLL_PWAIT,
    EPOLL_PWAIT2,
    SIGTIMEDWAIT,
    FUTEX,
    CLOCK_GETTIME,
    CLOCK_GETRES,
    GETTIMEOFDAY,
    TIME,
    TIMES,
    GETRUSAGE,
    SYSINFO,
    GETRANDOM,
    ALARM,
    SETITIMER,
    TIMER_SETTIME,
    TIMERFD_SETTIME,
    CONNECT,
    BIND,
];
/// Calls that take numbers of tasks, and stop if a run is to repeat exactly.
pub(crate) const OF_TASKS: [u64; 20] = [
    KILL,
    TKILL,
    TGKILL,
    SIGQUEUEINFO,
    TGSIGQUEUEINFO,
    GETPGID,
    SETPGID,
    GETSID,
    GETPRIORITY,
    SETPRIORITY,
    SCHED_SETPARAM,
    SCHED_GETPARAM,
    SCHED_SETSCHEDULER,
    SCHED_GETSCHEDULER,
    SCHED_GET_INTERVAL,
    SCHED_SETATTR,
    SCHED_GETATTR,
    SET_AFFINITY,
    PRLIMIT,
    PIDFD_OPEN,
];
/// Calls that stop once a program that is to repeat has opened a file of random bytes.
pub(crate) const READS: [u64; 3] = [READ, PREAD, READV];
/// Calls that stop while the program is bound to one processor, because a file may show that.
pub(crate) const OPENS: [u64; 3] = [OPEN, OPENAT, OPENAT2];
