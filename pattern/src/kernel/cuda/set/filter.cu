// The filter of a set: places where a match of any of its patterns may be, by four bytes in a row. `table.rs` puts in front of it how large the table is.
//
// A warp takes a segment and goes through it 2,048 bytes at a step, 64 a lane. Every four bytes that end in a step are looked for in a table of bits in
// shared memory, which the warps of a block share; what that lets through, in a table of fours. Nothing is carried from step to step but the last word
// of the one before.

#ifndef LF_HOST
typedef unsigned int u32;
typedef unsigned long long u64;
#define LF_DEVICE static __device__ __forceinline__
#define LF_KERNEL extern "C" __global__ void
#define LF_SHARED_BY_LAUNCH(type, name, length) extern __shared__ type name[]
#define LF_LOAD(pointer) __ldg(pointer)
#define LF_THREADS(threads) __launch_bounds__(threads)
#endif

#define LF_ALL 0xffffffffu
#define LF_TABLE_WORDS (1u << LF_TABLE_LOG)

// Sixteen words, as for programs.
struct Task {
    const uint4 *text;     // padded behind its end by at least two steps
    u64 *hits;             // a bit per byte: whether a four ends here that stands in the text of a row
    u64 *matches;          // a bit per byte: whether a four ends here that stands in a match
    u32 *counts;           // one per segment, of hits; then as many of matches
    const u32 *table;      // of bits
    const uint4 *buckets;  // of fours
    const uint2 *lists;    // one for each place of a bucket
    const u32 *owners;     // numbers of rows
    const u32 *rows;       // LF_ROW_WORDS each
    const u32 *sets;       // eight each
    u64 *total;            // of hits and of matches; zero before
    u64 valid;             // bytes of text
    u64 steps;             // of 2,048 bytes
    u64 segment_steps;
    u64 segments;
    u64 terminator;
};

// Whether the four may be one of the set, in the lowest bit.
LF_DEVICE u32 lf_may_be(const u32 *table, u32 four) {
    u32 word = table[four * LF_MULTIPLIER >> (32 - LF_TABLE_LOG)];
    return __funnelshift_r(word, word, four) & 1;
}

// One bit for each byte of four words, the first byte's lowest; `before` stands before them. From the last byte to the first, so that bits move up.
LF_DEVICE u32 lf_sixteen(const u32 *table, u32 before, uint4 of, u32 bits) {
    u32 words[5] = {before, of.x, of.y, of.z, of.w};
    int at;
#pragma unroll
    for (at = 4; at > 0; --at) {
        u32 low = words[at - 1], high = words[at];
        bits = bits << 1 | lf_may_be(table, high);
        bits = bits << 1 | lf_may_be(table, __funnelshift_r(low, high, 24));
        bits = bits << 1 | lf_may_be(table, __funnelshift_r(low, high, 16));
        bits = bits << 1 | lf_may_be(table, __funnelshift_r(low, high, 8));
    }
    return bits;
}

// What stands around a four that ends at a byte of the text: 0 for nothing, 1 for the text of a row, 2 for a match.
LF_DEVICE u32 lf_row(const struct Task *task, uint2 list, u64 byte) {
    const unsigned char *text = (const unsigned char *)task->text;
    u32 found = 0, owner, at;
    for (owner = list.x; owner < list.y && found < 2; ++owner) {
        const u32 *row = task->rows + LF_LOAD(task->owners + owner) * LF_ROW_WORDS;
        u32 last = LF_LOAD(row), length = LF_LOAD(row + 1);
        if (byte < last || byte - last + length > task->valid) continue;
        for (at = 0; at < length; ++at) {
            u32 letter = LF_LOAD(text + byte - last + at);
            if (!(LF_LOAD(task->sets + 8 * LF_LOAD(row + 3 + at) + letter / 32) >> letter % 32 & 1)) break;
        }
        if (at == length && LF_LOAD(row + 2) + 1 > found) found = LF_LOAD(row + 2) + 1;
    }
    return found;
}

// Of a lane's marked bytes those at which a four of the set ends, in the text of a row, and of these the matches. `words` are the lane's 64 bytes in
// memory, which begin at `byte`, `before` stands before them.
LF_DEVICE u64 lf_of_the_set(const struct Task *task, const u32 *words, u64 byte, u32 before, u64 hits, u64 *matches) {
    u64 left;
    for (left = hits; left; left &= left - 1) {
        u32 at = (u32)__ffsll((long long)left) - 1, place, found = 0;
        u32 low = at < 4 ? before : LF_LOAD(words + at / 4 - 1), high = LF_LOAD(words + at / 4);
        u32 four = at % 4 == 3 ? high : __funnelshift_r(low, high, 8 * (at % 4 + 1));
        u32 bucket = four * LF_MULTIPLIER >> (32 - LF_BUCKETS_LOG);
        uint4 fours = LF_LOAD(task->buckets + bucket);
        place = fours.x == four ? 0 : fours.y == four ? 1 : fours.z == four ? 2 : fours.w == four ? 3 : 4;
        if (place < 4) found = lf_row(task, LF_LOAD(task->lists + bucket * 4 + place), byte + at);
        if (found != 1) hits ^= left & (0 - left);
        if (found == 2) *matches |= left & (0 - left);
    }
    return hits;
}

// The warp's sum.
LF_DEVICE u32 lf_warp_sum(u32 mine) {
    u32 by;
    for (by = 16; by > 0; by >>= 1) mine += __shfl_xor_sync(LF_ALL, mine, by);
    return mine;
}

LF_KERNEL LF_THREADS(1024) filter(struct Task task) {
    LF_SHARED_BY_LAUNCH(u32, table, LF_TABLE_WORDS);
    u32 lane = threadIdx.x % 32, at;
    for (at = threadIdx.x; at < LF_TABLE_WORDS; at += blockDim.x) table[at] = task.table[at];
    __syncthreads();
    u32 warps = gridDim.x * (blockDim.x / 32), first = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, segment;
    u64 all_hits = 0, all_matches = 0;
    for (segment = first; segment < (u32)task.segments; segment += warps) {
        u64 step = (u64)segment * task.segment_steps, end = step + task.segment_steps;
        const uint4 *from = task.text + (step * 32 + lane) * 4;
        u32 last = (u32)task.terminator * 0x01010101u, hit_count = 0, match_count = 0;
        if (end > task.steps) end = task.steps;
        if (step > 0) last = LF_LOAD((const u32 *)(task.text + step * 128) - 1);
        uint4 a = LF_LOAD(from), b = LF_LOAD(from + 1), c = LF_LOAD(from + 2), d = LF_LOAD(from + 3);
        for (; step < end; ++step) {
            u32 turned = __shfl_sync(LF_ALL, d.w, (lane + 31) & 31);
            u32 before = lane == 0 ? last : turned;
            uint4 e = a, f = b, g = c, h = d;
            last = turned;
            // The next step's bytes are on their way while this one's are looked for.
            from += 128;
            a = LF_LOAD(from), b = LF_LOAD(from + 1), c = LF_LOAD(from + 2), d = LF_LOAD(from + 3);
            u32 low = lf_sixteen(table, before, e, lf_sixteen(table, e.w, f, 0));
            u32 high = lf_sixteen(table, f.w, g, lf_sixteen(table, g.w, h, 0));
            u64 hits = (u64)high << 32 | low, matches = 0, byte = step * 2048 + lane * 64;
            if (step == task.steps - 1) {
                u64 valid = byte >= task.valid ? 0 : task.valid - byte;
                if (valid < 64) hits &= (1ull << valid) - 1;
            }
            if (hits) hits = lf_of_the_set(&task, (const u32 *)(from - 128), byte, before, hits, &matches);
            task.hits[step * 32 + lane] = hits;
            task.matches[step * 32 + lane] = matches;
            hit_count += (u32)__popcll(hits);
            match_count += (u32)__popcll(matches);
        }
        hit_count = lf_warp_sum(hit_count);
        match_count = lf_warp_sum(match_count);
        all_hits += hit_count;
        all_matches += match_count;
        if (lane == 0) {
            task.counts[segment] = hit_count;
            task.counts[task.segments + segment] = match_count;
        }
    }
    if (lane == 0 && all_hits) atomicAdd(task.total, all_hits);
    if (lane == 0 && all_matches) atomicAdd(task.total + 1, all_matches);
}
