/* printf and scanf: long double arithmetic, multi-word division, locale tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  char line[200];
  double x = 1;
  for (int i = 0; i < 4; i++) {
    x = x * -1234.567 + sin(i);
    snprintf(line, sizeof line, "%.17g %a %15.3e|%-8d|%08lx", x, x, x, i * i, (unsigned long)i << 33);
    double back = strtod(line, NULL);
    if (back != x) return 1;
  }
  puts(line);
  int a, b;
  char word[20];
  if (sscanf("12 -7 seven", "%d %d %19s", &a, &b, word) != 3) return 2;
  printf("%d %s %.30f %Lg %s\n", a * b, word, 0.1, 1e400L, "end");
  printf("%f %g %g %g\n", exp(1), pow(2, 0.5), log(10), fmod(-7, 3));
  return 0;
}
