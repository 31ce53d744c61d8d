# Blocks of more than 64 instructions, straight-line code of more than a page, instructions across lines and pages.
# Instructions: 3 + 10 * (200 + 2 + 3000 + 600 + 2 + 2) + 4 (two checks) + 8 (the end) = 38075.
        .include "common.inc"
        .globl  _start
        .text
_start: xor     eax, eax
        mov     ecx, 10
        xor     edx, edx
again:  .rept   200
        add     eax, 3
        .endr
        add     eax, 0x7fffffff         # an overflow, carried over many blocks
        sub     eax, 0x7fffffff
        .rept   3000
        inc     edx
        .endr
        .rept   300                     # long instructions, at every offset of a line
        lea     rbx, [rbx + rcx*8 + 0x12345678]
        mov     qword ptr [rsp - 16], 0x12345678
        .endr
        add     edx, 0
        nop
        dec     ecx
        jnz     again
        same    eax, 6000
        same    edx, 30000
        finish  "long ok"
