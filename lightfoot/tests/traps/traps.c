/* SIGTRAP in all the ways in which a program can own it. One argument names the way; what is printed, and how the program
 * ends, must not depend on who runs it. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100

static volatile int count;
static volatile int wanted;
static volatile unsigned long codes;

static void say(const char *text) {
    write(1, text, strlen(text));
}

static void counts(int signal, siginfo_t *info, void *context) {
    count++;
    codes = codes * 1000 + info->si_code;
}

static void install(void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(SIGTRAP, &action, 0);
}

/* What the system says it does with the signal. */
static void ask(void) {
    struct sigaction action;
    sigset_t mask, pending;
    sigaction(SIGTRAP, 0, &action);
    sigprocmask(SIG_BLOCK, 0, &mask);
    sigpending(&pending);
    printf("%s blocked %d pending %d\n",
           action.sa_handler == SIG_DFL ? "default" : action.sa_handler == SIG_IGN ? "ignored" : "handler",
           sigismember(&mask, SIGTRAP), sigismember(&pending, SIGTRAP));
}

static void breakpoints(int times) {
    for (int n = 0; n < times; n++) __asm__ volatile("int3");
    printf("%d breakpoints, %lu\n", count, codes);
}

static void block_all(int how) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(how, &all, 0);
}

static int compare(const void *a, const void *b) {
    return *(const char *)a - *(const char *)b;
}

/* Much code that was not translated before, so that the engine must stop. */
static void work(void) {
    char text[256];
    for (int n = 0; n < 50; n++) snprintf(text, sizeof text, "%d %g %s", n, n / 3.0, strerror(n));
    free(malloc(100000));
    qsort(text, 200, 1, compare);
}

static void works(int signal, siginfo_t *info, void *context) {
    char text[] = "some letters to sort";
    qsort(text, sizeof text - 1, 1, compare);
    count++;
}

/* A step is behind each instruction; the last one clears the flag. */
static void steps(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    count++;
    codes += info->si_code;
    if (count == wanted) registers[REG_EFL] &= ~TRAP_FLAG;
}

#define STEP "pushfq\n orq $0x100, (%%rsp)\n popfq\n"

static long stepped(void) {
    long sum = 0;
    __asm__ volatile(
        "sub $128, %%rsp\n" STEP
        "nop\n mov $5, %%ecx\n"
        "1: add %%rcx, %0\n dec %%ecx\n jnz 1b\n"
        "jmp 2f\n ud2\n"
        "2: push %%rax\n pop %%rdx\n call 3f\n jmp 4f\n"
        "3: lea 1(%0), %0\n ret\n"
        "4: lea 2(%0), %0\n"
        "pushfq\n andq $~0x100, (%%rsp)\n popfq\n"
        "nop\n nop\n add $128, %%rsp\n"
        : "+r"(sum) : : "rcx", "rdx", "cc", "memory");
    return sum;
}

static void step_by_flag(int most) {
    wanted = most;
    long sum = stepped();
    printf("%d steps, codes %lu, sum %ld\n", count, codes, sum);
}

static void *other(void *nothing) {
    for (int n = 0; n < 100; n++) {
        __asm__ volatile("int3");
        work();
    }
    return 0;
}

static void threads(void) {
    pthread_t all[4];
    install(works, 0);
    for (int n = 0; n < 4; n++) pthread_create(&all[n], 0, other, 0);
    for (int n = 0; n < 4; n++) pthread_join(all[n], 0);
    puts("threads");
}

static void children(void) {
    install(counts, 0);
    __asm__ volatile("int3");
    pid_t child = fork();
    if (!child) {
        ask();
        __asm__ volatile("int3");
        breakpoints(2);
        fflush(stdout);
        _exit(count);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %x\n", status);
    breakpoints(1);
}

static void ignored_child(char **arguments) {
    signal(SIGTRAP, SIG_IGN);
    work();
    ask();
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        execl(arguments[0], arguments[0], "ask", (char *)0);
        _exit(1);
    }
    waitpid(child, 0, 0);
    ask();
    raise(SIGTRAP);
    puts("still here");
}

static void blocked(int before) {
    if (before) block_all(SIG_BLOCK);
    work();
    install(counts, 0);
    if (!before) block_all(SIG_BLOCK);
    ask();
    raise(SIGTRAP);
    work();
    ask();
    kill(getpid(), SIGTRAP);
    work();
    ask();
    printf("%d so far\n", count);
    block_all(SIG_UNBLOCK);
    printf("%d behind\n", count);
    ask();
    breakpoints(2);
}

static void nested(int signal) {
    work();
    raise(SIGTRAP);
    count += 100;
}

int main(int arguments_count, char **arguments) {
    const char *way = arguments_count > 1 ? arguments[1] : "";
    setvbuf(stdout, 0, _IOLBF, 0);
    if (!strcmp(way, "twice")) install(counts, 0), breakpoints(2), breakpoints(40), ask();
    else if (!strcmp(way, "once")) install(counts, SA_RESETHAND), breakpoints(1), ask(), breakpoints(1);
    else if (!strcmp(way, "deferred")) install(counts, SA_NODEFER), breakpoints(3), ask();
    else if (!strcmp(way, "works")) install(works, 0), breakpoints(5), ask();
    else if (!strcmp(way, "raise")) install(counts, 0), raise(SIGTRAP), work(), raise(SIGTRAP), breakpoints(1), ask();
    else if (!strcmp(way, "blocked-first")) blocked(1);
    else if (!strcmp(way, "blocked-then")) blocked(0);
    else if (!strcmp(way, "blocked-int3")) install(counts, 0), block_all(SIG_BLOCK), work(), puts("now"), breakpoints(1);
    else if (!strcmp(way, "ignored-int3")) signal(SIGTRAP, SIG_IGN), work(), puts("now"), breakpoints(1);
    else if (!strcmp(way, "default")) puts("now"), breakpoints(1);
    else if (!strcmp(way, "waits")) {
        sigset_t set;
        int got;
        block_all(SIG_BLOCK);
        work();
        raise(SIGTRAP);
        work();
        sigemptyset(&set);
        sigaddset(&set, SIGTRAP);
        printf("%d", sigwait(&set, &got));
        printf(" %d\n", got);
        ask();
    } else if (!strcmp(way, "nested")) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = nested;
        sigfillset(&action.sa_mask);
        sigaction(SIGUSR1, &action, 0);
        install(counts, 0);
        raise(SIGUSR1);
        printf("%d\n", count);
        ask();
        breakpoints(1);
    } else if (!strcmp(way, "steps")) install(steps, 0), step_by_flag(1000);
    else if (!strcmp(way, "few-steps")) install(steps, 0), step_by_flag(7), breakpoints(1);
    else if (!strcmp(way, "threads")) threads();
    else if (!strcmp(way, "children")) children();
    else if (!strcmp(way, "ignored-child")) ignored_child(arguments);
    else if (!strcmp(way, "ask")) ask();
    else return 2;
    return 7;
}
