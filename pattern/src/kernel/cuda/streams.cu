// The device side that every program shares; `lower.rs` writes what is special to one between the two parts of this file.
//
// A group of LF_WARPS warps computes one step of LF_STEP_BYTES bytes: each lane owns 64 bytes, which it transposes in its registers into eight words of
// 64 bits. What moves along the text goes from lane to lane: an advance by one shuffle; an addition by two ballots, from whose masks MatchStar
// decides which lanes are incremented (Cameron et al. 2014, section 3). With several warps each is one digit of a second level, in shared memory.
// A group runs through its segment of the text step by step; carries stay in registers.
//
// The text is in the subset that C and CUDA C++ share, so that a host compiler can run it, lane by lane, without a card.

#ifndef LF_HOST
typedef unsigned int u32;
typedef unsigned long long u64;
#define LF_DEVICE static __device__ __forceinline__
#define LF_KERNEL extern "C" __global__ void
#define LF_SHARED(type, name, length) __shared__ type name[length]
#define LF_LOAD(pointer) __ldg(pointer)
#define LF_BOUNDS __launch_bounds__(LF_GROUP)
#endif

#define LF_ALL 0xffffffffu
#define LF_LANES 32u
#define LF_GROUP (LF_LANES * LF_WARPS)
#define LF_STEP_BYTES (64u * LF_GROUP)

// All kernels take this one argument, sixteen words.
struct Task {
    const uint4 *text;   // padded behind its end by at least two steps
    u64 *ends;           // a bit per byte, or nothing
    u32 *counts;         // one per segment
    u32 *certain;        // one per segment: whether what it assumed to receive cannot matter
    u64 *guesses;        // LF_STATE words per segment: what it assumed to receive
    u64 *states;         // LF_STATE words per segment: what it hands on
    const u64 *received; // what the first segment receives, or nothing
    u64 *total;          // matching lines; segments that are not certain; both zero before
    u64 valid;           // bytes of text, a terminator added at its end included
    u64 steps;           // steps of LF_STEP_BYTES
    u64 segment_steps;
    u64 segments;
    const u64 *row_ends; // a bit per byte that is the last one of a row, for programs about rows
    u64 spare[3];
};

// Where a thread stands.
struct Place {
    u32 thread;          // in the group
    u32 lane;
    u32 warp;
    u32 turn;
    u64 *shared;         // two rows of LF_WARPS words, which take turns so that one barrier per exchange is enough
};

LF_DEVICE u64 lf_match_star_mask(u64 markers, u64 class_mask) {
    return (((markers & class_mask) + class_mask) ^ class_mask) | markers;
}

// A block is a group.
LF_DEVICE struct Place lf_place(u64 *shared) {
    struct Place at;
    at.thread = threadIdx.x;
    at.lane = threadIdx.x % LF_LANES;
    at.warp = threadIdx.x / LF_LANES;
    at.turn = 0;
    at.shared = shared;
    return at;
}

LF_DEVICE u64 *lf_row(struct Place *at) {
    at->turn ^= 1;
    return at->shared + at->turn * LF_WARPS;
}

// Whether any thread of the group says so.
LF_DEVICE int lf_any(struct Place *at, int mine) {
#if LF_WARPS == 1
    return __any_sync(LF_ALL, mine);
#else
    return __syncthreads_or(mine);
#endif
}

// What stands before each word: the neighbour's word, and for the group's first one what was `received`. The group's last word is handed on.
// Only thread 0's carry counts.
LF_DEVICE u64 lf_before(struct Place *at, u64 word, u64 received, u64 *handed) {
    u64 turned = __shfl_sync(LF_ALL, word, (at->lane + 31) & 31);
#if LF_WARPS == 1
    *handed = turned;
    return at->lane == 0 ? received : turned;
#else
    u64 *row = lf_row(at);
    if (at->lane == 0) row[at->warp] = turned;
    __syncthreads();
    *handed = row[LF_WARPS - 1];
    if (at->lane != 0) return turned;
    return at->warp == 0 ? received : row[at->warp - 1];
#endif
}

// The same for the upper halves of words: all that a move by up to 32 needs.
LF_DEVICE u32 lf_before_half(struct Place *at, u32 word, u32 received, u32 *handed) {
    u32 turned = __shfl_sync(LF_ALL, word, (at->lane + 31) & 31);
#if LF_WARPS == 1
    *handed = turned;
    return at->lane == 0 ? received : turned;
#else
    u64 *row = lf_row(at);
    if (at->lane == 0) row[at->warp] = turned;
    __syncthreads();
    *handed = (u32)row[LF_WARPS - 1];
    if (at->lane != 0) return turned;
    return at->warp == 0 ? received : (u32)row[at->warp - 1];
#endif
}

// A word moved up by 1 to 32 bits, the highest bits of `before` behind it: two funnel shifts.
LF_DEVICE u64 lf_moved(u64 of, u32 before, u32 by) {
    u32 low = (u32)of;
    if (by == 32) return of << 32 | before;
    return (u64)__funnelshift_l(low, (u32)(of >> 32), by) << 32 | __funnelshift_l(before, low, by);
}

LF_DEVICE u64 lf_advance_half(struct Place *at, u64 of, u32 by, u32 received, u32 *handed) {
    return lf_moved(of, lf_before_half(at, (u32)(of >> 32), received, handed), by);
}

LF_DEVICE u64 lf_advance(struct Place *at, u64 of, u32 by, u64 received, u64 *handed) {
    u64 before = lf_before(at, of, received, handed);
    return of << by | before >> (64 - by);
}

// Long-stream addition: lanes that overflowed, lanes that are all ones, MatchStar over both. Every thread knows the carry.
LF_DEVICE u64 lf_add(struct Place *at, u64 x, u64 y, u32 received, u32 *handed) {
    u64 sum = x + y;
    u32 overflowed = __ballot_sync(LF_ALL, sum < x);
    u32 bubbles = __ballot_sync(LF_ALL, sum == ~0ull);
#if LF_WARPS == 1
    u32 moved = overflowed << 1 | received, ran = (moved & bubbles) + bubbles;
    u32 increments = (ran ^ bubbles) | moved;
    *handed = overflowed >> 31 | (ran < bubbles);
#else
    u32 alone = (u32)(lf_match_star_mask((u64)overflowed << 1, bubbles) >> 32) & 1;
    u64 *row = lf_row(at);
    if (at->lane == 0) row[at->warp] = alone | (u32)(bubbles == LF_ALL) << 1;
    __syncthreads();
    u32 digit = at->lane < LF_WARPS ? (u32)row[at->lane] : 0;
    u64 warps_overflowed = __ballot_sync(LF_ALL, digit & 1);
    u64 warps_bubble = __ballot_sync(LF_ALL, digit >> 1 & 1);
    u64 warps = lf_match_star_mask(warps_overflowed << 1 | received, warps_bubble);
    *handed = (u32)(warps >> LF_WARPS) & 1;
    u32 increments = (u32)lf_match_star_mask((u64)overflowed << 1 | (warps >> at->warp & 1), bubbles);
#endif
    return sum + (increments >> at->lane & 1);
}

LF_DEVICE u64 lf_match_star(struct Place *at, u64 m, u64 c, u32 received, u32 *handed) {
    return (lf_add(at, m & c, c, received, handed) ^ c) | m;
}

LF_DEVICE u64 lf_scan_thru(struct Place *at, u64 m, u64 c, u32 received, u32 *handed) {
    return (lf_add(at, m & c, c, received, handed) | m) & ~c;
}

// The group's sum; every thread gets it.
LF_DEVICE u32 lf_sum(struct Place *at, u32 mine) {
    u32 by;
    for (by = 16; by > 0; by >>= 1) mine += __shfl_xor_sync(LF_ALL, mine, by);
#if LF_WARPS > 1
    u64 *row = lf_row(at);
    u32 warp;
    if (at->lane == 0) row[at->warp] = mine;
    __syncthreads();
    mine = 0;
    for (warp = 0; warp < LF_WARPS; ++warp) mine += (u32)row[warp];
#endif
    return mine;
}

// The lowest thread of the group that says so, LF_GROUP where none does.
LF_DEVICE u32 lf_first(struct Place *at, int mine) {
    u32 lanes = __ballot_sync(LF_ALL, mine);
#if LF_WARPS == 1
    (void)at;
    return lanes ? (u32)__ffs((int)lanes) - 1 : LF_GROUP;
#else
    u64 *row = lf_row(at);
    u32 first = LF_GROUP, warp;
    if (at->lane == 0) row[at->warp] = lanes;
    __syncthreads();
    for (warp = LF_WARPS; warp-- > 0;)
        if (row[warp]) first = warp * LF_LANES + (u32)__ffs((int)(u32)row[warp]) - 1;
    return first;
#endif
}

// --- from bytes to basis streams

// Four words whose bytes change places: word i gets byte i of each.
LF_DEVICE void lf_bytes(u32 a, u32 b, u32 c, u32 d, u32 *rows) {
    u32 low = __byte_perm(a, b, 0x5140), high = __byte_perm(a, b, 0x7362);
    u32 low2 = __byte_perm(c, d, 0x5140), high2 = __byte_perm(c, d, 0x7362);
    rows[0] = __byte_perm(low, low2, 0x5410);
    rows[1] = __byte_perm(low, low2, 0x7632);
    rows[2] = __byte_perm(high, high2, 0x5410);
    rows[3] = __byte_perm(high, high2, 0x7632);
}

// Bits of `one` where `where` has ones, else those of `zero`. Compilers split a choice by a constant into two operations; said in the card's own words it is one.
LF_DEVICE u32 lf_choose(u32 where, u32 one, u32 zero) {
#ifdef LF_HOST
    return (one & where) | (zero & ~where);
#else
    u32 out;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(out) : "r"(where), "r"(one), "r"(zero));
    return out;
#endif
}

#define LF_SWAP(a, b, by, mask) { \
    u32 first = (a), second = (b); \
    (a) = lf_choose(mask, first, second << (by)); \
    (b) = lf_choose(mask, first >> (by), second); }

// 32 bytes become eight words of 32 bits: 16 byte permutations, then three rounds that exchange rows with bits.
LF_DEVICE void lf_transpose_half(uint4 low, uint4 high, u32 *r) {
    lf_bytes(low.x, low.z, high.x, high.z, r);
    lf_bytes(low.y, low.w, high.y, high.w, r + 4);
    LF_SWAP(r[0], r[4], 4, 0x0f0f0f0fu) LF_SWAP(r[1], r[5], 4, 0x0f0f0f0fu)
    LF_SWAP(r[2], r[6], 4, 0x0f0f0f0fu) LF_SWAP(r[3], r[7], 4, 0x0f0f0f0fu)
    LF_SWAP(r[0], r[2], 2, 0x33333333u) LF_SWAP(r[1], r[3], 2, 0x33333333u)
    LF_SWAP(r[4], r[6], 2, 0x33333333u) LF_SWAP(r[5], r[7], 2, 0x33333333u)
    LF_SWAP(r[0], r[1], 1, 0x55555555u) LF_SWAP(r[2], r[3], 1, 0x55555555u)
    LF_SWAP(r[4], r[5], 1, 0x55555555u) LF_SWAP(r[6], r[7], 1, 0x55555555u)
}

struct Bytes {
    uint4 of[4];
#ifdef LF_ROWS
    u64 row_ends;
#endif
};

struct Basis {
    u64 bit[8];
#ifdef LF_ROWS
    u64 row_ends;
#endif
};

// The 64 bytes of this thread in a step.
LF_DEVICE struct Bytes lf_load(const struct Task *task, const struct Place *at, u64 step) {
    const uint4 *from = task->text + (step * LF_GROUP + at->thread) * 4;
    struct Bytes bytes;
    bytes.of[0] = LF_LOAD(from);
    bytes.of[1] = LF_LOAD(from + 1);
    bytes.of[2] = LF_LOAD(from + 2);
    bytes.of[3] = LF_LOAD(from + 3);
#ifdef LF_ROWS
    bytes.row_ends = LF_LOAD(task->row_ends + step * LF_GROUP + at->thread);
#endif
    return bytes;
}

LF_DEVICE struct Basis lf_transpose(const struct Bytes *bytes) {
    u32 low[8], high[8];
    struct Basis basis;
    lf_transpose_half(bytes->of[0], bytes->of[1], low);
    lf_transpose_half(bytes->of[2], bytes->of[3], high);
    basis.bit[0] = (u64)high[0] << 32 | low[0];
    basis.bit[1] = (u64)high[1] << 32 | low[1];
    basis.bit[2] = (u64)high[2] << 32 | low[2];
    basis.bit[3] = (u64)high[3] << 32 | low[3];
    basis.bit[4] = (u64)high[4] << 32 | low[4];
    basis.bit[5] = (u64)high[5] << 32 | low[5];
    basis.bit[6] = (u64)high[6] << 32 | low[6];
    basis.bit[7] = (u64)high[7] << 32 | low[7];
#ifdef LF_ROWS
    basis.row_ends = bytes->row_ends;
#endif
    return basis;
}

// Whether any of the 64 bytes of this thread ends a line or a row: a byte is zero where subtracting one borrows and its highest bit was not set.
LF_DEVICE int lf_ends_a_line(const struct Bytes *bytes) {
#ifdef LF_ROWS
    return bytes->row_ends != 0;
#else
    const u32 ones = 0x01010101u, each = LF_TERMINATOR * ones;
    u32 found = 0, at;
    for (at = 0; at < 4; ++at) {
        u32 x = bytes->of[at].x ^ each, y = bytes->of[at].y ^ each, z = bytes->of[at].z ^ each, w = bytes->of[at].w ^ each;
        found |= ((x - ones) & ~x) | ((y - ones) & ~y) | ((z - ones) & ~z) | ((w - ones) & ~w);
    }
    return (found & 0x80808080u) != 0;
#endif
}

// The bits of a thread's word that belong to the text.
LF_DEVICE u64 lf_valid(const struct Task *task, const struct Place *at, u64 step) {
    u64 start = (step * LF_GROUP + at->thread) * 64;
    if (start >= task->valid) return 0;
    return task->valid - start >= 64 ? ~0ull : ~(~0ull << (task->valid - start));
}

// @program
// `lower.rs` puts here: LF_STATE, struct Carries, lf_initial, lf_restore, lf_save and lf_step.
// @kernels

#ifdef LF_SCAN
// Every group takes a segment. It assumes that the text begins one step before: what it computes for lines that begin after a terminator of that step
// is exact whatever was before, as lines do not depend on each other. A segment without such a terminator is not certain, and `chain` looks after it.
LF_KERNEL LF_BOUNDS scan(struct Task task) {
    LF_SHARED(u64, shared, 2 * LF_WARPS);
    struct Place at = lf_place(shared);
    struct Carries carries;
    u32 segment = blockIdx.x, steps = (u32)task.steps, each = (u32)task.segment_steps;
    u32 first = segment * each;
    u32 end = first + each < steps ? first + each : steps;
    u32 step = segment == 0 ? 0 : first - 1;
    // The step that is treated otherwise: the one before the segment, then the text's last.
    u32 special = segment == 0 ? steps - 1 : step;
    u32 count = 0;
    int certain = 1;
    lf_initial(&carries);
    if (segment == 0 && task.received) lf_restore(&carries, task.received);
    struct Bytes next = lf_load(&task, &at, step);
    if (segment != 0) certain = LF_LINES && lf_any(&at, lf_ends_a_line(&next));
    for (; step < end; ++step) {
        struct Basis basis = lf_transpose(&next);
        // The next step's bytes are on their way while this one is computed.
        next = lf_load(&task, &at, step + 1);
        u64 ends = lf_step(&at, &basis, &carries);
        if (step == special) {
            if (step < first) {
                lf_save(&carries, &at, task.guesses + (u64)segment * LF_STATE);
                special = steps - 1;
                continue;
            }
            ends &= lf_valid(&task, &at, step);
        }
        if (task.ends) task.ends[(u64)step * LF_GROUP + at.thread] = ends;
        count += (u32)__popcll(ends);
    }
    count = lf_sum(&at, count);
    lf_save(&carries, &at, task.states + (u64)segment * LF_STATE);
    if (at.thread == 0) {
        task.counts[segment] = count;
        task.certain[segment] = (u32)certain;
        atomicAdd(&task.total[0], (u64)count);
        if (!certain) atomicAdd(&task.total[1], 1ull);
    }
}
#endif

#ifdef LF_CHAIN
// Whether a segment assumed to receive something else than the one before handed on.
LF_DEVICE int lf_was_wrong(const struct Task *task, u64 segment) {
    const u64 *guess = task->guesses + segment * LF_STATE;
    const u64 *handed = task->states + (segment - 1) * LF_STATE;
    u64 differences = 0;
    u32 word;
    for (word = 0; word < LF_COMPARED; ++word) differences |= guess[word] ^ handed[word];
    return differences != 0;
}

// A segment again, from what the one before it hands on.
LF_DEVICE void lf_again(const struct Task *task, struct Place *at, u64 segment) {
    u64 step = segment * task->segment_steps;
    u64 end = step + task->segment_steps < task->steps ? step + task->segment_steps : task->steps;
    struct Carries carries;
    u32 count = 0;
    lf_restore(&carries, task->states + (segment - 1) * LF_STATE);
    struct Bytes next = lf_load(task, at, step);
    for (; step < end; ++step) {
        struct Basis basis = lf_transpose(&next);
        next = lf_load(task, at, step + 1);
        u64 ends = lf_step(at, &basis, &carries);
        ends &= lf_valid(task, at, step);
        if (task->ends) task->ends[step * LF_GROUP + at->thread] = ends;
        count += (u32)__popcll(ends);
    }
    count = lf_sum(at, count);
    lf_save(&carries, at, task->states + segment * LF_STATE);
    if (at->thread == 0) {
        atomicAdd(&task->total[0], (u64)count - task->counts[segment]);
        task->counts[segment] = count;
    }
    // What one thread wrote, all read next.
    __syncthreads();
}

// Follows segments from one that is not certain, behind one that is, up to the next that is certain. Most assumed what they would have received.
LF_DEVICE void lf_follow(const struct Task *task, struct Place *at, u64 segment) {
    for (;;) {
        u64 mine = segment + at->thread;
        int stops = mine >= task->segments || task->certain[mine] || lf_was_wrong(task, mine);
        u32 found = lf_first(at, stops);
        segment += found;
        if (found == LF_GROUP) continue;
        if (segment >= task->segments || task->certain[segment]) return;
        lf_again(task, at, segment);
        ++segment;
    }
}

// Chains are independent: each begins behind a segment that is certain, and one group follows it.
LF_KERNEL LF_BOUNDS chain(struct Task task) {
    LF_SHARED(u64, shared, 2 * LF_WARPS);
    struct Place at = lf_place(shared);
    u64 base;
    for (base = (u64)blockIdx.x * LF_GROUP; base < task.segments; base += (u64)gridDim.x * LF_GROUP) {
        u32 from = 0;
        for (;;) {
            u64 mine = base + at.thread;
            int heads = at.thread >= from && mine > 0 && mine < task.segments;
            heads = heads && !task.certain[mine] && task.certain[mine - 1];
            u32 found = lf_first(&at, heads);
            if (found == LF_GROUP) break;
            lf_follow(&task, &at, base + found);
            from = found + 1;
        }
    }
}
#endif
