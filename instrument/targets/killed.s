# Reads address 0 and dies of it. Instructions: 3 (the two below and the jump; the read never retires).
        .intel_syntax noprefix
        .globl  _start
_start: xor     eax, eax
        jmp     1f
        ud2
1:      nop
        mov     rax, [rax]
        ud2
