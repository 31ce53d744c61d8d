/* Software metrics as the paper's compiler extension counts them: a global per metric, incremented where its event happens. METRICS says how many are
   compiled in, STRIDE how many bytes lie between two. The counters' memory is there in every build, so that builds differ in the added instructions only. */
#ifndef METRICS
#define METRICS 0
#endif
#ifndef STRIDE
#define STRIDE 8
#endif
#define SLOTS 16
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char counters[SLOTS * 4096] __attribute__((aligned(4096), used));

#define COUNT(n)                                                        \
    do {                                                                \
        if ((n) < METRICS)                                              \
            ++*(volatile unsigned long *)(counters + (n) * (STRIDE));   \
    } while (0)

static unsigned long state = 88172645463325252UL;

/* xorshift64, Marsaglia 2003 */
static unsigned random_below(unsigned limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 32) * limit >> 32);
}

static long size_argument(int argc, char **argv, long otherwise)
{
    return argc > 1 ? atol(argv[1]) : otherwise;
}
