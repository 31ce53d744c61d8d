// From places that a filter marked to a text of their lines alone, and from matching lines of that back to the whole text.
//
// Kernels run on any number of blocks of whole warps; what is said to take a warp takes the next one in turn.

#ifndef LF_HOST
typedef unsigned int u32;
typedef unsigned long long u64;
#define LF_DEVICE static __device__ __forceinline__
#define LF_KERNEL extern "C" __global__ void
#define LF_SHARED(type, name, length) __shared__ type name[length]
#endif

#define LF_ALL 0xffffffffu

// Sixteen words, as for programs.
struct Task {
    const unsigned char *text;
    u64 *bits;           // a bit per byte
    union {
        const u64 *more; // a bit per byte
        u32 *counts;     // one per segment
    };
    const u64 *places;   // of one bits, ascending
    u64 *firsts;         // the first byte of each place's line
    u64 *lengths;        // the bytes of each place's line, none where a place before it is in that line too; then where it begins in the new text
    u64 *sums;           // one per block, and behind them all
    unsigned char *bytes;
    u64 count;           // of places
    u64 words;           // of 64 bits
    u64 valid;           // bytes of text; the last one ends a line
    u64 terminator;
    u64 *total;
    u64 spare[3];
};

LF_DEVICE u64 lf_warp(void) { return ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32; }
LF_DEVICE u64 lf_warps(void) { return (u64)gridDim.x * blockDim.x / 32; }

// Where the line of each place begins, and its length; a warp per place, 512 bytes at a time. A place whose line holds one before it has length zero: the walk
// backwards ends there, so all walks together are no longer than the text.
LF_KERNEL lines(struct Task task) {
    u32 lane = threadIdx.x % 32, found;
    u64 place;
    for (place = lf_warp(); place < task.count; place += lf_warps()) {
        u64 at = task.places[place], start = 0, length = 0, end = at, from, mine, here;
        // A place on a terminator belongs to the line that it ends.
        u64 previous = place > 0 ? task.places[place - 1] + 1 : 0;
        int is_first = 1;
        while (end > 0) {
            from = end > 512 ? end - 512 : 0;
            mine = from + lane * 16;
            u64 behind = 0;
            for (here = mine; here < mine + 16 && here < end; ++here) {
                if (task.text[here] == task.terminator) behind = here + 1;
            }
            found = __ballot_sync(LF_ALL, behind != 0);
            if (found) {
                start = __shfl_sync(LF_ALL, behind, 31 - __clz((int)found));
                break;
            }
            end = from;
            if (previous > end) break;
        }
        // The place before is in this line where its own byte lies at the line's start or behind it.
        if (previous > start) is_first = 0;
        for (from = at; is_first && from < task.valid; from += 512) {
            u64 ends = ~0ull;
            mine = from + lane * 16;
            for (here = mine + 16; here-- > mine;) {
                if (here < task.valid && task.text[here] == task.terminator) ends = here;
            }
            found = __ballot_sync(LF_ALL, ends != ~0ull);
            if (found) {
                length = __shfl_sync(LF_ALL, ends, __ffs((int)found) - 1) + 1 - start;
                break;
            }
        }
        if (lane == 0) {
            task.firsts[place] = start;
            task.lengths[place] = length;
        }
    }
}

// The sum of `mine` over a block of 256 threads; every thread gets it.
LF_DEVICE u64 lf_block_sum(u64 *shared, u64 mine) {
    u32 by;
    for (by = 16; by > 0; by >>= 1) mine += __shfl_xor_sync(LF_ALL, mine, by);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = 0;
    for (by = 0; by < 8; ++by) mine += shared[by];
    return mine;
}

// The part of all places that a block has.
LF_DEVICE void lf_part(const struct Task *task, u64 *first, u64 *end) {
    u64 each = (task->count + gridDim.x - 1) / gridDim.x;
    *first = (u64)blockIdx.x * each;
    *end = *first + each < task->count ? *first + each : task->count;
}

// The sum of the lengths of each block's places; 256 threads.
LF_KERNEL sums(struct Task task) {
    LF_SHARED(u64, shared, 8);
    u64 first, end, mine = 0, at;
    lf_part(&task, &first, &end);
    for (at = first + threadIdx.x; at < end; at += 256) mine += task.lengths[at];
    mine = lf_block_sum(shared, mine);
    if (threadIdx.x == 0) task.sums[blockIdx.x] = mine;
}

// Where each line begins in the new text; 256 threads, at most 256 blocks, as many as for `sums`. The last place's end is the new text's length.
LF_KERNEL offsets(struct Task task) {
    LF_SHARED(u64, shared, 8);
    u64 first, end, at, mine = 0, next;
    u32 lane = threadIdx.x % 32, by;
    lf_part(&task, &first, &end);
    if (threadIdx.x < blockIdx.x) mine = task.sums[threadIdx.x];
    next = lf_block_sum(shared, mine);
    for (at = first; at < end; at += 256) {
        u64 length = at + threadIdx.x < end ? task.lengths[at + threadIdx.x] : 0, before = length, warps = 0;
        for (by = 1; by < 32; by <<= 1) {
            u64 other = __shfl_up_sync(LF_ALL, before, by);
            if (lane >= by) before += other;
        }
        __syncthreads();
        if (lane == 31) shared[threadIdx.x / 32] = before;
        __syncthreads();
        for (by = 0; by < threadIdx.x / 32; ++by) warps += shared[by];
        if (at + threadIdx.x < end) task.lengths[at + threadIdx.x] = next + warps + before - length;
        for (; by < 8; ++by) warps += shared[by];
        next += warps;
    }
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) {
        task.lengths[task.count] = next;
        *task.total = next;
    }
}

// The bytes of the lines, one behind the other; a warp per line.
LF_KERNEL gather(struct Task task) {
    u32 lane = threadIdx.x % 32;
    u64 place, at;
    for (place = lf_warp(); place < task.count; place += lf_warps()) {
        const unsigned char *from = task.text + task.firsts[place];
        u64 to = task.lengths[place], end = task.lengths[place + 1];
        for (at = lane; at < end - to; at += 32) task.bytes[to + at] = from[at];
    }
}

// The terminators of lines that match in the new text, as bits of the whole one; a thread per line.
LF_KERNEL scatter(struct Task task) {
    u64 place;
    for (place = (u64)blockIdx.x * blockDim.x + threadIdx.x; place < task.count; place += (u64)gridDim.x * blockDim.x) {
        u64 to = task.lengths[place], end = task.lengths[place + 1];
        if (end == to || !(task.more[(end - 1) / 64] >> ((end - 1) % 64) & 1)) continue;
        u64 at = task.firsts[place] + end - to - 1;
        atomicOr(&task.bits[at / 64], 1ull << (at % 64));
    }
}

// Bits of either kind.
LF_KERNEL unite(struct Task task) {
    u64 at;
    for (at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < task.words; at += (u64)gridDim.x * blockDim.x) {
        u64 more = task.more[at];
        if (more) task.bits[at] |= more;
    }
}

// How many bits of each segment are one, and of all; a warp per segment of 512 words.
LF_KERNEL tally(struct Task task) {
    u32 lane = threadIdx.x % 32, by;
    u64 segment, at;
    for (segment = lf_warp(); segment < task.count; segment += lf_warps()) {
        u64 end = (segment + 1) * 512 < task.words ? (segment + 1) * 512 : task.words, mine = 0;
        for (at = segment * 512 + lane; at < end; at += 32) mine += (u64)__popcll(task.bits[at]);
        for (by = 16; by > 0; by >>= 1) mine += __shfl_xor_sync(LF_ALL, mine, by);
        if (lane == 0) {
            task.counts[segment] = (u32)mine;
            if (mine) atomicAdd(task.total, mine);
        }
    }
}
