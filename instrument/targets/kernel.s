# Calls of the kernel, and what they leave in the registers: rcx is the next address, r11 the flags, all others stay.
        .include "common.inc"
        .globl  _start
        .data
path:   .asciz  "/dev/null"
pipe:   .long   0, 0
buffer: .skip   64
vector: .quad   path, 3, pipe, 4
        .text
_start: # the clobbered registers, and the kept ones
        mov     rbx, 1
        mov     rbp, 2
        mov     r8, 3
        mov     r9, 4
        mov     r10, 5
        mov     r12, 6
        mov     r15, 7
        mov     rdx, 8
        mov     rsi, 9
        mov     rdi, 10
        stc
        mov     eax, 39                 # getpid
        syscall
1:      must    c                       # flags stay
        lea     rax, [rip + 1b]
        same    rcx, rax
        test    r11d, 1                 # r11 has the flags
        must    ne
        test    r11d, 0x100             # but not a tracer's
        must    e
        lea     rax, [rbx + rbp]
        add     rax, r8
        add     rax, r9
        add     rax, r10
        add     rax, r12
        add     rax, r15
        add     rax, rdx
        add     rax, rsi
        add     rax, rdi
        same    eax, 55
        # an unknown call, a failing one, and rseq, which is refused
        mov     rax, 100000
        syscall
        same    rax, -38
        mov     edi, -1
        sys     3
        same    rax, -9
        # brk: grow, write, shrink, grow again: zeros
        xor     edi, edi
        sys     12
        mov     rbx, rax
        lea     rdi, [rbx + 0x5000]
        sys     12
        lea     rdi, [rbx + 0x5000]
        same    rax, rdi
        mov     qword ptr [rbx + 0x3008], 77
        lea     rdi, [rbx + 0x1000]
        sys     12
        lea     rdi, [rbx + 0x5000]
        sys     12
        cmp     qword ptr [rbx + 0x3008], 0
        must    e
        # mmap, mprotect, mremap, munmap
        xor     edi, edi
        mov     esi, 0x3000
        mov     edx, 3
        mov     r10d, 0x22
        mov     r8, -1
        xor     r9d, r9d
        sys     9
        mov     rbx, rax
        mov     qword ptr [rbx + 0x2ff8], 5
        mov     rdi, rbx
        mov     esi, 0x1000
        mov     edx, 1
        sys     10
        same    rax, 0
        cmp     byte ptr [rbx], 0
        must    e
        mov     rdi, rbx
        mov     esi, 0x3000
        sys     11
        same    rax, 0
        # a pipe: what goes in comes out
        lea     rdi, [rip + pipe]
        sys     22
        same    rax, 0
        mov     edi, [rip + pipe + 4]
        lea     rsi, [rip + path]
        mov     edx, 9
        sys     1
        same    rax, 9
        mov     edi, [rip + pipe]
        lea     rsi, [rip + buffer]
        mov     edx, 64
        sys     0
        same    rax, 9
        mov     rax, [rip + buffer]
        cmp     rax, [rip + path]
        must    e
        # a file, opened through a pointer into read-only data, and a bad pointer
        mov     edi, -100
        lea     rsi, [rip + path]
        mov     edx, 1
        sys     257
        mov     edi, eax
        lea     rsi, [rip + buffer]
        mov     edx, 8
        sys     1
        same    rax, 8
        mov     edi, [rip + pipe + 4]
        xor     esi, esi
        mov     edx, 8
        sys     1
        same    rax, -14
        # a child that ends at once: its instructions are not ours
        sys     57                      # fork
        test    eax, eax
        jnz     2f
        mov     edi, 7
        sys     60
2:      mov     edi, eax
        lea     rsi, [rip + buffer]
        xor     edx, edx
        xor     r10d, r10d
        sys     61                      # wait4
        cmp     word ptr [rip + buffer], 0x0700
        must    e
        # two calls in one straight line
        mov     eax, 39
        syscall
        mov     ebx, eax
        mov     eax, 39
        syscall
        same    eax, ebx
        finish  "kernel ok"
