/* Every kind of reference whose pages are used beside the program, at random places of a megabyte:
   plain ones within and across pages, repeats forwards and backwards, masks, gathers, state areas,
   tiles, bit strings. Two threads one after the other, and a fault that a handler mends. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POOL (1 << 20)
static uint8_t *pool;
static uint64_t state = 88172645463325252ull;
static int has_avx2, has_avx512, has_amx;
static sigjmp_buf back;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Somewhere with that much room before and behind it. */
static uint8_t *place(size_t room) { return pool + room + next() % (POOL - 2 * room); }

/* Often at the end of a page. */
static uint8_t *edge(size_t room) {
    uint8_t *p = (uint8_t *)((uintptr_t)place(room + 8192) & -4096ul) + 4096;
    return p - next() % 72;
}

static void repeats(void) {
    size_t n = next() % 20000;
    uint8_t *d = place(140000), *s = place(140000);
    size_t words = n / 8;
    switch (next() % 9) {
    case 0: __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n)::"memory"); break;
    case 1: __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(7) : "memory"); break;
    case 2: __asm__ volatile("rep movsq" : "+D"(d), "+S"(s), "+c"(words)::"memory"); break;
    case 3:
        d = (uint8_t *)((uintptr_t)d & -8ul);
        __asm__ volatile("rep stosq" : "+D"(d), "+c"(words) : "a"(7ul) : "memory");
        break;
    case 4: __asm__ volatile("repe cmpsb" : "+D"(d), "+S"(s), "+c"(n)::"memory", "cc"); break;
    case 5: __asm__ volatile("repne scasb" : "+D"(d), "+c"(n) : "a"(255) : "memory", "cc"); break;
    case 6: __asm__ volatile("rep lodsl" : "+S"(s), "+c"(words)::"rax", "memory"); break;
    case 7:
        __asm__ volatile("std; rep movsb; cld" : "+D"(d), "+S"(s), "+c"(n)::"memory", "cc");
        break;
    case 8:
        d = (uint8_t *)((uintptr_t)d & -8ul), s = (uint8_t *)((uintptr_t)s & -8ul);
        __asm__ volatile("rep movsq" : "+D"(d), "+S"(s), "+c"(words)::"memory");
        break;
    }
}

__attribute__((target("avx2"))) static void masks_avx2(void) {
    __m256i mask = _mm256_set_epi64x(next(), next(), next(), next());
    if (next() % 8 == 0) mask = _mm256_setzero_si256();
    uint8_t *p = edge(64);
    __m256i v = _mm256_maskload_epi32((int *)p, mask);
    _mm256_maskstore_epi32((int *)edge(64), mask, v);
    __m256i at = _mm256_set_epi32(next() % 900000, next() % 900000, next() % 900000, next() % 900000,
                                  next() % 900000, next() % 900000, next() % 900000, next() % 900000);
    v = _mm256_mask_i32gather_epi32(v, (int *)pool, at, mask, 1);
    __m128i from = _mm256_i64gather_epi32((int *)pool, _mm256_srli_epi64(_mm256_unpacklo_epi32(at, _mm256_setzero_si256()), 3), 8);
    _mm_storeu_si128((__m128i *)edge(64), from);
    _mm256_storeu_si256((__m256i *)edge(64), v);
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2"))) static void masks_avx512(void) {
    __mmask64 mask = next() & next();
    if (next() % 8 == 0) mask = 0;
    __m512i v = _mm512_maskz_loadu_epi8(mask, edge(64));
    _mm512_mask_storeu_epi8(edge(64), next(), v);
    _mm512_mask_compressstoreu_epi8(edge(64), mask, v);
    v = _mm512_maskz_expandloadu_epi8(mask, edge(64));
    __m512i at = _mm512_and_si512(_mm512_set1_epi32(next()), _mm512_set1_epi32(POOL - 64));
    at = _mm512_add_epi32(at, _mm512_and_si512(v, _mm512_set1_epi32(31)));
    _mm512_mask_i32scatter_epi32(pool, mask, at, v, 1);
    v = _mm512_mask_add_epi32(v, mask, v, _mm512_set1_epi32(*(int *)edge(64)));
    _mm512_storeu_si512(edge(64), v);
}

struct tiles {
    uint8_t palette, start, reserved[14];
    uint16_t columns[16];
    uint8_t rows[16];
};

__attribute__((target("amx-tile"))) static void tiles(void) {
    struct tiles c;
    memset(&c, 0, sizeof c);
    c.palette = 1;
    for (int t = 0; t < 8; t++) c.columns[t] = 4 * (1 + next() % 16), c.rows[t] = 1 + next() % 16;
    _tile_loadconfig(&c);
    _tile_loadd(1, place(80000), next() % 5000);
    _tile_stored(1, place(80000), 64 + next() % 3000);
    _tile_release();
}

static void areas(void) {
    uint8_t *p = (uint8_t *)((uintptr_t)place(20000) & -64ul);
    memset(p, 0, 832);
    __asm__ volatile("xsave64 (%0)" ::"r"(p), "a"(3), "d"(0) : "memory");
    __asm__ volatile("xrstor64 (%0)" ::"r"(p), "a"(3), "d"(0) : "memory");
    p = (uint8_t *)((uintptr_t)place(20000) & -16ul);
    __asm__ volatile("fxsave64 (%0)" ::"r"(p) : "memory");
    __asm__ volatile("fnstenv (%0); fldenv (%0)" ::"r"(edge(64)) : "memory");
}

static void others(void) {
    long bit = (long)(next() % (1 << 22)) - (1 << 21);
    __asm__ volatile("btsq %1, (%0)" ::"r"(pool + POOL / 2), "r"(bit) : "memory", "cc");
    __asm__ volatile("btl %1, (%0)" ::"r"(edge(64)), "r"((int)(next() % 4096)) : "memory", "cc");
    uint8_t *table = edge(256);
    __asm__ volatile("xlatb" ::"b"(table), "a"(next() & 255) : "memory");
    *(volatile uint64_t *)edge(64) += 3;
    __asm__ volatile("lock xaddl %1, (%0)" ::"r"(edge(64)), "r"(1) : "memory", "cc");
    volatile uint64_t *far = (uint64_t *)place(64);
    far[0] = far[1] + far[2] + far[3];
}

static void on_fault(int signal) { siglongjmp(back, signal); }

/* A repeat that runs into a page without rights. */
static void faults(void) {
    uint8_t *wall = pool + POOL, *d = wall - 9000;
    size_t n = 20000;
    if (sigsetjmp(back, 1) == 0) __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(1) : "memory");
}

/* One that has passed more pages than a segment of the ring has records. */
static void far_fault(void) {
    size_t bytes = 280ul << 20, n = bytes / 8 + 1;
    uint8_t *s = mmap(0, bytes + 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(s + bytes, 4096, PROT_NONE);
    uint8_t *at = s;
    if (sigsetjmp(back, 1) == 0) __asm__ volatile("rep lodsq" : "+S"(at), "+c"(n)::"rax", "memory");
    munmap(s, bytes + 4096);
}

static void *work(void *rounds) {
    for (long i = 0; i < (long)rounds; i++) {
        if (i % 3 == 0) repeats();
        if (has_avx2) masks_avx2();
        if (has_avx512) masks_avx512();
        if (has_amx && i % 8 == 0) tiles();
        if (i % 16 == 0) areas();
        if (i % 64 == 0) faults();
        others();
    }
    return 0;
}

static int done[2];

static void *beside(void *rounds) {
    work(rounds);
    return write(done[1], "", 1) == 1 ? rounds : 0;
}

/* A thread that has ended before it is joined: joining one that still runs takes more instructions. */
static void run_beside(long rounds) {
    pthread_t thread;
    char end;
    pthread_create(&thread, 0, beside, (void *)rounds);
    if (read(done[0], &end, 1) == 1) usleep(20000);
    pthread_join(thread, 0);
}

int main(void) {
    if (pipe(done) != 0) return 1;
    pool = mmap(0, POOL + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pool + POOL, 65536, PROT_NONE);
    for (long i = 0; i < POOL; i++) pool[i] = i * 7;
    signal(SIGSEGV, on_fault);
    has_avx2 = __builtin_cpu_supports("avx2");
    has_avx512 = __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw");
    has_amx = syscall(SYS_arch_prctl, 0x1023, 18) == 0;
    work((void *)400);
    for (int i = 0; i < 2; i++) run_beside(200);
    far_fault();
    work((void *)100);
    printf("%d %d %d\n", has_avx2, has_avx512, has_amx);
    return 0;
}
