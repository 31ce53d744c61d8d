/* Generates two functions, runs them, and names them as a run-time compiler does:
   map  in /tmp/perf-PID.map
   dump in FOLDER/jit-PID.dump, which it maps as executable
   none not at all
   With `children`, two processes name the code at one address differently. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST = 0x100, SECOND = 0x200, BYTES = 11 };

static unsigned char *code;

/* mov eax, TIMES; again: dec eax; jne again; ret */
static void generate(int at, uint32_t times) {
  unsigned char bytes[BYTES] = {0xb8, 0, 0, 0, 0, 0xff, 0xc8, 0x75, 0xfc, 0xc3, 0x90};
  memcpy(bytes + 1, &times, sizeof times);
  memcpy(code + at, bytes, BYTES);
}

static void run(int at) { ((void (*)(void))(code + at))(); }

static void map(const char *first, const char *second) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  FILE *file = fopen(path, "w");
  fprintf(file, "%lx %x %s\n", (long)(code + FIRST), BYTES, first);
  fprintf(file, "0x%lx 0x%x %s\n", (long)(code + SECOND), BYTES, second);
  fclose(file);
}

static void put(FILE *file, const void *bytes, size_t count) { fwrite(bytes, 1, count, file); }

static void load(FILE *file, int at, const char *name) {
  uint32_t bytes = 16 + 40 + strlen(name) + 1 + BYTES, pid = getpid();
  uint64_t address = (uint64_t)(code + at);
  put(file, (uint32_t[]){0, bytes, 1, 0, pid, pid}, 24);
  put(file, (uint64_t[]){address, address, BYTES, 1}, 32);
  put(file, name, strlen(name) + 1);
  put(file, code + at, BYTES);
}

static void dump(const char *folder, const char *first, const char *second) {
  char path[4096];
  snprintf(path, sizeof path, "%s/jit-%d.dump", folder, getpid());
  FILE *file = fopen(path, "w+");
  put(file, (uint32_t[]){0x4a695444, 1, 40, 62, 0, getpid(), 0, 0, 0, 0}, 40);
  load(file, FIRST, first);
  load(file, SECOND, second);
  fflush(file);
  if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) == MAP_FAILED) exit(2);
  fclose(file);
}

int main(int count, char **arguments) {
  const char *way = count > 1 ? arguments[1] : "none";
  code = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (code == MAP_FAILED) return 2;
  if (!strcmp(way, "children")) {
    for (int child = 0; child < 2; child++) {
      if (fork() == 0) {
        generate(FIRST, child ? 30000 : 20000);
        run(FIRST);
        map(child ? "of the second" : "of the first", "unused");
        _exit(0);
      }
      wait(NULL);
    }
    return 0;
  }
  generate(FIRST, 1000000);
  generate(SECOND, 500000);
  if (!strcmp(way, "dump")) dump(arguments[2], "JS:*first a.js:1", "second");
  run(FIRST);
  run(SECOND);
  if (!strcmp(way, "map")) map("JS:*first a.js:1", "second");
  return 0;
}
