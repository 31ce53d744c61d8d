/* The string functions of the C library at every length up to 140, every third, and beyond: whatever the processor makes it choose. */
#include <stdio.h>
#include <string.h>

static char a[6000], b[6000], c[6000];

int main(void) {
  unsigned long sum = 0;
  for (int n = 0; n < 140; n += 3) {
    int off = n * 7 % 64;
    memset(a + off, 'a' + n % 26, (size_t)n);
    a[off + n] = 0;
    sum += strlen(a + off);
    memcpy(b + 3, a + off, (size_t)n + 1);
    if (memcmp(a + off, b + 3, (size_t)n + 1)) return 1;
    if (strcmp(a + off, b + 3)) return 2;
    memmove(b + 4, b + 3, (size_t)n + 1);
    if (n && strchr(b + 4, 'a' + n % 26) != b + 4) return 3;
    if (memchr(b + 4, 0, 300) != b + 4 + n) return 4;
    if (strrchr(b + 4, '#')) return 5;
    strcpy(c + off, b + 4);
    sum = sum * 31 + strnlen(c + off, 100);
  }
  for (size_t n = 200; n < sizeof a; n *= 3) {
    memset(a, (int)n, n);
    memcpy(b, a, n);
    memmove(b + 1, b, n - 1);
    if (memcmp(a, b, n)) return 6;
    b[n - 1] ^= 1;
    sum = sum * 31 + (unsigned)(memcmp(a, b, n) > 0);
  }
  char words[] = "the quick brown fox jumps over the lazy dog";
  int count = 0;
  for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) count += (int)strlen(word) * (strstr(word, "o") != NULL);
  printf("text %lu %d %zu\n", sum, count, strspn("aabbccd", "abc"));
  return 0;
}
