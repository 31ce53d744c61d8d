/* A program with two regions: cc -O2 -I include examples/two_regions.c -o two_regions
 *
 * Count them apart with `lightfoot count --region lookup -- ./two_regions`. Run by itself it only
 * prints its result.
 */
#include "lightfoot_region.h"
#include <stdio.h>

static unsigned long table[100000];

/* The place of key in the ascending table, or -1. */
static long lookup(unsigned long key) {
    long low = 0, high = sizeof table / sizeof *table;
    while (low < high) {
        long middle = low + (high - low) / 2;
        if (table[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < (long)(sizeof table / sizeof *table) && table[low] == key ? low : -1;
}

int main(void) {
    region_begin("fill");
    for (unsigned long n = 0; n < sizeof table / sizeof *table; n++)
        table[n] = 3 * n;
    region_end("fill");

    unsigned found = 0;
    for (unsigned long key = 0; key < 100000; key++) {
        region_begin("lookup");
        long place = lookup(key);
        region_end("lookup");
        found += place >= 0;
    }
    printf("%u of 100000 keys are there\n", found);
    return 0;
}
