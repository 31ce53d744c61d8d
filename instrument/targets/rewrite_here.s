# A block that rewrites its own next instruction, as the architecture allows on one processor.
        .include "common.inc"
        .globl  _start
        .text
_start: xor     edi, edi
        mov     esi, 4096
        mov     edx, 7
        mov     r10d, 0x22
        mov     r8, -1
        xor     r9d, r9d
        sys     9
        mov     rbx, rax
        # inc eax becomes dec eax, just before it runs
        mov     word ptr [rbx + 64], 0x02c6     # mov byte ptr [rdx], imm8
        mov     byte ptr [rbx + 66], 0xc8
        mov     byte ptr [rbx + 67], 0x90
        mov     word ptr [rbx + 68], 0xc0ff     # inc eax
        mov     byte ptr [rbx + 70], 0xc3
        lea     rdx, [rbx + 69]
        lea     rsi, [rbx + 64]
        mov     eax, 10
        call    rsi
        same    eax, 9
        finish  "rewrite_here ok"
