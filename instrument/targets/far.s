# Far control transfers within the one 64-bit code segment, and the return from interrupt.
        .include "common.inc"
        .globl  _start
        .data
        .balign 16
pointer: .long  1f                      # with REX.W some processors take 64 bits of offset, others still 32
        .word   0x33
        .text
_start: mov     rdx, rsp
        jmp     fword ptr [rip + pointer]
        wrong
1:      push    0x33
        lea     rax, [rip + 2f]
        push    rax
        retfq
        wrong
2:      same    rsp, rdx
        mov     ecx, 3
3:      push    0x2b                    # ss, rsp, flags, cs, rip
        push    rdx
        pushfq
        push    0x33
        lea     rax, [rip + 4f]
        push    rax
        iretq
        wrong
4:      same    rsp, rdx
        dec     ecx
        jnz     3b
        finish  "far ok"
