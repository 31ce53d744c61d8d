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
        u32 *counts;     // one per segment of 512 words
    };
    const u64 *places;   // of one bits, ascending
    u64 *firsts;         // the first byte of each place's line
    u64 *lengths;        // the bytes of each place's line, none where a place before it is in that line too; then where it begins in the new text
    u64 *sums;           // one per block, and behind them all
    unsigned char *bytes;
    u64 count;           // of places, or of segments
    u64 words;           // of 64 bits
    u64 valid;           // bytes of text; the last one ends a line
    u64 terminator;
    u64 *total;
    u64 *far;            // words whose last line ends far behind them; room for one in 64
    u64 *far_count;
    const u32 *some;     // one per segment: how many bits of `more` it has
};

LF_DEVICE u64 lf_warp(void) { return ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32; }
LF_DEVICE u64 lf_warps(void) { return (u64)gridDim.x * blockDim.x / 32; }

// The highest bit of each byte of eight that is a terminator.
LF_DEVICE u64 lf_terminators(const struct Task *task, u64 word) {
    const u64 low = 0x7f7f7f7f7f7f7f7full;
    u64 x = ((const u64 *)task->text)[word] ^ task->terminator * 0x0101010101010101ull;
    return ~(((x & low) + low) | x | low);
}

// Bytes that a thread looks at alone.
#define LF_NEAR_WORDS 32

// Where the line of byte `at` begins, if that is not far before it and not before `previous`; else all ones.
LF_DEVICE u64 lf_line_start(const struct Task *task, u64 at) {
    u64 word = at / 8, ends = lf_terminators(task, word) & ~(~0ull << (at % 8 * 8));
    u32 step;
    for (step = 0; step < LF_NEAR_WORDS; ++step) {
        if (ends) return word * 8 + 8 - (u32)__clzll((long long)ends) / 8;
        if (word == 0) return 0;
        ends = lf_terminators(task, --word);
    }
    return ~0ull;
}

// The terminator of the line of byte `at`, if that is not far behind it; else all ones.
LF_DEVICE u64 lf_line_end(const struct Task *task, u64 at) {
    u64 word = at / 8, ends = lf_terminators(task, word) & ~0ull << (at % 8 * 8);
    u32 step;
    for (step = 0; step < LF_NEAR_WORDS && word * 8 < task->valid; ++step) {
        if (ends) return word * 8 + ((u32)__ffsll((long long)ends) - 1) / 8;
        ends = lf_terminators(task, ++word);
    }
    return ~0ull;
}

// The same by a warp, however far, but not before `stop`.
LF_DEVICE u64 lf_far_start(const struct Task *task, u64 at, u64 stop) {
    u64 end = (at + 7) / 8, first;
    u32 lane = threadIdx.x % 32, found;
    for (; end > 0; end = first) {
        first = end > 32 ? end - 32 : 0;
        u64 word = first + lane, ends = word < end ? lf_terminators(task, word) : 0;
        if (word == at / 8) ends &= ~(~0ull << (at % 8 * 8));
        found = __ballot_sync(LF_ALL, ends != 0);
        if (found) return __shfl_sync(LF_ALL, word * 8 + 8 - (u32)__clzll((long long)ends) / 8, 31 - __clz((int)found));
        if (first * 8 < stop) break;
    }
    return 0;
}

LF_DEVICE u64 lf_far_end(const struct Task *task, u64 at) {
    u64 first;
    u32 lane = threadIdx.x % 32, found;
    for (first = at / 8; first * 8 < task->valid; first += 32) {
        u64 word = first + lane, ends = word * 8 < task->valid ? lf_terminators(task, word) : 0;
        if (word == at / 8) ends &= ~0ull << (at % 8 * 8);
        found = __ballot_sync(LF_ALL, ends != 0);
        if (found) return __shfl_sync(LF_ALL, word * 8 + ((u32)__ffsll((long long)ends) - 1) / 8, __ffs((int)found) - 1);
    }
    return task->valid - 1;
}

// Where the line of each place begins, and its length; a thread per place, and a warp where lines are long. A place whose line holds one before it has
// length zero: a walk backwards ends at that one, so all walks together are no longer than the text.
LF_KERNEL lines(struct Task task) {
    u32 lane = threadIdx.x % 32, unknown, one;
    u64 from;
    for (from = lf_warp() * 32; from < task.count; from += lf_warps() * 32) {
        u64 place = from + lane, at = 0, previous = 0, start = 0, end = 0;
        int is_there = place < task.count;
        if (is_there) {
            at = task.places[place];
            // Behind the place before this one: it is in the same line exactly if that begins before here.
            previous = place > 0 ? task.places[place - 1] + 1 : 0;
            start = lf_line_start(&task, at);
        }
        for (unknown = __ballot_sync(LF_ALL, start == ~0ull); unknown; unknown &= unknown - 1) {
            one = (u32)__ffs((int)unknown) - 1;
            u64 found = lf_far_start(&task, __shfl_sync(LF_ALL, at, one), __shfl_sync(LF_ALL, previous, one));
            if (lane == one) start = found;
        }
        int is_first = is_there && previous <= start;
        if (is_first) end = lf_line_end(&task, at);
        for (unknown = __ballot_sync(LF_ALL, end == ~0ull); unknown; unknown &= unknown - 1) {
            one = (u32)__ffs((int)unknown) - 1;
            u64 found = lf_far_end(&task, __shfl_sync(LF_ALL, at, one));
            if (lane == one) end = found;
        }
        if (is_there) {
            task.firsts[place] = start;
            task.lengths[place] = is_first ? end + 1 - start : 0;
        }
    }
}

// The terminators of the bytes that a word of 64 has.
LF_DEVICE u64 lf_word_ends(const struct Task *task, u64 word) {
    u64 ends = 0;
    u32 at;
    if (word * 64 >= task->valid) return 0;
    // The flags of eight bytes become eight bits by one multiplication.
    for (at = 0; at < 8; ++at) ends |= (lf_terminators(task, word * 8 + at) >> 7) * 0x0102040810204080ull >> 56 << (8 * at);
    return ends;
}

LF_DEVICE void lf_set(const struct Task *task, u64 word, u64 bits) {
    if (bits) atomicOr(&task->bits[word], bits);
}

// The terminators of lines that hold one of some bits; a warp per segment, a thread per word. A line that goes on behind its word is followed for some
// words: up to its end, or to a word with bits of its own, whose thread goes on. Words whose lines go on after that are left to `far_ends`.
LF_KERNEL ends(struct Task task) {
    u32 lane = threadIdx.x % 32, step;
    u64 segment, at;
    for (segment = lf_warp(); segment < task.count; segment += lf_warps()) {
        if (task.some[segment] == 0) continue;
        u64 end = (segment + 1) * 512 < task.words ? (segment + 1) * 512 : task.words;
        for (at = segment * 512 + lane; at < end; at += 32) {
            u64 more = task.more[at], stops, others, sum;
            if (!more) continue;
            stops = lf_word_ends(&task, at);
            others = ~stops;
            // An addition carries each bit to the end of its line, or out of the word.
            sum = (more & others) + others;
            lf_set(&task, at, (sum | more) & stops);
            if (sum >= others) continue;
            for (step = 1; step <= LF_NEAR_WORDS; ++step) {
                stops = lf_word_ends(&task, at + step);
                if (stops) lf_set(&task, at + step, stops & (0 - stops));
                if (stops || at + step >= task.words || task.more[at + step]) break;
            }
            if (step > LF_NEAR_WORDS) task.far[atomicAdd(task.far_count, 1ull)] = at + LF_NEAR_WORDS;
        }
    }
}

// The ends of lines that go on behind some words; a warp per word.
LF_KERNEL far_ends(struct Task task) {
    u32 lane = threadIdx.x % 32, found;
    u64 number, first;
    for (number = lf_warp(); number < *task.far_count; number += lf_warps()) {
        for (first = task.far[number] + 1; first < task.words; first += 32) {
            u64 word = first + lane, stops = 0, more = 0;
            if (word < task.words) {
                stops = lf_word_ends(&task, word);
                more = task.more[word];
            }
            found = __ballot_sync(LF_ALL, stops != 0 || more != 0);
            if (!found) continue;
            if (lane == (u32)__ffs((int)found) - 1 && stops) lf_set(&task, word, stops & (0 - stops));
            break;
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
