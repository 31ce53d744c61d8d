/* Calls every function of the header for one type of keys. tests/c.rs compiles this for each type
 * with NAME, KEY and FLOATING defined, and runs it with a folder that it may write to. */
#include "lightfoot_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN2(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN2(a, b, c)
#define INDEX JOIN(lfindex_, NAME, )
#define CALL(function) JOIN(lfindex_, NAME, function)

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, lfindex_message()); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

enum { KEYS = 5000, QUERIES = 300 };

static size_t below(const KEY *keys, KEY query, bool or_equal) {
    size_t count = 0;
    for (size_t i = 0; i < KEYS; i++)
        count += or_equal ? keys[i] <= query : keys[i] < query;
    return count;
}

static void check_index(const INDEX *index, const KEY *keys) {
    static KEY queries[QUERIES], copy[KEYS + 1];
    static size_t ranks[QUERIES];
    CHECK(CALL(_length)(index) == KEYS);
    CHECK(CALL(_memory_bytes)(index) > 0);
    for (size_t i = 0; i < QUERIES; i++) {
        queries[i] = (KEY)((int)(i * 37 % 200) - (((KEY)-1) < 0 ? 100 : 0));
        size_t lower = below(keys, queries[i], false), upper = below(keys, queries[i], true);
        CHECK(CALL(_lower_bound)(index, queries[i]) == lower);
        CHECK(CALL(_upper_bound)(index, queries[i]) == upper);
        CHECK(CALL(_contains)(index, queries[i]) == (lower < upper));
    }
    for (size_t threads = 0; threads < 3; threads++) {
        memset(ranks, 255, sizeof ranks);
        CALL(_batch)(index, queries, ranks, QUERIES, threads);
        for (size_t i = 0; i < QUERIES; i++)
            CHECK(ranks[i] == below(keys, queries[i], false));
    }
    CALL(_batch)(index, NULL, NULL, 0, 1);
    CHECK(CALL(_read)(index, 0, copy, KEYS + 1) == KEYS);
    CHECK(memcmp(copy, keys, sizeof(KEY) * KEYS) == 0);
    CHECK(CALL(_read)(index, KEYS - 2, copy, 9) == 2 && copy[1] == keys[KEYS - 1]);
    CHECK(CALL(_read)(index, (size_t)-1, copy, 9) == 0);

    CALL(_iterator) *iterator = CALL(_iterate)(index, 1, (size_t)-1);
    KEY key;
    size_t front = 1, back = KEYS;
    while (front < back) {
        CHECK(CALL(_next)(iterator, &key) && key == keys[front++]);
        if (front < back)
            CHECK(CALL(_next_back)(iterator, &key) && key == keys[--back]);
    }
    CHECK(!CALL(_next)(iterator, &key) && !CALL(_next_back)(iterator, &key));
    CALL(_iterator_free)(iterator);
    CALL(_iterator_free)(NULL);

    char text[400], little[5];
    size_t length = CALL(_explain)(index, text, sizeof text);
    CHECK(strlen(text) < sizeof text && strstr(text, "layout") == text);
    CHECK(CALL(_explain)(index, little, sizeof little) == length && strlen(little) == 4);
    CHECK(CALL(_explain)(index, NULL, 0) == length);
}

int main(int count, char **arguments) {
    static KEY keys[KEYS], mixed[KEYS];
    CHECK(count == 2);
    for (size_t i = 0; i < KEYS; i++)
        keys[i] = (KEY)((int)(i * 100 / KEYS) - (((KEY)-1) < 0 ? 50 : 0));
    for (size_t i = 0; i < KEYS; i++)
        mixed[i] = keys[i * 7 % KEYS];

    INDEX *index = NULL, *other = NULL;
    CHECK(CALL(_build)(keys, KEYS, &index) == LFINDEX_OK);
    check_index(index, keys);
    CHECK(CALL(_build_unsorted)(mixed, KEYS, 2, &other) == LFINDEX_OK);
    check_index(other, keys);
    CALL(_free)(other);

    /* Files, and bytes of files. */
    char path[1000];
    static char bytes[1 << 20];
    snprintf(path, sizeof path, "%s/index", arguments[1]);
    CHECK(CALL(_save)(index, path) == LFINDEX_OK);
    CHECK(CALL(_open)(path, &other) == LFINDEX_OK);
    check_index(other, keys);
    CALL(_free)(other);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(CALL(_from_bytes)(bytes, length, &other) == LFINDEX_OK);
    check_index(other, keys);
    CALL(_free)(other);

    /* Every failure has its status and its sentence, and leaves no index. */
    bytes[length / 2] ^= 1;
    other = index;
    CHECK(CALL(_from_bytes)(bytes, length, &other) == LFINDEX_DAMAGED && other == NULL);
    CHECK(strstr(lfindex_message(), "checksum") != NULL);
    CHECK(CALL(_build)(mixed, KEYS, &other) == LFINDEX_UNSORTED && other == NULL);
    CHECK(strstr(lfindex_message(), "not sorted") != NULL);
    CHECK(CALL(_open)("/nowhere/at/all", &other) == LFINDEX_SYSTEM && other == NULL);
    CHECK(CALL(_save)(index, "/nowhere/at/all") == LFINDEX_SYSTEM);
    CHECK(CALL(_open)("\xff", &other) == LFINDEX_ARGUMENT && other == NULL);
    CHECK(CALL(_open)(NULL, &other) == LFINDEX_ARGUMENT);
    CHECK(CALL(_build)(keys, KEYS, NULL) == LFINDEX_ARGUMENT);
    CHECK(CALL(_build)(keys, (size_t)-1, &other) == (sizeof(KEY) > 0 ? LFINDEX_ARGUMENT : 0));

    /* No keys. */
    CHECK(CALL(_build)(NULL, 0, &other) == LFINDEX_OK);
    CHECK(CALL(_length)(other) == 0 && CALL(_lower_bound)(other, keys[3]) == 0);
    CALL(_free)(other);
    CALL(_free)(NULL);
    CALL(_free)(index);
    printf("%s agrees\n", lfindex_instructions());
    return 0;
}
