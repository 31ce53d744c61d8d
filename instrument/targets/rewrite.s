# Code that the program writes: on fresh pages, rewritten in place, and behind its back by a call of the kernel.
        .include "common.inc"
        .globl  _start
        .data
file:   .quad   0
pipe:   .long   0, 0
code:   .byte   0xb8, 99, 0, 0, 0, 0xc3 # mov eax, 99; ret
        .text
_start: xor     edi, edi
        mov     esi, 8192
        mov     edx, 7
        mov     r10d, 0x22
        mov     r8, -1
        xor     r9d, r9d
        sys     9
        mov     rbx, rax
        # mov eax, n; ret, for 200 values of n
        mov     byte ptr [rbx], 0xb8
        mov     byte ptr [rbx + 5], 0xc3
        xor     ebp, ebp
        xor     r12d, r12d
1:      mov     [rbx + 1], ebp
        call    rbx
        add     r12d, eax
        inc     ebp
        cmp     ebp, 200
        jb      1b
        same    r12d, 19900
        # code that arrives through a pipe
        lea     rdi, [rip + pipe]
        sys     22
        mov     edi, [rip + pipe + 4]
        lea     rsi, [rip + code]
        mov     edx, 6
        sys     1
        mov     edi, [rip + pipe]
        mov     rsi, rbx
        mov     edx, 6
        sys     0
        call    rbx
        same    eax, 99
        # the page goes away and comes back with other code, not writable
        lea     rdi, [rbx + 4096]
        mov     dword ptr [rdi], 0xc3c0ff48     # inc rax; ret
        mov     esi, 4096
        mov     edx, 5
        sys     10
        lea     rcx, [rbx + 4096]
        mov     eax, 1
        call    rcx
        same    eax, 2
        mov     rdi, rbx
        mov     esi, 8192
        sys     11
        mov     rdi, rbx
        mov     esi, 8192
        mov     edx, 3
        mov     r10d, 0x32
        mov     r8, -1
        xor     r9d, r9d
        sys     9
        same    rax, rbx
        mov     dword ptr [rbx + 4096], 0xc3c8ff48      # dec rax; ret
        mov     rdi, rbx
        mov     esi, 8192
        mov     edx, 5
        sys     10
        lea     rcx, [rbx + 4096]
        mov     eax, 1
        call    rcx
        same    eax, 0
        # an instruction that crosses from one page into the next
        mov     rdi, rbx
        mov     esi, 8192
        mov     edx, 7
        sys     10
        mov     word ptr [rbx + 4094], 0x05b8
        mov     dword ptr [rbx + 4096], 0xc3000000
        lea     rcx, [rbx + 4094]
        call    rcx
        same    eax, 5
        finish  "rewrite ok"
