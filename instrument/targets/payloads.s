# Known values in known registers, for tools: five rounds of a loop, then an exit. Instructions: 3 + 5 * 10 + 3 = 56.
        .intel_syntax noprefix
        .globl  _start
        .data
table:  .quad   table, 11, 22, 33, 44, 55
        .text
_start: mov     ebx, 5
        movabs  r12, 0x123456789abcdef0
        xor     edx, edx
round:  lea     rcx, [rip + table]
        mov     rcx, [rcx]                      # the address goes with what is loaded
        mov     rax, [rcx + rbx * 8]
        nop                                     # nobody reads what is in rax: a register to borrow
        mov     rax, 7
        push    rbx
        inc     qword ptr [rsp]
        pop     rdx
        dec     rbx
        jnz     round
        mov     edi, edx
        mov     eax, 231
        syscall
