// A card that is none: the driver and the run-time compiler that `tests/cuda.rs` puts in place of NVIDIA's.
//
// The compiler hands the very text that would go to NVRTC to the host's C compiler; the driver runs its kernels with one fiber per thread. Warp and block operations are
// meetings: nobody goes on before all have come, and who meets at different operations, or never, ends the test. Work of streams is done as late as the
// rules permit: only when somebody waits for it. So what is missing a wait reads what is not there yet, and what is freed too early is noticed.
//
// Faults on demand, by definitions at compile time: NO_CARD, BAD_START, NO_MEMORY_FROM_BYTES, BAD_LAUNCH, BAD_COMPILER, OLD_DRIVER.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

typedef uint32_t u32;
typedef unsigned long long u64;

enum { BALLOT, ANY, SHUFFLE, SHUFFLE_UP, SHUFFLE_XOR, BARRIER, BARRIER_OR };

struct Dim { u32 x, y, z; };
struct Host {
    struct Dim thread, block, block_size, grid;
    u64 (*meet)(int kind, u64 value, u64 of);
    void *(*shared)(u64 bytes);
};
struct Task { u64 words[16]; };

// What kernels see of CUDA.
static const char PRELUDE[] =
    "#define LF_HOST 1\n"
    "typedef unsigned int u32; typedef unsigned long long u64;\n"
    "typedef struct { u32 x, y, z, w; } uint4;\ntypedef struct { u32 x, y; } uint2;\n"
    "struct Dim { u32 x, y, z; };\n"
    "struct Host { struct Dim thread, block, block_size, grid; u64 (*meet)(int, u64, u64); void *(*shared)(u64); };\n"
    "static struct Host *lf_host;\n"
    "void lf_begin(struct Host *host) { lf_host = host; }\n"
    "#define threadIdx (lf_host->thread)\n#define blockIdx (lf_host->block)\n"
    "#define blockDim (lf_host->block_size)\n#define gridDim (lf_host->grid)\n"
    "#define LF_DEVICE static inline\n#define LF_KERNEL void\n#define LF_BOUNDS\n#define LF_LOAD(pointer) (*(pointer))\n"
    "#define LF_SHARED(type, name, length) type *name = lf_host->shared((length) * sizeof(type))\n"
    "#define __ballot_sync(mask, value) ((u32)lf_host->meet(0, (value) != 0, 0))\n"
    "#define __any_sync(mask, value) ((int)lf_host->meet(1, (value) != 0, 0))\n"
    "#define __shfl_sync(mask, value, lane) (lf_host->meet(2, (value), (lane)))\n"
    "#define __shfl_up_sync(mask, value, by) (lf_host->meet(3, (value), (by)))\n"
    "#define __shfl_xor_sync(mask, value, by) (lf_host->meet(4, (value), (by)))\n"
    "#define __syncthreads() ((void)lf_host->meet(5, 0, 0))\n"
    "#define __syncthreads_or(value) ((int)lf_host->meet(6, (value) != 0, 0))\n"
    "#define __popcll(word) __builtin_popcountll(word)\n#define __ffs(word) __builtin_ffs(word)\n"
    "#define __ffsll(word) __builtin_ffsll(word)\n#define __clz(word) ((word) ? __builtin_clz(word) : 32)\n"
    "#define __clzll(word) ((word) ? __builtin_clzll(word) : 64)\n"
    "static inline u32 __funnelshift_l(u32 low, u32 high, u32 by) { return (u32)(((u64)high << 32 | low) << (by & 31) >> 32); }\n"
    "static inline u64 atomicAdd(u64 *to, u64 more) { u64 old = *to; *to += more; return old; }\n"
    "static inline u32 __funnelshift_r(u32 low, u32 high, u32 by) { return (u32)(((u64)high << 32 | low) >> (by & 31)); }\n"
    "static inline u64 atomicOr(u64 *to, u64 more) { u64 old = *to; *to |= more; return old; }\n"
    "#define LF_THREADS(threads)\n#define LF_SHARED_BY_LAUNCH(type, name, length) type *name = lf_host->shared((length) * sizeof(type))\n"
    "static inline u32 __byte_perm(u32 a, u32 b, u32 selector) {\n"
    "    u64 both = (u64)b << 32 | a; u32 out = 0; int at;\n"
    "    for (at = 0; at < 4; ++at) out |= (u32)(both >> (selector >> 4 * at & 7) * 8 & 255) << 8 * at;\n"
    "    return out;\n}\n"
    "#line 1 \"lowered\"\n";

static void die(const char *why) {
    fprintf(stderr, "emulated card: %s\n", why);
    abort();
}

// --- threads of a block

enum { MOST_THREADS = 1024, STACK_BYTES = 128 << 10 };

struct Group {
    u32 generation, arrived, expected;
    int kind[2];
    u64 value[2][MOST_THREADS];
};

struct Fiber {
    jmp_buf at;
    ucontext_t start;
    char *stack;
    int started, done;
};

static struct Fiber fibers[MOST_THREADS];
static struct Group warps[MOST_THREADS / 32], block;
static struct Host host;
static jmp_buf scheduler;
static u32 running, progress;
static void (*kernel)(struct Task);
static struct Task argument;
static u64 shared_memory[8192];

static void *shared(u64 bytes) {
    if (bytes > sizeof shared_memory) die("too much shared memory");
    return shared_memory;
}

static void yield_to_others(void) {
    u32 me = running;
    if (_setjmp(fibers[me].at) == 0) _longjmp(scheduler, 1);
    host.thread.x = me;
}

static u64 meet(int kind, u64 value, u64 of) {
    u32 me = running, index = kind >= BARRIER ? me : me % 32;
    struct Group *group = kind >= BARRIER ? &block : &warps[me / 32];
    u32 mine = group->generation, slot = mine & 1, at;
    u64 any = 0, ballot = 0;
    if (group->arrived == 0) group->kind[slot] = kind;
    if (group->kind[slot] != kind) die("threads meet at different operations");
    group->value[slot][index] = value;
    ++progress;
    if (++group->arrived == group->expected) {
        group->arrived = 0;
        ++group->generation;
    } else {
        while (group->generation == mine) yield_to_others();
    }
    for (at = 0; at < group->expected; ++at) {
        any |= group->value[slot][at];
        if (at < 32) ballot |= (group->value[slot][at] & 1) << at;
    }
    switch (kind) {
    case BALLOT: return ballot;
    case ANY: case BARRIER_OR: return any != 0;
    case SHUFFLE: return group->value[slot][of & 31];
    case SHUFFLE_UP: return group->value[slot][index >= of ? index - of : index];
    case SHUFFLE_XOR: return group->value[slot][(index ^ of) & 31];
    default: return 0;
    }
}

static void body(void) {
    host.thread.x = running;
    kernel(argument);
    fibers[running].done = 1;
    ++progress;
    _longjmp(scheduler, 1);
}

static void enter(u32 thread) {
    struct Fiber *fiber = &fibers[thread];
    running = thread;
    host.thread.x = thread;
    if (_setjmp(scheduler)) return;
    if (fiber->started) _longjmp(fiber->at, 1);
    fiber->started = 1;
    getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = fiber->stack;
    fiber->start.uc_stack.ss_size = STACK_BYTES;
    fiber->start.uc_link = NULL;
    makecontext(&fiber->start, body, 0);
    setcontext(&fiber->start);
}

static void run_block(u32 threads) {
    volatile u32 thread, left = threads;
    memset(warps, 0, sizeof warps);
    memset(&block, 0, sizeof block);
    memset(shared_memory, 0xa5, sizeof shared_memory);
    block.expected = threads;
    for (thread = 0; thread < threads; ++thread) {
        warps[thread / 32].expected = 32;
        fibers[thread].started = fibers[thread].done = 0;
        if (!fibers[thread].stack) fibers[thread].stack = malloc(STACK_BYTES);
    }
    while (left) {
        progress = 0;
        // Backwards, so that nobody profits from thread 0 coming first.
        for (thread = threads; thread-- > 0;) {
            if (fibers[thread].done) continue;
            enter(thread);
            if (fibers[thread].done) --left;
        }
        if (!progress) die("threads wait for each other");
    }
}

// --- streams: work is done when somebody waits for it

enum { COPY_IN, COPY_OUT, COPY_WITHIN, CLEAR, LAUNCH, WAIT };

struct Module { void *library; struct Host **ignored; };
struct Stream;
struct Work {
    int kind;
    char *to;
    const char *from;
    u64 bytes;
    void (*kernel)(struct Task);
    struct Task task;
    u32 blocks, threads;
    struct Stream *stream;
    u64 until;
    void (*begin)(struct Host *);
};
struct Stream { struct Work *work; u64 queued, done, room; int running; };
struct Event { struct Stream *stream; u64 until; };

static struct Stream *streams[64];
static u32 stream_count;

static void run_until(struct Stream *stream, u64 until);

static void perform(struct Work work) {
    u32 number;
    switch (work.kind) {
    case COPY_IN: case COPY_OUT: case COPY_WITHIN: memcpy(work.to, work.from, work.bytes); break;
    case CLEAR: memset(work.to, 0, work.bytes); break;
    case WAIT: run_until(work.stream, work.until); break;
    case LAUNCH:
        work.begin(&host);
        host.meet = meet;
        host.shared = shared;
        host.block_size.x = work.threads;
        host.grid.x = work.blocks;
        for (number = 0; number < work.blocks; ++number) {
            host.block.x = number;
            kernel = work.kernel;
            argument = work.task;
            run_block(work.threads);
        }
    }
}

static void run_until(struct Stream *stream, u64 until) {
    while (stream->done < until) perform(stream->work[stream->done++]);
}

static int queue(struct Stream *stream, struct Work work) {
    if (stream->queued == stream->room) {
        stream->room = stream->room ? 2 * stream->room : 64;
        stream->work = realloc(stream->work, stream->room * sizeof work);
    }
    stream->work[stream->queued++] = work;
    return 0;
}

static int within(u64 address, u64 start, u64 bytes) { return address >= start && address < start + bytes; }

// What is still to be done must not use memory that goes.
static void check_unused(u64 start, u64 bytes) {
    u32 number, word;
    u64 at;
    for (number = 0; number < stream_count; ++number) {
        for (at = streams[number]->done; at < streams[number]->queued; ++at) {
            struct Work *work = &streams[number]->work[at];
            if (work->kind <= CLEAR && (within((u64)work->to, start, bytes) || within((u64)work->from, start, bytes)))
                die("memory was freed that a copy still uses");
            for (word = 0; work->kind == LAUNCH && word < 16; ++word)
                if (within(work->task.words[word], start, bytes)) die("memory was freed that a kernel still uses");
        }
    }
}

// --- the driver

enum { NO_MEMORY = 2, NO_DEVICE = 100, UNKNOWN = 999 };

int cuInit(u32 flags) {
#if defined(NO_CARD)
    return NO_DEVICE;
#elif defined(BAD_START)
    return UNKNOWN;
#else
    return (int)flags;
#endif
}
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuGetErrorString(int status, const char **text) {
    *text = status == NO_MEMORY ? "out of memory" : status == UNKNOWN ? "unknown error" : NULL;
    return *text ? 0 : 1;
}
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetName(char *name, int bytes, int device) { snprintf(name, bytes, "emulated card %d", device); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    *value = which == 16 ? 2 : which == 75 ? 9 : which == 76 ? 0 : which == 97 ? (int)sizeof shared_memory : -1;
    return device;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1u << 30; return device; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &host; return device; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxSetCurrent(void *context) { return context != &host; }

int cuModuleLoadData(void **module, const void *image) {
    *module = dlopen(image, RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "%s\n", dlerror());
    return *module ? 0 : UNKNOWN;
}
int cuModuleUnload(void *module) { return dlclose(module); }
struct Function { void (*kernel)(struct Task); void (*begin)(struct Host *); };
int cuModuleGetFunction(void **function, void *module, const char *name) {
    struct Function *found = malloc(sizeof *found);
    found->kernel = (void (*)(struct Task))dlsym(module, name);
    found->begin = (void (*)(struct Host *))dlsym(module, "lf_begin");
    *function = found;
    return found->kernel && found->begin ? 0 : UNKNOWN;
}

struct Allocation { u64 start, bytes; } allocations[4096];
int cuMemAlloc_v2(u64 *address, size_t bytes) {
    u32 at;
#ifdef NO_MEMORY_FROM_BYTES
    if (bytes >= NO_MEMORY_FROM_BYTES) return NO_MEMORY;
#endif
    void *memory = NULL;
    if (posix_memalign(&memory, 256, bytes)) return NO_MEMORY;
    memset(memory, 0x5a, bytes);
    for (at = 0; at < 4096 && allocations[at].start; ++at) {}
    if (at == 4096) die("thousands of allocations");
    allocations[at] = (struct Allocation){ (u64)memory, bytes };
    *address = (u64)memory;
    return 0;
}
int cuMemFree_v2(u64 address) {
    u32 at;
    for (at = 0; at < 4096 && allocations[at].start != address; ++at) {}
    if (at == 4096) die("memory was freed that was not taken");
    check_unused(address, allocations[at].bytes);
    allocations[at].start = 0;
    memset((void *)address, 0xee, allocations[at].bytes);
    free((void *)address);
    return 0;
}
int cuMemAllocHost_v2(void **memory, size_t bytes) { return posix_memalign(memory, 4096, bytes + 16) ? NO_MEMORY : 0; }
int cuMemFreeHost(void *memory) { check_unused((u64)memory, 1); free(memory); return 0; }

int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t bytes, struct Stream *stream) {
    return queue(stream, (struct Work){ .kind = COPY_IN, .to = (char *)to, .from = from, .bytes = bytes });
}
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t bytes, struct Stream *stream) {
    return queue(stream, (struct Work){ .kind = COPY_OUT, .to = to, .from = (const char *)from, .bytes = bytes });
}
int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t bytes, struct Stream *stream) {
    return queue(stream, (struct Work){ .kind = COPY_WITHIN, .to = (char *)to, .from = (const char *)from, .bytes = bytes });
}
int cuMemsetD8Async(u64 to, unsigned char value, size_t bytes, struct Stream *stream) {
    return value + queue(stream, (struct Work){ .kind = CLEAR, .to = (char *)to, .bytes = bytes });
}
int cuStreamCreate(struct Stream **stream, u32 flags) {
    *stream = calloc(1, sizeof **stream);
    if (stream_count == 64) die("too many streams");
    streams[stream_count++] = *stream;
    return flags > 1;
}
int cuStreamDestroy_v2(struct Stream *stream) {
    u32 at = 0;
    run_until(stream, stream->queued);
    while (streams[at] != stream) ++at;
    streams[at] = streams[--stream_count];
    return 0;
}
int cuStreamSynchronize(struct Stream *stream) { run_until(stream, stream->queued); return 0; }
int cuStreamWaitEvent(struct Stream *stream, struct Event *event, u32 flags) {
    if (!event->stream) return 0;
    return (int)flags + queue(stream, (struct Work){ .kind = WAIT, .stream = event->stream, .until = event->until });
}
int cuEventCreate(struct Event **event, u32 flags) { *event = calloc(1, sizeof **event); return (int)flags; }
int cuEventDestroy_v2(struct Event *event) { free(event); return 0; }
int cuEventRecord(struct Event *event, struct Stream *stream) {
    event->stream = stream;
    event->until = stream->queued;
    return 0;
}
int cuEventSynchronize(struct Event *event) {
    if (event->stream) run_until(event->stream, event->until);
    return 0;
}
int cuEventElapsedTime(float *milliseconds, struct Event *from, struct Event *to) {
    *milliseconds = 1;
    return !(from->stream && to->stream);
}
int cuFuncSetAttribute(struct Function *function, int which, int value) {
    return which == 8 && value >= 0 && (size_t)value <= sizeof shared_memory ? 0 : !function + 1;
}
#ifndef OLD_DRIVER
int cuLaunchKernel(struct Function *function, u32 x, u32 y, u32 z, u32 threads, u32 threads_y, u32 threads_z, u32 dynamic,
                   struct Stream *stream, void **arguments, void **extra) {
#ifdef BAD_LAUNCH
    return UNKNOWN;
#endif
    if (y != 1 || z != 1 || threads_y != 1 || threads_z != 1 || dynamic > sizeof shared_memory || extra || threads > MOST_THREADS) return UNKNOWN;
    return queue(stream, (struct Work){ .kind = LAUNCH, .kernel = function->kernel, .begin = function->begin, .blocks = x,
                                        .threads = threads, .task = *(struct Task *)arguments[0] });
}
#endif

// --- the compiler

struct Program { char *source; char path[4096], log[4096]; };

int nvrtcVersion(int *major, int *minor) { *major = 12; *minor = 8; return 0; }
int nvrtcGetNumSupportedArchs(int *count) { *count = 2; return 0; }
int nvrtcGetSupportedArchs(int *all) { all[0] = 80; all[1] = 90; return 0; }
int nvrtcCreateProgram(struct Program **program, const char *source, const char *name, int headers, const char **h, const char **n) {
    *program = calloc(1, sizeof **program);
    (*program)->source = strdup(source);
    return !name || headers || h || n;
}
int nvrtcCompileProgram(struct Program *program, int count, const char **options) {
    static u32 number;
    char command[5 * sizeof program->path], from[sizeof program->path + 8], said[sizeof program->path + 8];
    if (count < 1 || strcmp(options[0], "--gpu-architecture=sm_90")) return 5;
#ifdef BAD_COMPILER
    strcpy(program->log, "pattern.cu(1): error: it is Monday\n");
    return 6;
#endif
    snprintf(program->path, sizeof program->path, "%s/kernel-%d-%p-%u.so", FOLDER, (int)getpid(), (void *)program, number++);
    snprintf(from, sizeof from, "%s.c", program->path);
    snprintf(said, sizeof said, "%s.log", program->path);
    FILE *file = fopen(from, "w");
    if (!file) return 1;
    fputs(PRELUDE, file);
    fputs(program->source, file);
    fclose(file);
    snprintf(command, sizeof command, "cc -std=gnu11 %s -shared -fPIC -w -o '%s' '%s' 2>'%s'", OPTIMISE, program->path, from, said);
    int status = system(command);
    file = fopen(said, "r");
    if (file) {
        program->log[fread(program->log, 1, sizeof program->log - 1, file)] = 0;
        fclose(file);
    }
    unlink(said);
    if (status == 0) unlink(from);
    return status ? 6 : 0;
}
int nvrtcGetProgramLogSize(struct Program *program, size_t *bytes) { *bytes = strlen(program->log) + 1; return 0; }
int nvrtcGetProgramLog(struct Program *program, char *log) { strcpy(log, program->log); return 0; }
int nvrtcGetCUBINSize(struct Program *program, size_t *bytes) { *bytes = strlen(program->path) + 1; return 0; }
int nvrtcGetCUBIN(struct Program *program, char *image) { strcpy(image, program->path); return 0; }
int nvrtcGetPTXSize(struct Program *program, size_t *bytes) { *bytes = 0; return 1 + !program; }
int nvrtcGetPTX(struct Program *program, char *image) { return 1 + !program + !image; }
int nvrtcDestroyProgram(struct Program **program) {
    free((*program)->source);
    free(*program);
    *program = NULL;
    return 0;
}
