/* Kernels of threads that share lines. Built with -DMENDED, nothing of a thread lies in a line of
 * another one. Each is written after a description: linear_regression, histogram and reverse_index
 * of Phoenix, streamcluster of PARSEC and the pool of spin locks of Boost as PREDATOR's paper (Liu,
 * Tian, Hu and Berger, PPoPP 2014) and Huron's (Khan, Zhao, Pokam, Mozafari and Kasikci, PLDI 2019)
 * describe them. The first argument names the kernel. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#ifdef MENDED
#define OWN_LINES __attribute__((aligned(128)))
#else
#define OWN_LINES
#endif

static void run(void *(*work)(void *), long threads) {
  pthread_t all[THREADS];
  for (long n = 0; n < threads; n++) pthread_create(&all[n], 0, work, (void *)n);
  for (long n = 0; n < threads; n++) pthread_join(all[n], 0);
}

/* Two threads count in neighbouring words. */
static struct { volatile long count; } OWN_LINES near_counts[2] __attribute__((aligned(128)));
static void *near(void *p) {
  volatile long *count = &near_counts[(long)p].count;
  for (int n = 0; n < 20000; n++)
    *count += 1; /* near: counts */
  return 0;
}

/* Two threads count in one word. */
static long ping_count __attribute__((aligned(128)));
static void *ping(void *p) {
  for (int n = 0; n < 20000; n++) __atomic_fetch_add(&ping_count, 1, __ATOMIC_SEQ_CST); /* ping: counts */
  return p;
}

/* One thread writes a word now and then, three read it all the time. */
static volatile long mostly __attribute__((aligned(128)));
static void *read_mostly(void *p) {
  long sum = 0;
  for (int n = 0; n < 20000; n++) {
    if (!p && n % 1000 == 0) mostly = n; /* mostly: writes */
    sum += mostly;                       /* mostly: reads */
  }
  return (void *)sum;
}

/* linear_regression: each thread adds up in its own element of a heap array of 52 bytes each. */
struct sums { char *points; int count; long long sx, sy, sxx, syy, sxy; } OWN_LINES;
static struct sums *regression_sums;
static char points[2][4000];
static void *regression(void *p) {
  volatile struct sums *own = &regression_sums[(long)p];
  for (int round = 0; round < 4; round++)
    for (int n = 0; n < own->count; n++) {
      own->sx += points[0][n];
      own->sxx += points[0][n] * points[0][n];
      own->sy += points[1][n];
      own->syy += points[1][n] * points[1][n];
      own->sxy += points[0][n] * points[1][n]; /* regression: adds */
    }
  return 0;
}

/* histogram: the last bin of a thread lies in the line in which the next one has its bounds. */
struct bins { unsigned char *data; long from, to; int red[256], green[256], blue[256]; } OWN_LINES;
static struct bins *all_bins;
static void *histogram(void *p) {
  volatile struct bins *own = &all_bins[(long)p];
  for (long n = own->from; n < own->to; n += 3) { /* histogram: reads its bounds */
    own->red[own->data[n]]++;
    own->green[own->data[n + 1]]++;
    own->blue[own->data[n + 2]]++; /* histogram: counts */
  }
  return 0;
}

/* reverse_index: lengths of the threads' lists are neighbours. */
struct length { volatile int used; } OWN_LINES;
static struct length *use_len;
static void *reverse_index(void *p) {
  for (int n = 0; n < 10000; n++)
    use_len[(long)p].used++; /* reverse_index: counts */
  return 0;
}

/* streamcluster: areas of threads are padded to lines of 32 bytes. */
#ifdef MENDED
#define CACHE_LINE 128
#else
#define CACHE_LINE 32
#endif
static volatile double *work_mem;
static void *streamcluster(void *p) {
  long stride = CACHE_LINE / sizeof(double);
  for (int n = 0; n < 10000; n++)
    work_mem[(long)p * stride + n % 4] += n; /* streamcluster: adds */
  return 0;
}

/* Boost: a pool of spin locks, of which each thread takes one of its own. */
struct lock { int taken; } OWN_LINES;
static struct lock pool[41] __attribute__((aligned(128)));
static void *spin(void *p) {
  struct lock *own = &pool[(long)p];
  for (int n = 0; n < 10000; n++) {
    while (__atomic_exchange_n(&own->taken, 1, __ATOMIC_ACQUIRE)) continue; /* spin: takes */
    __atomic_store_n(&own->taken, 0, __ATOMIC_RELEASE);                     /* spin: gives */
  }
  return 0;
}

static void *room(size_t bytes) {
#ifdef MENDED
  return memset(aligned_alloc(128, (bytes + 127) / 128 * 128), 0, bytes);
#else
  return memset((char *)malloc(bytes), 0, bytes);
#endif
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  if (!strcmp(name, "near")) run(near, 2);
  else if (!strcmp(name, "ping")) run(ping, 2);
  else if (!strcmp(name, "mostly")) run(read_mostly, 4);
  else if (!strcmp(name, "regression")) {
    regression_sums = room(THREADS * sizeof(struct sums));
    memset(points, 3, sizeof points);
    for (int n = 0; n < THREADS; n++) regression_sums[n].count = 2000;
    run(regression, THREADS);
  } else if (!strcmp(name, "histogram")) {
    all_bins = room(THREADS * sizeof(struct bins));
    unsigned char *data = malloc(4 * 9000);
    memset(data, 255, 4 * 9000);
    for (int n = 0; n < THREADS; n++) {
      all_bins[n].data = data;
      all_bins[n].from = 9000L * n;
      all_bins[n].to = 9000L * (n + 1);
    }
    run(histogram, THREADS);
  } else if (!strcmp(name, "reverse_index")) {
    use_len = room(THREADS * sizeof(struct length));
    run(reverse_index, THREADS);
  } else if (!strcmp(name, "streamcluster")) {
    work_mem = room(CACHE_LINE * (THREADS + 1));
    run(streamcluster, THREADS);
  } else if (!strcmp(name, "spin")) run(spin, THREADS);
  else return 2;
  return 0;
}
