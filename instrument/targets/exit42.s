# Nothing but an exit status. Instructions: 3.
        .intel_syntax noprefix
        .globl  _start
_start: mov     edi, 42
        mov     eax, 231
        syscall
