/* Writes down everything that a program inherits, one line each, so that two runs can be compared by text.
 *
 * inherited report FILE          what this process, a forked child and two executed children of it have
 * inherited one FILE TITLE       what this process alone has, appended to FILE
 * inherited prepare CASE COMMAND ARGUMENTS...
 *                                gives a command something special to inherit, and becomes it
 *
 * Left out is what differs between any two runs: process numbers, random bytes, the numbers of pipes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;
static char text[1 << 18];
static size_t used;
static const char *title;

static void line(const char *format, ...) {
    va_list values;
    used += snprintf(text + used, sizeof text - used, "%s: ", title);
    va_start(values, format);
    used += vsnprintf(text + used, sizeof text - used, format, values);
    va_end(values);
    text[used++] = '\n';
}

/* One line of a file, without its end. */
static void of_file(const char *what, const char *path) {
    char content[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, content, sizeof content - 1);
    if (fd >= 0) close(fd);
    content[got > 0 ? got : 0] = 0;
    content[strcspn(content, "\n")] = 0;
    line("%s %s", what, content);
}

/* The kernel's own answer: glibc hides signals 32 and 33. */
static void signals(void) {
    struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } action;
    unsigned long mask = 0, pending = 0;
    stack_t stack;
    for (int number = 1; number <= 64; number++) {
        memset(&action, 0, sizeof action);
        long got = syscall(SYS_rt_sigaction, number, 0, &action, 8);
        const char *what = action.handler == SIG_DFL ? "default" : action.handler == SIG_IGN ? "ignored" : "handler";
        line("signal %d: %ld %s flags %lx mask %lx", number, got, what, action.flags, action.mask);
    }
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
    syscall(SYS_rt_sigpending, &pending, 8);
    line("blocked %lx pending %lx", mask, pending);
    sigaltstack(0, &stack);
    line("alternate stack flags %x size %zu", stack.ss_flags, stack.ss_size);
}

static void descriptors(void) {
    char path[64], target[4096];
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0) continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t got = readlink(path, target, sizeof target - 1);
        target[got > 0 ? got : 0] = 0;
        char *number = strchr(target, '[');
        if (number) *number = 0;
        line("descriptor %d: %s flags %x status %x owner %d", fd, target, flags, fcntl(fd, F_GETFL), fcntl(fd, F_GETOWN));
    }
}

static void limits(void) {
    struct rlimit limit;
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        getrlimit(which, &limit);
        line("limit %d: %lx %lx", which, (long)limit.rlim_cur, (long)limit.rlim_max);
    }
}

static void scheduling(void) {
    unsigned long processors[16] = {0};
    struct sched_param parameter = {0};
    long got = syscall(SYS_sched_getaffinity, 0, sizeof processors, processors);
    line("processors %ld: %lx %lx", got, processors[0], processors[1]);
    line("processors configured %ld online %ld", sysconf(_SC_NPROCESSORS_CONF), sysconf(_SC_NPROCESSORS_ONLN));
    sched_getparam(0, &parameter);
    line("nice %d policy %d priority %d", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), parameter.sched_priority);
    line("i/o priority %ld", syscall(SYS_ioprio_get, 1, 0));
    line("timer slack %d", prctl(PR_GET_TIMERSLACK));
}

static void credentials(void) {
    uid_t r, e, s;
    gid_t groups[256];
    getresuid(&r, &e, &s);
    line("users %d %d %d", r, e, s);
    getresgid(&r, &e, &s);
    line("groups %d %d %d", r, e, s);
    int count = getgroups(256, groups);
    for (int n = 0; n < count; n++) line("group %d", groups[n]);
    unsigned header[2] = {0x20080522, 0}, sets[6];
    syscall(SYS_capget, header, sets);
    line("capabilities %x %x %x %x %x %x", sets[0], sets[1], sets[2], sets[3], sets[4], sets[5]);
    line("secure bits %x keep %d", prctl(PR_GET_SECUREBITS), prctl(PR_GET_KEEPCAPS));
    line("no new privileges %d dumpable %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), prctl(PR_GET_DUMPABLE));
    line("seccomp %d", prctl(PR_GET_SECCOMP));
}

static void place(void) {
    char folder[4096];
    int signal = -1, reaper = -1;
    line("folder %s", getcwd(folder, sizeof folder));
    mode_t mask = umask(0);
    umask(mask);
    line("umask %o", mask);
    line("personality %x", personality(0xffffffff));
    prctl(PR_GET_PDEATHSIG, &signal);
    prctl(PR_GET_CHILD_SUBREAPER, &reaper);
    line("parent's death %d reaper %d huge pages off %d", signal, reaper, prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    line("terminal %d foreground %d", terminal >= 0, terminal >= 0 ? (int)tcgetpgrp(terminal) : 0);
    if (terminal >= 0) close(terminal);
    line("session %d group %d", getsid(0), getpgid(0));
    of_file("out of memory", "/proc/self/oom_score_adj");
    of_file("core filter", "/proc/self/coredump_filter");
    of_file("control group", "/proc/self/cgroup");
    of_file("slack of timers", "/proc/self/timerslack_ns");
    struct itimerval timer;
    getitimer(ITIMER_REAL, &timer);
    line("timer %ld", timer.it_value.tv_sec);
}

static void words(char **arguments) {
    for (int n = 0; arguments[n]; n++) line("argument %d: %s", n, arguments[n]);
    for (int n = 0; environ[n]; n++) line("environment %d: %s", n, environ[n]);
}

/* As the kernel wrote it behind the environment. */
static void vector(void) {
    char **end = environ;
    while (*end) end++;
    for (ElfW(auxv_t) *entry = (void *)(end + 1); entry->a_type != AT_NULL; entry++) {
        const char *said = (const char *)entry->a_un.a_val;
        if (entry->a_type == AT_EXECFN || entry->a_type == AT_PLATFORM)
            line("vector %ld: %lx %s", entry->a_type, entry->a_un.a_val, said);
        else
            line("vector %ld: %lx", entry->a_type, entry->a_un.a_val);
    }
}

static void everything(const char *whom, char **arguments) {
    title = whom;
    signals();
    descriptors();
    limits();
    scheduling();
    credentials();
    place();
    words(arguments);
    vector();
}

static void append(const char *path) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (write(fd, text, used) != (ssize_t)used) _exit(3);
    close(fd);
}

/* Where SIGCHLD is ignored the system waits, and keeps no status. */
static void await(pid_t child) {
    int status;
    pid_t got = waitpid(child, &status, 0);
    if (got == child ? status : errno != ECHILD) exit(4);
}

static void report(char **arguments) {
    char *again[] = {arguments[0], "one", arguments[2], "spawned child", 0};
    everything("program", arguments);
    append(arguments[2]);
    pid_t child = fork();
    if (!child) {
        used = 0;
        everything("forked child", arguments);
        append(arguments[2]);
        _exit(0);
    }
    await(child);
    if (posix_spawn(&child, arguments[0], 0, 0, again, environ)) exit(5);
    await(child);
    child = fork();
    if (!child) {
        again[3] = "executed child";
        execv(arguments[0], again);
        _exit(6);
    }
    await(child);
}

static void must(int held, const char *what) {
    if (!held) {
        fprintf(stderr, "cannot prepare: %s (%s)\n", what, strerror(errno));
        exit(99);
    }
}

static void ignore_and_block(int ignored, int blocked) {
    struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } ignore = {SIG_IGN};
    unsigned long all = ~0ul;
    for (int number = 1; ignored && number <= 64; number++) syscall(SYS_rt_sigaction, number, &ignore, 0, 8);
    if (blocked) must(!syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, 8), "mask");
}

static void settings(void) {
    struct rlimit files = {300, 400}, stack = {4 << 20, 16 << 20}, core = {0, 0};
    cpu_set_t first;
    must(!setrlimit(RLIMIT_NOFILE, &files) && !setrlimit(RLIMIT_STACK, &stack) && !setrlimit(RLIMIT_CORE, &core), "limits");
    must(nice(3) >= 0, "nice");
    must(!prctl(PR_SET_TIMERSLACK, 123456), "slack");
    umask(031);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &some, 0);
    int fd = open("/dev/null", O_RDWR | O_NONBLOCK);
    must(dup2(fd, 7) == 7 && dup2(fd, 42) == 42, "descriptors");
    close(fd);
    must(sched_getaffinity(0, sizeof first, &first) == 0, "processors");
    for (int n = CPU_SETSIZE - 1, left = CPU_COUNT(&first); n >= 0 && left > 1; n--)
        if (CPU_ISSET(n, &first)) CPU_CLR(n, &first), left--;
    must(!sched_setaffinity(0, sizeof first, &first), "processors");
    must(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), "huge pages");
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "privileges");
    fd = open("/proc/self/oom_score_adj", O_WRONLY);
    must(write(fd, "200", 3) == 3, "score");
    close(fd);
    fd = open("/proc/self/coredump_filter", O_WRONLY);
    must(write(fd, "0x3", 3) == 3, "core filter");
    close(fd);
    struct sched_param parameter = {0};
    must(!sched_setscheduler(0, SCHED_BATCH, &parameter), "policy");
    must(!syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6), "i/o priority");
    must(!chdir("/"), "folder");
}

static void prepare(const char *which) {
    must(personality(ADDR_NO_RANDOMIZE) >= 0, "personality");
    if (!strcmp(which, "plain")) return;
    if (!strcmp(which, "ignored")) return ignore_and_block(1, 0);
    if (!strcmp(which, "blocked")) return ignore_and_block(0, 1);
    if (!strcmp(which, "both")) return ignore_and_block(1, 1);
    if (!strcmp(which, "pipe")) return (void)signal(SIGPIPE, SIG_IGN);
    if (!strcmp(which, "closed")) return (void)(close(0), close(1), close(2));
    if (!strcmp(which, "output")) return (void)close(1);
    if (!strcmp(which, "settings")) return settings();
    must(0, which);
}

int main(int count, char **arguments) {
    if (count == 3 && !strcmp(arguments[1], "report")) {
        report(arguments);
        return 0;
    }
    if (count == 4 && !strcmp(arguments[1], "one")) {
        everything(arguments[3], arguments);
        append(arguments[2]);
        return 0;
    }
    if (count > 3 && !strcmp(arguments[1], "prepare")) {
        prepare(arguments[2]);
        execvp(arguments[3], arguments + 3);
        must(0, arguments[3]);
    }
    return 2;
}
