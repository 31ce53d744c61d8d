/* Stands for bzip2: block-sorting compression. Synthetic text, rotations sorted, moved to front, run lengths, code lengths, bits. */
#include "counter.h"

#define BLOCK 8000
static unsigned char text[2 * BLOCK], last[BLOCK], moved[BLOCK];
static int rotation[BLOCK], bucket[65537], frequency[258], length[258];
static unsigned long bits, checksum;

static __attribute__((noinline)) void write_text(int n)
{
    static const char *words[16] = {"the ", "of ", "cache ", "line ", "miss ", "trace ", "and ", "a ",
                                    "metric ", "run ", "signal ", "(x)", "\n", "counter ", "0x", "is "};
    int at = 0;
    COUNT(0);
    while (at < n) {
        const char *word = words[random_below(random_below(16) + 1)];
        COUNT(9);
        while (*word && at < n)
            text[at++] = (unsigned char)*word++;
        if (random_below(9) == 0 && at < n)
            text[at++] = (unsigned char)('a' + random_below(26));
    }
    memcpy(text + n, text, (size_t)n);
}

static __attribute__((noinline)) int compare(int a, int b, int n)
{
    COUNT(15);
    for (int i = 2; i < n; i++)
        if (text[a + i] != text[b + i])
            return text[a + i] < text[b + i] ? -1 : 1;
    return a < b ? -1 : 1;
}

static __attribute__((noinline)) void insertion(int *v, int count, int n)
{
    COUNT(10);
    for (int i = 1; i < count; i++) {
        int x = v[i], j = i;
        for (; j > 0 && compare(x, v[j - 1], n) < 0; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

static void quick(int *v, int count, int n)
{
    COUNT(11);
    while (count > 8) {
        int pivot = v[(int)random_below((unsigned)count)], low = 0, high = count - 1;
        COUNT(8);
        while (low <= high) {
            while (v[low] != pivot && compare(v[low], pivot, n) < 0)
                low++;
            while (v[high] != pivot && compare(pivot, v[high], n) < 0)
                high--;
            if (low <= high) {
                int x = v[low];
                v[low++] = v[high];
                v[high--] = x;
            }
        }
        if (high + 1 < count - low) {
            quick(v, high + 1, n);
            v += low, count -= low;
        } else {
            quick(v + low, count - low, n);
            count = high + 1;
        }
    }
    insertion(v, count, n);
}

static __attribute__((noinline)) void sort(int n)
{
    COUNT(1);
    memset(bucket, 0, sizeof bucket);
    for (int i = 0; i < n; i++)
        bucket[(text[i] << 8 | text[i + 1]) + 1]++;
    for (int i = 0; i < 65536; i++)
        bucket[i + 1] += bucket[i];
    for (int i = 0; i < n; i++)
        rotation[bucket[text[i] << 8 | text[i + 1]]++] = i;
    for (int i = 0, start = 0; i < 65536; i++) {
        int end = bucket[i];
        if (end - start > 1) {
            COUNT(5);
            quick(rotation + start, end - start, n);
        }
        start = end;
    }
}

static __attribute__((noinline)) int front(unsigned char *list, unsigned char c)
{
    int at = 0;
    COUNT(14);
    while (list[at] != c)
        at++;
    memmove(list + 1, list, (size_t)at);
    list[0] = c;
    return at;
}

static __attribute__((noinline)) void move_to_front(int n)
{
    unsigned char list[256];
    COUNT(2);
    for (int i = 0; i < 256; i++)
        list[i] = (unsigned char)i;
    for (int i = 0; i < n; i++) {
        last[i] = text[rotation[i] + n - 1];
        moved[i] = (unsigned char)front(list, last[i]);
        frequency[moved[i]]++;
    }
}

/* Depths of a Huffman tree, by the two lightest again and again. */
static __attribute__((noinline)) void lengths(void)
{
    int weight[516], parent[516], used[516] = {0}, count = 256, nodes = 256;
    COUNT(3);
    for (int i = 0; i < 256; i++)
        weight[i] = frequency[i] + 1;
    for (; count > 1; count--) {
        int a = -1, b = -1;
        COUNT(6);
        for (int i = 0; i < nodes; i++) {
            if (used[i])
                continue;
            if (a < 0 || weight[i] < weight[a])
                b = a, a = i;
            else if (b < 0 || weight[i] < weight[b])
                b = i;
        }
        used[a] = used[b] = 1;
        weight[nodes] = weight[a] + weight[b];
        parent[a] = parent[b] = nodes++;
    }
    for (int i = 0; i < 256; i++) {
        length[i] = 0;
        for (int at = i; at != nodes - 1; at = parent[at])
            length[i]++;
    }
}

static __attribute__((noinline)) void put(int code, int count)
{
    COUNT(12);
    bits = bits << count | (unsigned long)code;
    checksum = checksum * 31 + (bits & 0xffff);
}

static __attribute__((noinline)) void encode(int n)
{
    int run = 0;
    COUNT(4);
    for (int i = 0; i < n; i++) {
        if (moved[i] == 0) {
            COUNT(13);
            run++;
            continue;
        }
        if (run) {
            COUNT(7);
            put(run & 1, 1 + (run > 3));
        }
        run = 0;
        put(moved[i], length[moved[i]] & 15);
    }
}

int main(int argc, char **argv)
{
    long blocks = size_argument(argc, argv, 3);
    for (long block = 0; block < blocks; block++) {
        int n = BLOCK - (int)random_below(BLOCK / 4);
        write_text(n);
        sort(n);
        memset(frequency, 0, sizeof frequency);
        move_to_front(n);
        lengths();
        encode(n);
    }
    printf("%lu\n", checksum);
    return 0;
}
