/* setjmp and longjmp out of deep calls, switches, tables of functions, computed goto, tail calls. */
#include <setjmp.h>
#include <stdio.h>

static jmp_buf out;
static int add(int x) { return x + 3; }
static int twice(int x) { return x * 2; }
static int flip(int x) { return ~x; }
static int half(int x) { return x / 2; }
static int (*volatile table[])(int) = {add, twice, flip, half};

static void __attribute__((noinline)) dive(int depth) {
  volatile char frame[48];
  frame[depth % 48] = (char)depth;
  if (depth == 0) longjmp(out, frame[0] + 5);
  dive(depth - 1);
  frame[1] = 2;
}

static int __attribute__((noinline)) choose(int x) {
  switch (x) {
    case 0: return 5;
    case 1: return 17;
    case 2: return x * 3;
    case 3: return -4;
    case 4: return 90;
    case 5: return x ^ 77;
    case 6: return 1;
    case 7: return 8;
    default: return 0;
  }
}

/* A small stack machine with threaded code. */
static int machine(const unsigned char *code, int x) {
  static void *const label[] = {&&stop, &&inc, &&dbl, &&loop};
  int left = 20;
  goto *label[*code];
inc: x++; code++; goto *label[*code];
dbl: x = x * 2 % 10007; code++; goto *label[*code];
loop: code -= --left > 0 ? 5 : -1; goto *label[*code];
stop: return x;
}

int main(void) {
  volatile int landed = 0, i;
  for (i = 0; i < 20; i++) {
    int back = setjmp(out);
    if (back == 0) dive(i * 3 + 1);
    landed += back;
  }
  int x = 1;
  for (int i = 0; i < 500; i++) x = table[(x ^ i) & 3](x) & 0xffff;
  int sum = 0;
  for (int i = 0; i < 500; i++) sum += choose((i * 7) % 9);
  static const unsigned char code[] = {1, 2, 1, 1, 2, 3, 0};
  printf("jumps %d %d %d %d\n", landed, x, sum, machine(code, 3));
  return 0;
}
