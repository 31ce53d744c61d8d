/* Writes one false number into memory that lightfoot keeps in this program, as the argument says, after some work; then goes on, and ends with 0. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of a thread's context, as `instrument/src/layout.rs` has them. */
#define EXIT 0x80
#define RING_POSITION 0xc0
#define RESIDENT_LEAST 0xe4c0
#define RING 0x10000
#define STUBS (RING + 0x400000 + 8 * 0x4000 + 24ull * 0x200000)
#define COUNTERS (STUBS + 8 * 0x1000)

static char buffer[8 << 20];
static volatile uint64_t sink;

static void work(int rounds) {
    for (int round = 0; round < rounds; round++)
        for (uint64_t i = 0; i < sizeof buffer; i += 64)
            buffer[(i * 4099) % sizeof buffer] += (char)(i + sink);
}

struct record { uint64_t address; uint32_t what, extra; };

/* Some way ahead of the ring's position, because these stores may be recorded themselves. What lies between are records of earlier rounds, or zeros. */
static void append(volatile char *context, const struct record *records, int count) {
    volatile uint64_t *position = (volatile uint64_t *)(context + RING_POSITION);
    uint64_t at = *position + 16 * 64;
    volatile struct record *to = (volatile struct record *)(context + at);
    for (int n = 0; n < count; n++) {
        to[n].address = records[n].address;
        to[n].what = records[n].what;
        to[n].extra = records[n].extra;
    }
    *position = at + 16 * (uint64_t)count;
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    volatile char *context = 0;
    work(1);
    syscall(SYS_arch_prctl, 0x1004 /* ARCH_GET_GS */, &context);
    if (!context) return 0;
    if (!strcmp(what, "string")) {
        /* `rep stosb` over 2^63 bytes. */
        struct record string[] = {{0, 0x60, 2 << 8 | 1 << 16}, {0x1000, 0x70, 1}, {0x1000 + (1ull << 63) - 1, 0x70, 2}};
        append(context, string, 3);
    } else if (!strcmp(what, "site")) {
        append(context, &(struct record){0x1000, 0xfffff0u << 8 | 3, 0}, 1);
    } else if (!strcmp(what, "kind")) {
        append(context, &(struct record){0x1000, 0xf3, 0}, 1);
    } else if (!strcmp(what, "position")) {
        *(volatile uint64_t *)(context + RING_POSITION) = 8;
        _exit(0);
    } else if (!strcmp(what, "far-position")) {
        *(volatile uint64_t *)(context + RING_POSITION) = 0x7ffffff0;
        _exit(0);
    } else if (!strcmp(what, "exit")) {
        *(volatile uint32_t *)(context + EXIT) = 0x7fffffff;
        __asm__ volatile("int3" : : : "memory");
    } else if (!strcmp(what, "counters")) {
        memset((void *)(context + COUNTERS), 0x7f, 8 * 4000);
    } else if (!strcmp(what, "small-counters")) {
        /* Of a size that is possible, but that does not hang together. */
        for (int n = 0; n < 2000; n++) *(volatile uint64_t *)(context + COUNTERS + 8 * n) = 20000 + 977 * n % 5000 * 4;
    } else if (!strcmp(what, "no-counters")) {
        work(2);
        memset((void *)(context + COUNTERS), 0, 8 * 100000);
        _exit(0);
    }
    if (!strcmp(what, "least")) {
        /* The least times of all groups name one entry, so that no group could ever be found to be up to date. */
        for (int round = 0; round < 1000; round++) {
            for (int group = 0; group < 32; group++) *(volatile uint64_t *)(context + RESIDENT_LEAST + 8 * group) = 0;
            for (int page = 0; page < 300; page++) buffer[page * 4096 * 5 % sizeof buffer]++;
        }
    }
    work(1);
    return 0;
}
