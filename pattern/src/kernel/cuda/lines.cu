// Kernels that no program is special to: positions and the bytes of matching lines.
//
// Shapes: `list` and `starts` run on any number of blocks of whole warps, `gather` on any number of blocks.

#ifndef LF_HOST
typedef unsigned int u32;
typedef unsigned long long u64;
#define LF_KERNEL extern "C" __global__ void
#endif

#define LF_ALL 0xffffffffu

// Sixteen words, as for programs.
struct Task {
    const unsigned char *text;
    const u64 *ends;     // a bit per byte
    u64 unused[3];
    const u64 *offsets;  // of each segment's first position, or of each line's first byte
    u64 *positions;      // of the terminators of matching lines
    u64 *firsts;         // of the first bytes of matching lines
    unsigned char *bytes;
    u64 segments;
    u64 segment_words;   // of 64 bits
    u64 words;
    u64 lines;
    u64 terminator;
    u64 base;            // what is added to positions
    u64 length;          // of the text without a terminator that was added
};

// Positions of one bits, a warp per segment.
LF_KERNEL list(struct Task task) {
    u64 segment = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    u32 lane = threadIdx.x % 32;
    if (segment >= task.segments) return;
    u64 first = segment * task.segment_words, next = task.offsets[segment];
    u64 end = first + task.segment_words < task.words ? first + task.segment_words : task.words;
    u64 from;
    for (from = first; from < end; from += 32) {
        u64 word = from + lane < end ? task.ends[from + lane] : 0;
        u32 mine = (u32)__popcll(word), before = mine, by;
        for (by = 1; by < 32; by <<= 1) {
            u32 other = __shfl_up_sync(LF_ALL, before, by);
            if (lane >= by) before += other;
        }
        u64 to = next + before - mine;
        for (; word; word &= word - 1) {
            task.positions[to++] = task.base + (from + lane) * 64 + (u64)__ffsll((long long)word) - 1;
        }
        next += __shfl_sync(LF_ALL, before, 31);
    }
}

// The first byte of each matching line, a warp per line: 512 bytes backwards at a time.
LF_KERNEL starts(struct Task task) {
    u64 line = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    u32 lane = threadIdx.x % 32;
    if (line >= task.lines) return;
    u64 end = task.positions[line], start = 0;
    while (end > 0) {
        u64 from = end > 512 ? end - 512 : 0;
        u64 mine = from + lane * 16, behind = 0, at;
        for (at = mine; at < mine + 16 && at < end; ++at) {
            if (task.text[at] == task.terminator) behind = at + 1;
        }
        u32 found = __ballot_sync(LF_ALL, behind != 0);
        if (found) {
            start = __shfl_sync(LF_ALL, behind, 31 - __clz((int)found));
            break;
        }
        end = from;
    }
    if (lane == 0) task.firsts[line] = start;
}

// The bytes of lines one behind the other, a block per line.
LF_KERNEL gather(struct Task task) {
    u64 line, at;
    for (line = blockIdx.x; line < task.lines; line += gridDim.x) {
        u64 start = task.firsts[line], end = task.positions[line] + 1;
        if (end > task.length) end = task.length;
        for (at = start + threadIdx.x; at < end; at += blockDim.x) {
            task.bytes[task.offsets[line] + at - start] = task.text[at];
        }
    }
}
