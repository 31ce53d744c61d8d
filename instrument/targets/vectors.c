/* The same loops for three generations of vector units; the processor chooses, the integers agree. */
#include <stdio.h>
#include <stdlib.h>

#define N 250
static int a[N], b[N], index_of[N];
static float f[N], g[N];

#define LOOPS(name, isa)                                                                              \
  __attribute__((target(isa), optimize("O3"), noinline)) static long name(void) {                    \
    long sum = 0;                                                                                     \
    for (int i = 0; i < N; i++) b[i] = a[i] > 125 ? a[i] * 3 : b[i];                                  \
    for (int i = 0; i < N; i++) sum += a[index_of[i]];                                                \
    for (int i = 0; i < N; i++) if (a[i] & 1) b[i] += a[i];                                           \
    for (int i = 0; i < N; i++) g[i] = g[i] * 0.5f + f[i];                                            \
    for (int i = 0; i < N; i++) sum += b[i];                                                          \
    for (int i = 0; i < N; i++) sum += (long)g[i];                                                    \
    return sum;                                                                                       \
  }
LOOPS(plain, "sse2")
LOOPS(avx2, "avx2")
LOOPS(avx512, "avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")

static long work(int kind) {
  for (int i = 0; i < N; i++) {
    a[i] = i * 7919 % 250;
    b[i] = i;
    index_of[i] = i * 37 % N;
    f[i] = (float)(i % 64);
    g[i] = (float)(i % 32);
  }
  return kind == 2 ? avx512() : kind == 1 ? avx2() : plain();
}

int main(void) {
  long expected = work(0);
  if (__builtin_cpu_supports("avx2") && work(1) != expected) return 1;
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && work(2) != expected) return 2;
  printf("vectors %ld\n", expected);
  return 0;
}
