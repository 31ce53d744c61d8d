/* A program that scribbles over whatever lightfoot keeps in its address space: contents of writable mappings, rings, contexts, counters,
   forged exits and records, protections, holes, mappings themselves; at random moments, from two threads, in a child too. What it does follows
   from its seed. By itself it does nothing of that and ends with 0. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of a thread's context, as `instrument/src/layout.rs` has them; where these are others, the writes are random ones. */
#define EXIT 0x80
#define RING_POSITION 0xc0
#define RING_LIMIT 0xc8
#define RING 0x10000
#define COUNTERS (RING + 0x400000 + 8 * 0x4000 + 24ull * 0x200000)

#define MAPPINGS_MAX 64

struct mapping { uint64_t start, end; int writable, executable; };
static struct mapping mappings[MAPPINGS_MAX];
static int mapping_count;

static void find_mappings(void) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    mapping_count = 0;
    while (maps && fgets(line, sizeof line, maps) && mapping_count < MAPPINGS_MAX) {
        struct mapping m;
        char r, w, x;
        if (!strstr(line, "memfd:lightfoot")
            || sscanf(line, "%lx-%lx %c%c%c", &m.start, &m.end, &r, &w, &x) != 5)
            continue;
        m.writable = w == 'w';
        m.executable = x == 'x';
        mappings[mapping_count++] = m;
    }
    if (maps) fclose(maps);
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t below(uint64_t *state, uint64_t end) { return next(state) % end; }

static volatile uint64_t sink;
static char one[1 << 16], two[1 << 16];

static uint64_t work_a(uint64_t n) { return n * 3 + 1; }
static uint64_t work_b(uint64_t n) { return n ^ (n >> 3); }
static uint64_t (*volatile works[2])(uint64_t) = {work_a, work_b};

/* Loads, stores, branches, indirect calls and string instructions. */
static void work(uint64_t *state) {
    uint64_t n = below(state, 20000), sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        one[(i * 67) & 0xffff] += (char)i;
        sum += works[i & 1](i);
        if (i % 5 == 0) sum ^= (uint64_t)two[(i * 641) & 0xffff];
    }
    void *to = two, *from = one;
    size_t bytes = 1 + below(state, 4096);
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    sink += sum;
}

static uint64_t value(uint64_t *state, uint64_t was) {
    switch (below(state, 9)) {
    case 0: return 0;
    case 1: return ~0ull;
    case 2: return below(state, 256);
    case 3: return was ^ 1ull << below(state, 64);
    case 4: return was + 16 * below(state, 5000);
    case 5: return was - below(state, 100000);
    case 6: return next(state) & 0xffffffff;
    case 7: return 1ull << below(state, 64);
    default: return next(state);
    }
}

static uint64_t own_context(void) {
    uint64_t base = 0;
    syscall(SYS_arch_prctl, 0x1004 /* ARCH_GET_GS */, &base);
    return base;
}

static void put(uint64_t *state, uint64_t at) {
    volatile uint64_t *word = (volatile uint64_t *)at;
    *word = value(state, *word);
}

/* Records as generated code writes them, or nearly. */
static void forge_records(uint64_t *state, uint64_t context) {
    static const uint32_t codes[] = {0x00, 0x10, 0x24, 0x30, 0x40, 0x50, 0x60, 0x60, 0x60, 0x70, 0x80, 0x90, 0xf7};
    volatile uint64_t *position = (volatile uint64_t *)(context + RING_POSITION);
    /* These stores may be recorded themselves: some way ahead of them. */
    uint64_t at = *position + (below(state, 4) ? 0x8000 : 0), count = 1 + below(state, 200);
    if (at < RING || at > RING + 0x3f0000) return;
    for (uint64_t i = 0; i < count; i++, at += 16) {
        uint32_t site = below(state, 4) ? (uint32_t)below(state, 200) : (uint32_t)next(state) & 0xffffff;
        uint32_t code = codes[below(state, sizeof codes / sizeof *codes)];
        uint64_t *address = (uint64_t *)(context + at);
        uint32_t *what = (uint32_t *)(context + at + 8), *extra = (uint32_t *)(context + at + 12);
        *address = value(state, 0x555555554000);
        *what = site << 8 | code;
        *extra = below(state, 2) ? 0 : (uint32_t)next(state);
        if (code == 0x60 && below(state, 2)) {
            /* A whole string instruction: kind 0, three values, of a random operation and size; the destination moved far. */
            *extra = 2 << 8 | ((uint32_t)below(state, 5) | (uint32_t)below(state, 4) << 3 | (uint32_t)below(state, 2) << 5) << 16;
            for (uint32_t k = 1; k <= 2; k++) {
                at += 16;
                *(uint64_t *)(context + at) = value(state, 0x7ffff0000000);
                *(uint32_t *)(context + at + 8) = site << 8 | 0x70;
                *(uint32_t *)(context + at + 12) = k;
            }
        }
    }
    *position = at;
}

static void scribble(uint64_t *state) {
    uint64_t context = own_context();
    struct mapping *m = mapping_count ? &mappings[below(state, mapping_count)] : 0;
    if (!m) return;
    uint64_t page = m->start + below(state, (m->end - m->start) / 4096) * 4096;
    /* What is in use lies at the beginnings. */
    if (below(state, 2)) page = m->start + below(state, 64) * 4096;
    if (page >= m->end) page = m->start;
    switch (below(state, 16)) {
    case 0: case 1:
        if (m->writable && !m->executable) put(state, page + 8 * below(state, 512));
        break;
    case 2: case 3:
        if (context) put(state, context + 8 * below(state, 128));
        break;
    case 4:
        if (context) put(state, context + RING_POSITION);
        break;
    case 5:
        if (context) put(state, context + RING_LIMIT);
        break;
    case 6: case 7:
        if (context) put(state, context + COUNTERS + 8 * below(state, 4000));
        break;
    case 8:
        if (context) memset((void *)(context + COUNTERS + 8 * below(state, 2000)), (int)next(state), 8 * below(state, 2000));
        break;
    case 9:
        if (context) {
            *(volatile uint32_t *)(context + EXIT) = (uint32_t)value(state, 1);
            __asm__ volatile("int3" : : : "memory");
        }
        break;
    case 10: case 11:
        if (context) forge_records(state, context);
        break;
    case 12:
        mprotect((void *)page, 4096 << below(state, 8), (int)below(state, 4));
        break;
    case 13:
        munmap((void *)page, 4096 << below(state, 12));
        break;
    case 14:
        madvise((void *)page, 4096 << below(state, 10), below(state, 2) ? MADV_REMOVE : MADV_DONTNEED);
        break;
    default:
        if (m->writable && !m->executable)
            mmap((void *)page, 4096 << below(state, 6), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
}

static void *act(void *seed) {
    uint64_t state = (uint64_t)seed;
    /* Often one only: what is found at once hides what would have come of it. */
    uint64_t rounds = 1 + below(&state, 4) * below(&state, 5);
    for (uint64_t i = 0; i < rounds; i++) {
        work(&state);
        scribble(&state);
    }
    work(&state);
    return 0;
}

int main(int count, char **arguments) {
    uint64_t state = 0x9e3779b97f4a7c15ull * (1 + (count > 1 ? strtoull(arguments[1], 0, 10) : 0));
    /* Its own memory may be damaged by what it does: it must not run for ever, and a `kill` that it never meant reaches itself alone. */
    setpgid(0, 0);
    struct itimerval end = {{0, 0}, {1, 0}};
    setitimer(ITIMER_REAL, &end, 0);
    struct rlimit cpu = {3, 3}, core = {0, 0};
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &core);
    for (int i = 0; i < 4; i++) next(&state);
    work(&state);
    find_mappings();
    uint64_t shape = below(&state, 4);
    pthread_t other;
    int threads = shape == 1 && pthread_create(&other, 0, act, (void *)next(&state)) == 0;
    pid_t child = shape == 2 ? fork() : -1;
    if (child == 0) {
        setitimer(ITIMER_REAL, &end, 0);
        next(&state);
    }
    act((void *)next(&state));
    if (child == 0) _exit(0);
    if (threads) pthread_join(other, 0);
    if (child > 0) waitpid(child, 0, 0);
    return 0;
}
