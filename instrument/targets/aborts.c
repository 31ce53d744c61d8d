/* Ends by abort, after output that must not be lost. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  puts("aborts now");
  fflush(stdout);
  abort();
}
