/* Threads, timers, faults, queues, children and deaths at once; every task checks its own answer.
 *
 * Usage: storm THREADS TASKS SEED. Prints one line and ends with 0 when everything was right; says what was wrong and ends with 1 otherwise.
 * The order of tasks depends on the seed alone; when signals come does not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

enum { PAGES = 16, PAGE = 4096, STACK = 64 << 10, QUEUED = 6 };

static const char *self;
static volatile int ticks;
static __thread int number;
static __thread char *barrier, *none, *stack;
static __thread volatile int faults, dirty, outside, first_seen, second_seen, depth;
static __thread volatile sig_atomic_t armed, jumps;
static __thread sigjmp_buf out;
static __thread volatile int queue[QUEUED], queued;

static void wrong(const char *what, ...) {
    char text[300];
    va_list rest;
    va_start(rest, what);
    int len = snprintf(text, sizeof text, "storm: thread %d: ", number);
    len += vsnprintf(text + len, sizeof text - len - 1, what, rest);
    text[len++] = '\n';
    write(2, text, len);
    _exit(1);
}

static void check_stack(void) {
    char here;
    if (stack && (&here < stack || &here >= stack + STACK)) outside = 1;
}

/* A page of the barrier is made writable; a fault elsewhere is left by a jump. */
static void fault(int signal, siginfo_t *info, void *context) {
    int saved = errno;
    check_stack();
    char *at = info->si_addr;
    if (info->si_code <= 0) wrong("signal %d was sent", signal);
    if (at >= barrier && at < barrier + PAGES * PAGE) {
        faults++;
        dirty |= 1 << (at - barrier) / PAGE;
        if (mprotect(barrier + (at - barrier) / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE)) wrong("mprotect");
    } else if (at >= none && at < none + PAGE) {
        siglongjmp(out, 1 + (at - none));
    } else {
        wrong("a fault at %p, instruction %p", at, (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
    }
    errno = saved;
}

static void tick(int signal) {
    int saved = errno;
    check_stack();
    __sync_fetch_and_add(&ticks, 1);
    errno = saved;
}

/* The thread's own timer: leaves by a jump where one is expected. */
static void own_tick(int signal) {
    check_stack();
    if (armed) {
        armed = 0;
        siglongjmp(out, 77);
    }
}

static void first(int signal) {
    depth++;
    first_seen++;
    if (depth != 1) wrong("depth %d", depth);
    raise(SIGUSR2);
    if (second_seen != first_seen) wrong("a nested signal was late");
    depth--;
}

static void second(int signal) {
    second_seen++;
}

static void collect(int signal, siginfo_t *info, void *context) {
    if (queued < QUEUED) queue[queued] = info->si_value.sival_int;
    queued++;
}

static void handle(int signal, void (*handler)(int), void (*informed)(int, siginfo_t *, void *), int flags) {
    struct sigaction act = {0};
    if (handler) act.sa_handler = handler;
    else act.sa_sigaction = informed, flags |= SA_SIGINFO;
    act.sa_flags = flags;
    if (sigaction(signal, &act, 0)) wrong("sigaction %d", signal);
}

static void mask(int how, int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(how, &set, 0);
}

static int tid(void) { return syscall(SYS_gettid); }

static unsigned random_of(unsigned *state) {
    *state = *state * 1103515245 + 12345;
    return *state >> 16;
}

/* A write barrier: each page faults once, and holds what was written. */
static void write_barrier(unsigned n) {
    if (mprotect(barrier, PAGES * PAGE, PROT_READ)) wrong("mprotect");
    faults = dirty = 0;
    int touched = 0;
    for (unsigned k = 0; k < 3 * PAGES; k++) {
        unsigned page = (n * 7 + k * k) % PAGES;
        touched |= 1 << page;
        ((volatile int *)(barrier + page * PAGE))[k] = n + k;
    }
    if (dirty != touched || faults != __builtin_popcount(touched)) wrong("%d faults, %x of %x", faults, dirty, touched);
    for (unsigned k = 0; k < 3 * PAGES; k++) {
        unsigned page = (n * 7 + k * k) % PAGES;
        if (((volatile int *)(barrier + page * PAGE))[k] != (int)(n + k)) wrong("page %u lost a write", page);
    }
}

static void jump_out_of_a_fault(unsigned n) {
    volatile unsigned count = 0;
    for (volatile unsigned k = 0; k < 4; k++) {
        int got = sigsetjmp(out, 1);
        if (!got) {
            *(volatile char *)(none + n % 100 + k) = 1;
            wrong("no fault");
        }
        if (got != (int)(1 + n % 100 + k)) wrong("jumped with %d", got);
        count += 1;
    }
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, 0, &now);
    if (count != 4 || sigismember(&now, SIGSEGV)) wrong("%u jumps", count);
}

static void jump_out_of_a_tick(unsigned n) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1};
    event._sigev_un._tid = tid();
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) wrong("timer_create");
    struct itimerspec often = {{0, 900000}, {0, 300000}};
    volatile double x = 1;
    volatile int left = 0;
    timer_settime(timer, 0, &often, 0);
    for (volatile int k = 0; k < 3; k++) {
        int got = sigsetjmp(out, 1);
        if (!got) {
            armed = 1;
            for (;;) x = x * 1.0000001 + 1e-9;
        }
        if (got != 77 || armed) wrong("left with %d", got);
        left++;
    }
    timer_delete(timer);
    if (left != 3 || !(x > 1)) wrong("left %d", left);
}

static void queue_and_release(unsigned n) {
    queued = 0;
    mask(SIG_BLOCK, SIGRTMIN);
    for (int k = 0; k < QUEUED; k++) {
        union sigval value = {.sival_int = n * 10 + k};
        if (pthread_sigqueue(pthread_self(), SIGRTMIN, value)) wrong("pthread_sigqueue");
    }
    if (queued) wrong("a blocked signal came");
    mask(SIG_UNBLOCK, SIGRTMIN);
    if (queued != QUEUED) wrong("%d of %d queued signals", queued, QUEUED);
    for (int k = 0; k < QUEUED; k++)
        if (queue[k] != (int)(n * 10 + k)) wrong("queued %d came as %d", k, queue[k]);
    /* One that is waited for. */
    mask(SIG_BLOCK, SIGRTMIN);
    union sigval value = {.sival_int = n};
    pthread_sigqueue(pthread_self(), SIGRTMIN, value);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    siginfo_t info;
    int got;
    while ((got = sigwaitinfo(&set, &info)) < 0 && errno == EINTR);
    if (got != SIGRTMIN || info.si_value.sival_int != (int)n || queued != QUEUED) wrong("sigwaitinfo %d", got);
    mask(SIG_UNBLOCK, SIGRTMIN);
}

static void nested(unsigned n) {
    int before = first_seen;
    raise(SIGUSR1);
    mask(SIG_BLOCK, SIGUSR1);
    for (int k = 0; k < 3; k++) raise(SIGUSR1);
    mask(SIG_BLOCK, SIGUSR2);
    mask(SIG_UNBLOCK, SIGUSR2);
    mask(SIG_UNBLOCK, SIGUSR1);
    if (first_seen != before + 2 || second_seen != first_seen) wrong("%d and %d", first_seen - before, second_seen);
}

static int wait_for(pid_t pid) {
    int status, got;
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR);
    if (got != pid) wrong("waitpid %d", errno);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void fork_a_child(unsigned n) {
    pid_t pid = fork();
    if (pid < 0) wrong("fork");
    if (!pid) {
        write_barrier(n);
        raise(SIGUSR1);
        volatile unsigned sum = 0;
        for (unsigned k = 0; k < 1000; k++) sum += k;
        if (n % 8 == 0) kill(getpid(), SIGKILL);
        _exit(sum == 499500 ? n % 50 : 99);
    }
    int got = wait_for(pid);
    if (got != (n % 8 == 0 ? 1000 + SIGKILL : (int)n % 50)) wrong("a forked child ended with %d", got);
}

static void execute_a_child(unsigned n) {
    char text[20];
    snprintf(text, sizeof text, "%u", n % 60);
    char *words[] = {(char *)self, text, 0};
    pid_t pid;
    if (n & 1) {
        pid = vfork();
        if (!pid) {
            execv(self, words);
            _exit(98);
        }
    } else if (posix_spawn(&pid, self, 0, 0, words, environ)) {
        wrong("posix_spawn");
    }
    int got = wait_for(pid);
    if (got != (int)n % 60) wrong("an executed child ended with %d, not %d", got, n % 60);
}

static volatile int dying_tid[64];

static void *die(void *what) {
    number = -1;
    int slot = (int)(long)what & 63;
    mask(SIG_UNBLOCK, SIGRTMIN + 2);
    __atomic_store_n(&dying_tid[slot], tid(), __ATOMIC_SEQ_CST);
    volatile int sum = 0;
    for (int k = 0; k < 300; k++) sum += k;
    return (void *)((long)what * 3 + (sum == 44850));
}

/* Signals to a thread until it is no more. */
static void shoot_at_the_dying(unsigned n) {
    int slot = number & 63;
    dying_tid[slot] = 0;
    pthread_t thread;
    long what = (long)(n << 6 | slot);
    if (pthread_create(&thread, 0, die, (void *)what)) wrong("pthread_create");
    int target;
    while (!(target = __atomic_load_n(&dying_tid[slot], __ATOMIC_SEQ_CST))) sched_yield();
    for (int k = 0; k < 200; k++)
        if (syscall(SYS_tgkill, getpid(), target, k & 1 ? SIGRTMIN + 2 : SIGURG)) break;
    void *result;
    if (pthread_join(thread, &result)) wrong("pthread_join");
    if ((long)result != what * 3 + 1) wrong("a thread returned %ld", (long)result);
}

struct inheritance {
    pthread_mutex_t mutex;
    volatile int held;
};

static void *abandon(void *what) {
    struct inheritance *left = what;
    number = -2;
    if (pthread_mutex_lock(&left->mutex)) wrong("the first lock");
    __atomic_store_n(&left->held, 1, __ATOMIC_SEQ_CST);
    usleep(500);
    return 0;
}

/* A robust mutex whose owner dies: we wait in the kernel, or come later. */
static void inherit_a_mutex(unsigned n) {
    struct inheritance left = {.held = 0};
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&left.mutex, &attributes);
    pthread_t thread;
    if (pthread_create(&thread, 0, abandon, &left)) wrong("pthread_create");
    while (!__atomic_load_n(&left.held, __ATOMIC_SEQ_CST)) sched_yield();
    if (n & 1) pthread_join(thread, 0);
    int got = pthread_mutex_lock(&left.mutex);
    if (got != EOWNERDEAD) wrong("a robust mutex said %d", got);
    pthread_mutex_consistent(&left.mutex);
    pthread_mutex_unlock(&left.mutex);
    if (pthread_mutex_lock(&left.mutex)) wrong("the mutex is not consistent");
    pthread_mutex_unlock(&left.mutex);
    if (!(n & 1)) pthread_join(thread, 0);
    pthread_mutex_destroy(&left.mutex);
}

static void read_slowly(unsigned n) {
    int ends[2];
    if (pipe(ends)) wrong("pipe");
    pid_t pid = fork();
    if (!pid) {
        close(ends[0]);
        for (int k = 0; k < 4; k++) {
            struct timespec pause = {0, 1500000};
            while (nanosleep(&pause, &pause));
            unsigned value = n + k;
            if (write(ends[1], &value, sizeof value) != sizeof value) _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    for (int k = 0; k < 4; k++) {
        unsigned value;
        struct pollfd wanted = {.fd = ends[0], .events = POLLIN};
        if (k & 1)
            while (poll(&wanted, 1, -1) < 0)
                if (errno != EINTR) wrong("poll");
        /* SA_RESTART: no EINTR. */
        ssize_t got = read(ends[0], &value, sizeof value);
        if (got != sizeof value || value != n + k) wrong("read %zd (%d): %u", got, errno, value);
    }
    close(ends[0]);
    if (wait_for(pid)) wrong("the writer failed");
}

static __thread ucontext_t caller, callee;
static __thread int turns;

static void coroutine(void) {
    for (int k = 0; k < 5; k++) {
        turns += k;
        swapcontext(&callee, &caller);
    }
}

static void take_turns(unsigned n) {
    char *room = malloc(STACK);
    turns = 0;
    getcontext(&callee);
    callee.uc_stack.ss_sp = room;
    callee.uc_stack.ss_size = STACK;
    callee.uc_link = &caller;
    makecontext(&callee, coroutine, 0);
    for (int k = 0; k < 6; k++) swapcontext(&caller, &callee);
    if (turns != 10) wrong("%d turns", turns);
    free(room);
}

static void compute(unsigned n) {
    volatile unsigned long a = n, b = 1;
    double x = 0;
    char text[64];
    unsigned sum = 0;
    for (unsigned k = 0; k < 4000; k++) {
        a = a * 6364136223846793005ul + 1442695040888963407ul;
        b ^= a >> 7;
        x += (double)(k & 7) * 0.5;
        memset(text, k, sizeof text);
        sum += text[k & 63];
    }
    unsigned long c = n, d = 1;
    for (unsigned k = 0; k < 4000; k++) {
        c = c * 6364136223846793005ul + 1442695040888963407ul;
        d ^= c >> 7;
    }
    if (a != c || b != d || x != 7000 || sum != 2608) wrong("%lx %lx %f %d", a ^ c, b ^ d, x, (int)sum);
}

static void (*const tasks[])(unsigned) = {
    write_barrier, jump_out_of_a_fault, jump_out_of_a_tick, queue_and_release, nested,     fork_a_child, execute_a_child,
    shoot_at_the_dying, inherit_a_mutex, read_slowly, take_turns, compute, write_barrier, compute,
};
enum { TASKS = sizeof tasks / sizeof *tasks };

static int tasks_each;
static unsigned seed;

static void prepare(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    barrier = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    none = mmap(0, PAGE, PROT_NONE, flags, -1, 0);
    char *room = mmap(0, STACK, PROT_READ | PROT_WRITE, flags, -1, 0);
    stack_t alternate = {.ss_sp = room, .ss_size = STACK};
    if (barrier == MAP_FAILED || none == MAP_FAILED || room == MAP_FAILED || sigaltstack(&alternate, 0)) wrong("no memory");
    stack = room;
}

static void *work(void *which) {
    number = (int)(long)which;
    prepare();
    unsigned state = seed * 977 + number * 31 + 1;
    for (int k = 0; k < tasks_each; k++) {
        unsigned n = random_of(&state);
        /* Every task comes once, in an order of the thread's own; then at random. */
        unsigned task = k < TASKS ? (k + number) % TASKS : random_of(&state) % TASKS;
        tasks[task](n);
        if (outside) wrong("a handler ran on the wrong stack");
    }
    return (void *)(long)number;
}

int main(int count, char **words) {
    if (count == 2) return atoi(words[1]);
    if (count != 4) return 2;
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len < 0) wrong("/proc/self/exe");
    path[len] = 0;
    self = path;
    int threads = atoi(words[1]);
    tasks_each = atoi(words[2]);
    seed = atoi(words[3]);
    handle(SIGSEGV, 0, fault, SA_ONSTACK);
    handle(SIGALRM, tick, 0, SA_ONSTACK | SA_RESTART);
    handle(SIGPROF, tick, 0, SA_ONSTACK | SA_RESTART);
    handle(SIGRTMIN + 1, own_tick, 0, SA_ONSTACK | SA_RESTART);
    handle(SIGRTMIN + 2, second, 0, SA_RESTART);
    handle(SIGUSR1, first, 0, SA_RESTART);
    handle(SIGUSR2, second, 0, SA_RESTART);
    handle(SIGRTMIN, 0, collect, SA_RESTART);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, 0);
    setitimer(ITIMER_PROF, &often, 0);
    pthread_t all[64];
    for (long k = 0; k < threads; k++)
        if (pthread_create(all + k, 0, work, (void *)k)) wrong("pthread_create");
    for (long k = 0; k < threads; k++) {
        void *result;
        if (pthread_join(all[k], &result) || (long)result != k) wrong("thread %ld", k);
    }
    struct itimerval never = {0};
    setitimer(ITIMER_REAL, &never, 0);
    setitimer(ITIMER_PROF, &never, 0);
    if (!ticks) wrong("no tick");
    printf("storm: %d threads, %d tasks each: right\n", threads, tasks_each);
    return 0;
}
