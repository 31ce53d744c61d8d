/* A product of 16 x 16 matrices, three plain loops. */
#include <stdio.h>
enum { n = 16 };
static double a[n][n], b[n][n], c[n][n];

int main(void) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) a[i][j] = i + j, b[i][j] = 2 * i - j + 1;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++) c[i][j] += a[i][k] * b[k][j];
  double trace = 0;
  for (int i = 0; i < n; i++) trace += c[i][i];
  printf("matmul %.1f %.1f\n", trace, c[3][11]);
  return 0;
}
