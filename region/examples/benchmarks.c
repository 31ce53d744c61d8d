/* Two benchmarks, in C or C++: cc -O2 -I include examples/benchmarks.c -o benchmarks
 *
 * Count them with `lightfoot bench --program ./benchmarks`. Run by itself it calls each once.
 */
#include "lightfoot_bench.h"

enum { COUNT = 1000 };

static int compare(const void *one, const void *other) {
    int a = *(const int *)one, b = *(const int *)other;
    return (a > b) - (a < b);
}

static void *reversed(void) {
    int *numbers = (int *)malloc(COUNT * sizeof *numbers);
    for (int index = 0; index < COUNT; index++)
        numbers[index] = COUNT - index;
    return numbers;
}

static void sort(void *numbers) { qsort(numbers, COUNT, sizeof(int), compare); }

static void sum(void *none) {
    unsigned long sum = 0;
    (void)none;
    for (unsigned long number = 0; number < COUNT; number++) {
        sum += number * number;
        lightfoot_keep(sum);
    }
}

int main(int argc, char **argv) {
    static const struct lightfoot_benchmark all[] = {
        LIGHTFOOT_BENCHMARK(sort, reversed),
        LIGHTFOOT_BENCHMARK(sum, NULL),
    };
    return lightfoot_bench_main(argc, argv, all, sizeof all / sizeof *all);
}
