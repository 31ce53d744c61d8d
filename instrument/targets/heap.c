/* malloc, realloc and free in every size class, with the heap growing, shrinking and going to mmap. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  static unsigned char *p[64];
  static size_t size[64];
  unsigned state = 7, sum = 0;
  for (int i = 0; i < 400; i++) {
    state = state * 1103515245u + 12345u;
    int k = state >> 16 & 63;
    if (p[k] && state >> 24 & 1) {
      sum = sum * 31 + p[k][size[k] - 1];
      free(p[k]);
      p[k] = NULL;
    } else {
      size_t n = 1 + (state >> 8 & 0xfff) % (i % 50 == 0 ? 4096 : 300);
      if (i % 300 == 0) n += 200000;
      unsigned char *q = realloc(p[k], n);
      if (!q) return 1;
      q[0] = (unsigned char)k;
      q[n - 1] = (unsigned char)i;
      p[k] = q;
      size[k] = n;
    }
  }
  unsigned char *zero = calloc(1000, 3);
  for (int i = 0; i < 3000; i += 100) sum += zero[i];
  free(zero);
  for (int i = 0; i < 64; i++) free(p[i]);
  printf("heap %u\n", sum);
  return 0;
}
