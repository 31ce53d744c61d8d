/* Stands for sjeng: alpha-beta search of Othello positions with a transposition table, move ordering and a phased evaluation. */
#include "counter.h"

typedef unsigned long Board;

typedef struct {
    Board own, other;
    int value, depth;
} Entry;

#define TABLE (1 << 16)
static Entry table[TABLE];
static int history[64];
static const int steps[8] = {1, -1, 8, -8, 7, -7, 9, -9};
static const Board edges[8] = {
    0xfefefefefefefefeUL, 0x7f7f7f7f7f7f7f7fUL, ~0UL, ~0UL,
    0x7f7f7f7f7f7f7f7fUL, 0xfefefefefefefefeUL, 0xfefefefefefefefeUL, 0x7f7f7f7f7f7f7f7fUL};

static __attribute__((noinline)) Board shift(Board board, int direction)
{
    int step = steps[direction];
    return (step > 0 ? board << step : board >> -step) & edges[direction];
}

static __attribute__((noinline)) Board moves(Board own, Board other)
{
    Board found = 0, empty = ~(own | other);
    COUNT(15);
    for (int d = 0; d < 8; d++) {
        Board line = shift(own, d) & other;
        for (int i = 0; i < 5; i++)
            line |= shift(line, d) & other;
        found |= shift(line, d) & empty;
    }
    return found;
}

static __attribute__((noinline)) Board flips(Board own, Board other, int square)
{
    Board all = 0;
    COUNT(14);
    for (int d = 0; d < 8; d++) {
        Board line = 0, at = shift(1UL << square, d);
        while (at & other) {
            line |= at;
            at = shift(at, d);
        }
        if (at & own)
            all |= line;
    }
    return all;
}

static __attribute__((noinline)) Entry *probe(Board own, Board other)
{
    COUNT(7);
    return &table[((own * 0x9E3779B97F4A7C15UL) ^ (other * 0xC2B2AE3D27D4EB4FUL)) >> 48 & (TABLE - 1)];
}

static __attribute__((noinline)) int mobility(Board own, Board other)
{
    COUNT(9);
    return __builtin_popcountl(moves(own, other)) - __builtin_popcountl(moves(other, own));
}

static __attribute__((noinline)) int corners(Board own, Board other)
{
    const Board corner = 0x8100000000000081UL;
    COUNT(10);
    return __builtin_popcountl(own & corner) - __builtin_popcountl(other & corner);
}

static __attribute__((noinline)) int frontier(Board own, Board other)
{
    Board empty = ~(own | other), near = 0;
    COUNT(11);
    for (int d = 0; d < 8; d++)
        near |= shift(empty, d);
    return __builtin_popcountl(near & other) - __builtin_popcountl(near & own);
}

static __attribute__((noinline)) int evaluate(Board own, Board other)
{
    int discs = __builtin_popcountl(own | other);
    COUNT(12);
    if (discs > 58) {
        COUNT(0);
        return 64 * (__builtin_popcountl(own) - __builtin_popcountl(other));
    }
    return 8 * mobility(own, other) + 90 * corners(own, other) + 3 * frontier(own, other);
}

static __attribute__((noinline)) int order(Board choices, int *out)
{
    int count = 0;
    COUNT(6);
    for (; choices; choices &= choices - 1) {
        int square = __builtin_ctzl(choices), place = count++;
        while (place > 0 && history[out[place - 1]] < history[square]) {
            out[place] = out[place - 1];
            place--;
        }
        out[place] = square;
    }
    return count;
}

static int search(Board own, Board other, int depth, int alpha, int beta)
{
    int squares[64], count;
    Entry *entry;
    COUNT(13);
    if (depth == 0)
        return evaluate(own, other);
    entry = probe(own, other);
    if (entry->own == own && entry->other == other && entry->depth >= depth) {
        COUNT(3);
        return entry->value;
    }
    count = order(moves(own, other), squares);
    if (count == 0) {
        COUNT(1);
        return moves(other, own) ? -search(other, own, depth - 1, -beta, -alpha) : evaluate(own, other);
    }
    for (int i = 0; i < count && alpha < beta; i++) {
        Board turned = flips(own, other, squares[i]);
        int value = -search(other & ~turned, own | turned | 1UL << squares[i], depth - 1, -beta, -alpha);
        if (value > alpha) {
            COUNT(8);
            alpha = value;
        }
        if (alpha >= beta) {
            COUNT(4);
            history[squares[i]] += depth * depth;
        }
    }
    *entry = (Entry){own, other, alpha, depth};
    COUNT(5);
    return alpha;
}

int main(int argc, char **argv)
{
    long left = size_argument(argc, argv, 60), sum = 0;
    while (left > 0) {
        Board own = 0x0000000810000000UL, other = 0x0000001008000000UL;
        for (int turn = 0; turn < 60 && left > 0; turn++) {
            Board choices = moves(own, other), old;
            COUNT(2);
            left -= turn >= 6;
            if (choices) {
                int best = -1, score = -1 << 20, squares[64], count = order(choices, squares);
                for (int i = 0; i < count; i++) {
                    Board turned = flips(own, other, squares[i]);
                    int value = turn < 6 ? (int)random_below(100)
                                         : -search(other & ~turned, own | turned | 1UL << squares[i], 3, -1 << 20, 1 << 20);
                    if (value > score)
                        score = value, best = squares[i];
                }
                old = flips(own, other, best);
                own |= old | 1UL << best;
                other &= ~old;
                sum += score;
            }
            old = own, own = other, other = old;
        }
    }
    printf("%ld\n", sum);
    return 0;
}
