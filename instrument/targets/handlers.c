/* Handlers for timer signals and faults, at places that do not depend on time. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int ticks, faults;
static void tick(int s) { (void)s; ticks++; }
static void fault(int s, siginfo_t *info, void *context) {
  (void)s, (void)context;
  faults++;
  mprotect((void *)((unsigned long)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

int main(void) {
  struct sigaction action = {0};
  action.sa_handler = tick;
  sigaction(SIGALRM, &action, NULL);
  action.sa_sigaction = fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  sigset_t block, open;
  sigemptyset(&block);
  sigaddset(&block, SIGALRM);
  sigprocmask(SIG_BLOCK, &block, &open);
  struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 5; i++) sigsuspend(&open);
  setitimer(ITIMER_REAL, &never, NULL);
  int seen = ticks;
  char *m = mmap(NULL, 30 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int sum = 0;
  for (int i = 0; i < 30; i++) m[i * 4096 + i * 131] = (char)i;
  for (int i = 0; i < 30; i++) sum += m[i * 4096 + i * 131];
  memset(m, 1, 2 * 4096);
  signal(SIGUSR1, tick);
  for (int i = 0; i < 10; i++) raise(SIGUSR1);
  printf("handlers %d %d %d %d\n", seen, faults, sum, ticks - seen);
  return 0;
}
