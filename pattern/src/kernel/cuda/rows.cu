// Kernels about columns: the last bytes of rows, and which rows a program marked.

#ifndef LF_HOST
typedef unsigned int u32;
typedef unsigned long long u64;
#define LF_DEVICE static __device__ __forceinline__
#define LF_KERNEL extern "C" __global__ void
#endif

#define LF_ALL 0xffffffffu

// Sixteen words, as for programs.
struct Task {
    const void *offsets; // of 64 bits, or of 32
    u64 is_wide;         // whether they are of 64 bits
    u64 rows;
    u64 first;           // where the values begin
    u64 *row_ends;       // a bit per byte that is the last one of a row
    const u64 *marked;   // a bit per byte
    u32 *found;          // a bit per row
    u64 empty;           // whether empty rows match
    u64 spare[8];
};

LF_DEVICE u64 lf_offset(const struct Task *task, u64 row) {
    return (task->is_wide ? ((const u64 *)task->offsets)[row] : (u64)((const u32 *)task->offsets)[row]) - task->first;
}

// The last bytes of rows; a thread per row. An empty row has none.
LF_KERNEL mark(struct Task task) {
    u64 row;
    for (row = (u64)blockIdx.x * blockDim.x + threadIdx.x; row < task.rows; row += (u64)gridDim.x * blockDim.x) {
        u64 start = lf_offset(&task, row), end = lf_offset(&task, row + 1);
        if (end > start) atomicOr(&task.row_ends[(end - 1) / 64], 1ull << ((end - 1) % 64));
    }
}

// The bits of rows; a warp per 32 rows.
LF_KERNEL rows(struct Task task) {
    u64 first = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32;
    u32 lane = threadIdx.x % 32;
    for (; first < task.rows; first += (u64)gridDim.x * blockDim.x) {
        u64 row = first + lane;
        int is_match = 0;
        if (row < task.rows) {
            u64 start = lf_offset(&task, row), end = lf_offset(&task, row + 1);
            is_match = end > start ? (int)(task.marked[(end - 1) / 64] >> ((end - 1) % 64) & 1) : (int)task.empty;
        }
        u32 found = __ballot_sync(LF_ALL, is_match);
        if (lane == 0) task.found[first / 32] = found;
    }
}
