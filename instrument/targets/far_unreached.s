# Code that the engine does not support behind branches that are never taken, in the program's text and in generated code.
        .include "common.inc"
        .globl  _start
        .text
_start: xor     eax, eax
        jnz     1f                      # translated ahead, and never reached
        test    eax, eax
        jnz     2f
        mov     eax, 9                  # mmap(0, 4096, READ | WRITE | EXECUTE, PRIVATE | ANONYMOUS, -1, 0)
        xor     edi, edi
        mov     esi, 4096
        mov     edx, 7
        mov     r10d, 0x22
        mov     r8, -1
        xor     r9d, r9d
        syscall
        mov     rbx, rax
        lea     rsi, [rip + made]
        mov     rdi, rax
        mov     ecx, offset made_end - made
        rep movsb
        call    rbx
        mov     r12d, eax
        same    r12d, 7
        finish  "far_unreached ok"
1:      retfq
2:      wrgsbase rax
        iretq
made:   mov     eax, 7
        test    eax, eax
        jz      3f
        ret
3:      retfq
made_end:
