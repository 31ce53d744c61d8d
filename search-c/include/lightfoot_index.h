/* Static search trees: sorted keys that are searched often and never change.
 *
 *     lfindex_u32 *index = NULL;
 *     if (lfindex_u32_build(keys, n, &index) != LFINDEX_OK)
 *         fprintf(stderr, "%s\n", lfindex_message());
 *     lfindex_u32_batch(index, queries, ranks, count, 1);
 *     lfindex_u32_free(index);
 *
 * A rank is a number of keys, so it is a position in whatever is sorted alike. Indexes never change:
 * any number of threads may use one at the same time, except while it is freed. Floats are in total
 * order: -NaN < -infinity < -0 < +0 < infinity < NaN.
 *
 * Pointers to arrays may be null where their length is 0. Every other pointer must be valid.
 */
#ifndef LIGHTFOOT_INDEX_H
#define LIGHTFOOT_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a function that can fail returns. After a failure, lfindex_message says why. */
typedef enum lfindex_status {
    LFINDEX_OK = 0,
    /* Keys that should be sorted are not; the message names the position. */
    LFINDEX_UNSORTED = 1,
    /* A file or bytes are no index, of a newer format, of another type, cut short or damaged. */
    LFINDEX_DAMAGED = 2,
    /* The system refused to read or write. */
    LFINDEX_SYSTEM = 3,
    /* A path is not UTF-8, a pointer is null, or a length is impossible. */
    LFINDEX_ARGUMENT = 4,
    /* A fault of this library. */
    LFINDEX_FAULT = 5
} lfindex_status;

/* Why the last function that failed in this thread did so: one sentence, valid until the next one
 * fails; empty before the first. */
const char *lfindex_message(void);

/* The instruction set that queries use on this machine: "avx512", "avx2", "neon" or "scalar". */
const char *lfindex_instructions(void);

/* The functions for keys of the C type KEY, called NAME. */
#define LFINDEX_DECLARE(NAME, KEY)                                                                 \
    typedef struct lfindex_##NAME lfindex_##NAME;                                                  \
    typedef struct lfindex_##NAME##_iterator lfindex_##NAME##_iterator;                            \
    /* Builds from n sorted keys, which may be freed afterwards. */                                \
    lfindex_status lfindex_##NAME##_build(const KEY *keys, size_t n, lfindex_##NAME **index);      \
    /* Sorts a copy of the keys, then builds with this number of threads. */                       \
    lfindex_status lfindex_##NAME##_build_unsorted(const KEY *keys, size_t n, size_t threads,      \
                                                   lfindex_##NAME **index);                        \
    /* Reads an index file and checks it. */                                                       \
    lfindex_status lfindex_##NAME##_open(const char *path, lfindex_##NAME **index);                \
    /* Writes an index file, whole or not at all. */                                               \
    lfindex_status lfindex_##NAME##_save(const lfindex_##NAME *index, const char *path);           \
    /* Reads an index from the bytes of a file. */                                                 \
    lfindex_status lfindex_##NAME##_from_bytes(const void *bytes, size_t length,                   \
                                               lfindex_##NAME **index);                            \
    /* Frees an index; null is allowed. Its iterators must be freed before. */                     \
    void lfindex_##NAME##_free(lfindex_##NAME *index);                                             \
    /* Number of keys. */                                                                          \
    size_t lfindex_##NAME##_length(const lfindex_##NAME *index);                                   \
    /* Bytes of memory. */                                                                         \
    size_t lfindex_##NAME##_memory_bytes(const lfindex_##NAME *index);                             \
    /* The number of keys less than key. */                                                        \
    size_t lfindex_##NAME##_lower_bound(const lfindex_##NAME *index, KEY key);                     \
    /* The number of keys not greater than key. */                                                 \
    size_t lfindex_##NAME##_upper_bound(const lfindex_##NAME *index, KEY key);                     \
    /* Whether some key equals key. */                                                             \
    bool lfindex_##NAME##_contains(const lfindex_##NAME *index, KEY key);                          \
    /* ranks[i] becomes the number of keys less than keys[i]: a tenth of the time of single         \
     * queries. More than one thread pays from some 100,000 queries on. */                         \
    void lfindex_##NAME##_batch(const lfindex_##NAME *index, const KEY *keys, size_t *ranks,       \
                                size_t count, size_t threads);                                     \
    /* Copies the keys of the ranks first, first + 1, ... to keys, at most count of them; returns   \
     * how many there were. */                                                                     \
    size_t lfindex_##NAME##_read(const lfindex_##NAME *index, size_t first, KEY *keys,             \
                                 size_t count);                                                    \
    /* The keys of the ranks from first up to, and not including, end, from both ends. */          \
    lfindex_##NAME##_iterator *lfindex_##NAME##_iterate(const lfindex_##NAME *index, size_t first, \
                                                        size_t end);                               \
    /* The next key from the front; false when there is none. */                                   \
    bool lfindex_##NAME##_next(lfindex_##NAME##_iterator *iterator, KEY *key);                     \
    /* The next key from the back; false when there is none. */                                    \
    bool lfindex_##NAME##_next_back(lfindex_##NAME##_iterator *iterator, KEY *key);                \
    /* Frees an iterator; null is allowed. */                                                      \
    void lfindex_##NAME##_iterator_free(lfindex_##NAME##_iterator *iterator);                      \
    /* Copies at most size bytes of the plan in words, the last one a zero; returns how many bytes  \
     * all of it takes. */                                                                         \
    size_t lfindex_##NAME##_explain(const lfindex_##NAME *index, char *text, size_t size);

LFINDEX_DECLARE(u8, uint8_t)
LFINDEX_DECLARE(i8, int8_t)
LFINDEX_DECLARE(u16, uint16_t)
LFINDEX_DECLARE(i16, int16_t)
LFINDEX_DECLARE(u32, uint32_t)
LFINDEX_DECLARE(i32, int32_t)
LFINDEX_DECLARE(u64, uint64_t)
LFINDEX_DECLARE(i64, int64_t)
LFINDEX_DECLARE(f32, float)
LFINDEX_DECLARE(f64, double)

#ifdef __cplusplus
}
#endif

#endif
