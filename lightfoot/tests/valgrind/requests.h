/* Valgrind's client requests on amd64, written from their documented form: a sequence that does
 * nothing natively, with the address of six words in rax and the default answer in rdx. */
#include <stdint.h>

static inline __attribute__((always_inline)) uint64_t ask(uint64_t by_default, uint64_t code, uint64_t first,
                                                          uint64_t second) {
    volatile uint64_t words[6] = {code, first, second, 0, 0, 0};
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "+d"(by_default)
                     : "a"(&words[0])
                     : "cc", "memory");
    return by_default;
}

/* A request whose words lie at an address of the caller's choice. */
static inline __attribute__((always_inline)) uint64_t ask_at(uint64_t by_default, uint64_t address) {
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "+d"(by_default)
                     : "a"(address)
                     : "cc", "memory");
    return by_default;
}

#define RUNNING_ON_VALGRIND() ask(0, 0x1001, 0, 0)
#define DUMP_STATS() ask(0, 0x43540000, 0, 0)
#define ZERO_STATS() ask(0, 0x43540001, 0, 0)
#define TOGGLE_COLLECT() ask(0, 0x43540002, 0, 0)
#define DUMP_STATS_AT(text) ask(0, 0x43540003, (uint64_t)(text), 0)
#define START_INSTRUMENTATION() ask(0, 0x43540004, 0, 0)
#define STOP_INSTRUMENTATION() ask(0, 0x43540005, 0, 0)
#define CACHEGRIND_START() ask(0, 0x43470000, 0, 0)
#define CACHEGRIND_STOP() ask(0, 0x43470001, 0, 0)
