/* Counts the lines of a file that match a pattern, with Vectorscan (or Hyperscan): a contender of
 * the study of regular expressions. The library reports every match end; a line counts once.
 * usage: vectorscan PATTERN FILE */
#include <fcntl.h>
#include <hs/hs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct lines {
    const char *text;
    unsigned long long length, line_end, count;
};

static int found(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *context)
{
    struct lines *lines = context;
    (void)id, (void)from, (void)flags;
    if (to <= lines->line_end && lines->count > 0)
        return 0;
    const char *end = memchr(lines->text + to, '\n', lines->length - to);
    lines->line_end = end ? (unsigned long long)(end - lines->text) : lines->length;
    lines->count++;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int file = open(argv[2], O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0 || status.st_size == 0)
        return 3;
    char *text = mmap(0, status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (text == MAP_FAILED)
        return 3;
    hs_database_t *database;
    hs_compile_error_t *error;
    if (hs_compile(argv[1], HS_FLAG_MULTILINE, HS_MODE_BLOCK, 0, &database, &error) != HS_SUCCESS) {
        fprintf(stderr, "%s\n", error->message);
        return 4;
    }
    hs_scratch_t *scratch = 0;
    if (hs_alloc_scratch(database, &scratch) != HS_SUCCESS)
        return 5;
    struct lines lines = {text, status.st_size, 0, 0};
    if (hs_scan(database, text, status.st_size, 0, scratch, found, &lines) != HS_SUCCESS)
        return 6;
    printf("%llu\n", lines.count);
    return 0;
}
