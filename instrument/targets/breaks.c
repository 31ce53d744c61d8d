/* The program break: pages that were given back come again as zeros. */
#include <stdio.h>
#include <unistd.h>

int main(void) {
  char *start = (char *)(((unsigned long)sbrk(0) + 4095) & ~4095ul);
  for (int round = 0; round < 4; round++) {
    if (brk(start + 20 * 4096)) return 1;
    for (int i = 1; i < 20; i++)
      if (start[i * 4096 + 100]) return 2;
    for (int i = 0; i < 20; i++) start[i * 4096 + 100] = 1;
    if (brk(start + round * 100)) return 3;
  }
  if (sbrk(0) != start + 300) return 4;
  static const char done[] = "breaks ok\n";
  return write(1, done, sizeof done - 1) != sizeof done - 1;
}
