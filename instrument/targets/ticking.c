/* Signals that arrive anywhere: how many instructions run before the tenth is nobody's to say, but the hash is. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static void tick(int s) { (void)s; ticks++; }

int main(void) {
  signal(SIGALRM, tick);
  struct itimerval often = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, NULL);
  unsigned long hash = 1, steps = 0, expected = 1;
  while (ticks < 10) {
    hash ^= hash << 13, hash ^= hash >> 7, hash ^= hash << 17;
    if (hash & 1) hash += 12345;
    steps++;
  }
  struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  for (unsigned long i = 0; i < steps; i++) {
    expected ^= expected << 13, expected ^= expected >> 7, expected ^= expected << 17;
    if (expected & 1) expected += 12345;
  }
  printf("ticking %s\n", hash == expected ? "ok" : "wrong");
  return hash != expected;
}
