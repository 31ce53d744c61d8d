/* qsort with a comparison through a pointer, bsearch, and a hash of the result. */
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

int main(void) {
  static int v[150];
  unsigned state = 12345, hash = 0;
  for (int i = 0; i < 150; i++) v[i] = (int)((state = state * 1664525u + 1013904223u) >> 8);
  qsort(v, 150, sizeof *v, ascending);
  for (int i = 1; i < 150; i++)
    if (v[i - 1] > v[i]) return 1;
  for (int i = 0; i < 150; i++) hash = hash * 31 + (unsigned)v[i];
  int found = 0;
  for (int i = 0; i < 150; i += 7) found += bsearch(&v[i], v, 150, sizeof *v, ascending) == &v[i];
  printf("sorting %u %d\n", hash, found);
  return 0;
}
