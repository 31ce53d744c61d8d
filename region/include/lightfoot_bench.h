/* Benchmarks for C and C++, which `lightfoot bench --program FILE` counts.
 *
 *     static void *numbers(void) { ... }          makes the input, which is not counted
 *     static void sort(void *input) { ... }       is counted
 *
 *     int main(int argc, char **argv) {
 *         static const struct lightfoot_benchmark all[] = {
 *             LIGHTFOOT_BENCHMARK(sort, numbers),
 *         };
 *         return lightfoot_bench_main(argc, argv, all, sizeof all / sizeof *all);
 *     }
 *
 * Natively the program calls each benchmark once. Under `lightfoot bench` each benchmark has a
 * process of its own, a copy of this one; it is called once to warm up, and once more between two
 * marks. Requests go by Valgrind's sequence for amd64, which does nothing natively. Linux on x86-64
 * with GCC or Clang; elsewhere benchmarks run once and nothing counts them. The crate
 * lightfoot-bench has the same protocol.
 */
#ifndef LIGHTFOOT_BENCH_H
#define LIGHTFOOT_BENCH_H

#include "lightfoot_region.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* A benchmark. */
struct lightfoot_benchmark {
    const char *name;
    void (*run)(void *input);
    void *(*set_up)(void); /* makes the input; NULL for none */
    const char *file;
    unsigned line;
};

#define LIGHTFOOT_BENCHMARK(function, set_up) {#function, function, set_up, __FILE__, __LINE__}

/* Tells the compiler that the value is used, so that it computes it. */
#define lightfoot_keep(value) __asm__ volatile("" : : "g"(value) : "memory")

/* The requests: is this counted, this process is about a benchmark, its next region counts. */
enum { LIGHTFOOT_RUNS = 0x4c460000, LIGHTFOOT_NAMES = 0x4c460001, LIGHTFOOT_STARTS = 0x4c460002 };

/* What the command line says. */
struct lightfoot_choice {
    char **filters;
    int filter_count, exact, list, cold, here;
    unsigned long rest, divisor;
};

static inline uint64_t lightfoot_ask(uint64_t code, uint64_t name, uint64_t file, uint64_t line) {
    uint64_t answer = 0;
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
    volatile uint64_t words[6] = {code, name, file, line, 0, 0};
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(words)
                     : "cc", "memory");
#else
    (void)code, (void)name, (void)file, (void)line;
#endif
    return answer;
}

__attribute__((noinline)) static void lightfoot_marked(void (*run)(void *), void *input) {
    region_begin("benchmark");
    run(input);
    region_end("benchmark");
}

/* Calls a benchmark: once natively, and as it is counted. */
static void lightfoot_call(const struct lightfoot_benchmark *one, const struct lightfoot_choice *choice,
                           int counts) {
    if (!counts || !choice->cold) {
        void *input = one->set_up ? one->set_up() : NULL;
        if (counts && !choice->here)
            lightfoot_marked(one->run, input);
        else
            one->run(input);
    }
    if (counts) {
        void *input = one->set_up ? one->set_up() : NULL;
        lightfoot_ask(LIGHTFOOT_STARTS, 0, 0, 0);
        lightfoot_marked(one->run, input);
    }
}

/* Counts a benchmark in a copy of this process; returns whether that ended well. */
static int lightfoot_count(const struct lightfoot_benchmark *one, const struct lightfoot_choice *choice) {
    int status = 0;
    pid_t copy;
    fflush(stdout);
    copy = fork();
    if (copy == 0) {
        lightfoot_ask(LIGHTFOOT_NAMES, (uint64_t)(uintptr_t)one->name, (uint64_t)(uintptr_t)one->file,
                      one->line);
        lightfoot_call(one, choice, 1);
        fflush(stdout);
        _exit(0);
    }
    return copy > 0 && waitpid(copy, &status, 0) == copy && status == 0;
}

static int lightfoot_means(const struct lightfoot_choice *choice, const char *name) {
    int index;
    for (index = 0; index < choice->filter_count; index++) {
        const char *filter = choice->filters[index];
        if (choice->exact ? strcmp(name, filter) == 0 : strstr(name, filter) != NULL)
            return 1;
    }
    return choice->filter_count == 0;
}

/* Reads the command line; returns the word that it does not know, or NULL. */
static const char *lightfoot_read(int argc, char **argv, struct lightfoot_choice *choice) {
    int index;
    choice->filters = argv;
    for (index = 1; index < argc; index++) {
        const char *word = argv[index];
        if (strcmp(word, "--list") == 0)
            choice->list = 1;
        else if (strcmp(word, "--exact") == 0)
            choice->exact = 1;
        else if (strcmp(word, "--cold") == 0)
            choice->cold = 1;
        else if (strcmp(word, "--here") == 0)
            choice->here = 1;
        else if (sscanf(word, "--part=%lu/%lu", &choice->rest, &choice->divisor) == 2 && choice->divisor > 0)
            continue;
        else if (word[0] == '-')
            return word;
        else
            choice->filters[choice->filter_count++] = argv[index];
    }
    return NULL;
}

/* Runs the benchmarks that the command line names; returns the status of the program. */
static int lightfoot_run(const struct lightfoot_choice *choice, const struct lightfoot_benchmark *all,
                         size_t count) {
    unsigned long meant = 0;
    size_t index, failed = 0;
    int counts = lightfoot_ask(LIGHTFOOT_RUNS, 0, 0, 0) == 1;
    for (index = 0; index < count; index++) {
        const struct lightfoot_benchmark *one = &all[index];
        if (!lightfoot_means(choice, one->name) || meant++ % choice->divisor != choice->rest)
            continue;
        if (choice->list) {
            printf("%s: benchmark\n", one->name);
        } else if (counts) {
            failed += !lightfoot_count(one, choice);
        } else {
            lightfoot_call(one, choice, choice->here);
            printf("%s ... ok\n", one->name);
        }
    }
    return failed ? 101 : 0;
}

/* By these bytes `lightfoot bench` knows a program of benchmarks. */
static const char *volatile lightfoot_protocol = "lightfoot-bench protocol: 1";

/* The body of `main`. */
static int lightfoot_bench_main(int argc, char **argv, const struct lightfoot_benchmark *all, size_t count) {
    struct lightfoot_choice choice = {NULL, 0, 0, 0, 0, 0, 0, 1};
    const char *unknown = lightfoot_read(argc, argv, &choice);
    /* Environment and arguments move the stack. Benchmarks begin below a multiple of 64 KiB. */
    volatile char *room = (volatile char *)__builtin_alloca(1 + ((uintptr_t)__builtin_frame_address(0) & 0xffff));
    room[0] = *lightfoot_protocol;
    if (unknown != NULL) {
        fprintf(stderr, "there is no option %s: name benchmarks, or give --list or --exact\n", unknown);
        return 2;
    }
    return lightfoot_run(&choice, all, count);
}

#endif
