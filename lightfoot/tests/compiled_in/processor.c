/* Stands for sim-outorder: simulates a small processor with a reorder window, two caches, a branch predictor and renamed registers, which runs a sort, a
   hash join and a matrix product in turn. */
#include "counter.h"

enum { ADD, SUB, MUL, AND, SHR, LOAD, STORE, BLT, BNE, JMP, LI, HALT };
typedef struct {
    int op, d, a, b;
} Instruction;
typedef struct {
    long ready;
    int d;
} Slot;

#define WORDS (1 << 17)
#define WINDOW 64
static long memory[WORDS], registers[32], renamed[32];
static Instruction program[256];
static int size;
static Slot window[WINDOW];
static unsigned l1[512][4], l2[2048][8];
static unsigned char predictor[8192];
static unsigned past;
static long cycle, issued, head;

static int emit(int op, int d, int a, int b)
{
    program[size] = (Instruction){op, d, a, b};
    return size++;
}

static __attribute__((noinline)) int look(unsigned *ways, int count, unsigned tag)
{
    COUNT(11);
    for (int i = 0; i < count; i++)
        if (ways[i] == tag) {
            for (; i > 0; i--)
                ways[i] = ways[i - 1];
            ways[0] = tag;
            return 1;
        }
    memmove(ways + 1, ways, sizeof *ways * (size_t)(count - 1));
    ways[0] = tag;
    COUNT(3);
    return 0;
}

static __attribute__((noinline)) int latency(unsigned address)
{
    unsigned line = address >> 3;
    COUNT(9);
    if (look(l1[line & 511], 4, line + 1))
        return 2;
    COUNT(1);
    if (look(l2[line & 2047], 8, line + 1))
        return 12;
    COUNT(2);
    return 120;
}

static __attribute__((noinline)) int predict(int pc, int taken)
{
    unsigned index = ((unsigned)pc * 13 ^ past) & 8191;
    int right = (predictor[index] > 1) == taken;
    COUNT(7);
    if (taken && predictor[index] < 3)
        predictor[index]++;
    if (!taken && predictor[index] > 0)
        predictor[index]--;
    past = past << 1 | (unsigned)taken;
    if (!right)
        COUNT(4);
    return right;
}

static __attribute__((noinline)) void retire(void)
{
    Slot *slot = &window[head % WINDOW];
    COUNT(12);
    if (slot->ready > cycle)
        cycle = slot->ready;
    head++;
}

static __attribute__((noinline)) void issue(int d, long ready)
{
    COUNT(13);
    if (issued - head == WINDOW)
        retire();
    window[issued++ % WINDOW] = (Slot){ready, d};
    renamed[d] = ready;
    if (issued % 4 == 0)
        cycle++;
}

static __attribute__((noinline)) long operands(const Instruction *at)
{
    long a = renamed[at->a], b = renamed[at->b & 31], latest = a > b ? a : b;
    COUNT(14);
    return latest > cycle ? latest : cycle;
}

static __attribute__((noinline)) void flush(long ready)
{
    COUNT(5);
    while (head < issued)
        retire();
    cycle = (ready > cycle ? ready : cycle) + 10;
}

static __attribute__((noinline)) void access_memory(const Instruction *at, long ready)
{
    unsigned address = (unsigned)(registers[at->a] + at->b) & (WORDS - 1);
    COUNT(10);
    if (at->op == LOAD) {
        registers[at->d] = memory[address];
        issue(at->d, ready + latency(address));
    } else {
        COUNT(6);
        memory[address] = registers[at->d];
        issue(0, ready + 1);
        latency(address);
    }
}

static __attribute__((noinline)) int branch(const Instruction *at, int pc, long ready)
{
    int taken = at->op == BLT ? registers[at->a] < registers[at->b] : registers[at->a] != registers[at->b];
    COUNT(8);
    issue(0, ready + 1);
    if (!predict(pc, taken))
        flush(ready);
    return taken ? at->d : pc + 1;
}

static void run(void)
{
    int pc = 0;
    COUNT(0);
    for (;;) {
        const Instruction *at = &program[pc];
        long ready = operands(at), a = registers[at->a], b = registers[at->b & 31];
        COUNT(15);
        switch (at->op) {
        case ADD: registers[at->d] = a + b; issue(at->d, ready + 1); break;
        case SUB: registers[at->d] = a - b; issue(at->d, ready + 1); break;
        case MUL: registers[at->d] = a * b; issue(at->d, ready + 3); break;
        case AND: registers[at->d] = a & b; issue(at->d, ready + 1); break;
        case SHR: registers[at->d] = (long)((unsigned long)a >> (b & 63)); issue(at->d, ready + 1); break;
        case LI: registers[at->d] = at->b; issue(at->d, cycle); break;
        case LOAD: case STORE: access_memory(at, ready); break;
        case BLT: case BNE: pc = branch(at, pc, ready); continue;
        case JMP: pc = at->d; continue;
        case HALT: return;
        }
        pc++;
    }
}

/* r1 counts to r2; r3, r4, ... are free. */
static void hash_join(int base, int n)
{
    size = 0;
    emit(LI, 1, 0, 0); emit(LI, 2, 0, n); emit(LI, 5, 0, 40503); emit(LI, 6, 0, 32767); emit(LI, 7, 0, 1); emit(LI, 9, 0, 3);
    int top = emit(ADD, 3, 1, 0);
    emit(MUL, 3, 3, 5); emit(SHR, 8, 3, 9); emit(AND, 3, 8, 6); emit(LOAD, 4, 3, base);
    emit(ADD, 4, 4, 7); emit(STORE, 4, 3, base); emit(ADD, 10, 10, 4); emit(ADD, 1, 1, 7); emit(BLT, top, 1, 2);
    emit(HALT, 0, 0, 0);
}

static void shell_pass(int n, int gap)
{
    size = 0;
    emit(LI, 1, 0, gap); emit(LI, 2, 0, n); emit(LI, 7, 0, 1); emit(LI, 6, 0, gap);
    int top = emit(LOAD, 3, 1, 0), inner, after;
    emit(SUB, 4, 1, 6);
    inner = emit(LOAD, 5, 4, 0);
    after = emit(BLT, 0, 5, 3);
    emit(STORE, 5, 4, gap); emit(SUB, 4, 4, 6); emit(BLT, inner, 0, 4);
    program[after].d = size;
    emit(STORE, 3, 4, gap); emit(ADD, 1, 1, 7); emit(BLT, top, 1, 2); emit(HALT, 0, 0, 0);
}

static void product(int n)
{
    size = 0;
    emit(LI, 7, 0, 1); emit(LI, 2, 0, n); emit(LI, 11, 0, n); emit(LI, 12, 0, 0);
    int i = emit(LI, 13, 0, 0), j = emit(LI, 1, 0, 0), k;
    emit(LI, 10, 0, 0); emit(MUL, 14, 12, 11); emit(ADD, 15, 13, 0);
    k = emit(LOAD, 3, 14, 1024);
    emit(LOAD, 4, 15, 40000); emit(MUL, 5, 3, 4); emit(ADD, 10, 10, 5); emit(ADD, 14, 14, 7); emit(ADD, 15, 15, 11);
    emit(ADD, 1, 1, 7); emit(BLT, k, 1, 2);
    emit(ADD, 13, 13, 7); emit(BLT, j, 13, 2); emit(ADD, 12, 12, 7); emit(BLT, i, 12, 2); emit(HALT, 0, 0, 0);
}

int main(int argc, char **argv)
{
    long rounds = size_argument(argc, argv, 2);
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < WORDS; i += 8)
            memory[i] = 0;
        for (int i = 0; i < 8192; i++)
            memory[i] = (long)random_below(1000000);
        hash_join(60000, 2500);
        run();
        shell_pass(1200, 97);
        run();
        shell_pass(1200, 31);
        run();
        product(10);
        run();
    }
    printf("%ld %ld\n", cycle, registers[10]);
    return 0;
}
