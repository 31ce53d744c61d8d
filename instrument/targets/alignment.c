/* With the alignment flag set every misaligned access faults: the program makes one on purpose, and nobody else may. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static volatile int misaligned;
static void bus(int s, siginfo_t *info, void *context) {
  (void)s, (void)info;
  misaligned++;
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x40000l;
}

int main(void) {
  static long data[64] __attribute__((aligned(64)));
  struct sigaction action = {.sa_sigaction = bus, .sa_flags = SA_SIGINFO};
  sigaction(SIGBUS, &action, NULL);
  long sum = 0;
  for (int round = 0; round < 3; round++) {
    __asm__ volatile(
        "pushfq; orl $0x40000, (%%rsp); popfq\n"
        "mov $64, %%ecx\n"
        "1: mov %%rcx, -8(%1,%%rcx,8)\n"
        "add -8(%1,%%rcx,8), %0\n"
        "movl %%ecx, 4(%1)\n"
        "movb %%cl, 7(%1)\n"
        "call 2f\n"
        "dec %%ecx\n"
        "jnz 1b\n"
        "jmp 3f\n"
        "2: ret\n"
        "3: pushfq; andl $~0x40000, (%%rsp); popfq\n"
        : "+r"(sum) : "r"(data) : "rcx", "memory", "cc");
  }
  __asm__ volatile(
      "pushfq; orl $0x40000, (%%rsp); popfq\n"
      "mov 1(%0), %%rax\n"
      "pushfq; andl $~0x40000, (%%rsp); popfq\n"
      : : "r"(data) : "rax", "memory", "cc");
  printf("alignment %ld %d\n", sum, misaligned);
  return 0;
}
