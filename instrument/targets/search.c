/* Binary search: branches and dependent loads. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  enum { n = 10000 };
  int *v = malloc(n * sizeof *v);
  for (int i = 0; i < n; i++) v[i] = i * 3;
  unsigned state = 1, sum = 0;
  for (int q = 0; q < 300; q++) {
    state = state * 1664525u + 1013904223u;
    int key = (int)(state >> 8) % (3 * n), lo = 0, hi = n;
    while (lo < hi) {
      int mid = (lo + hi) / 2;
      if (v[mid] < key) lo = mid + 1;
      else hi = mid;
    }
    sum += (unsigned)lo;
  }
  free(v);
  printf("search %u\n", sum);
  return 0;
}
