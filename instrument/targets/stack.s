# The stack: red zone, frames, switched stacks, deep recursion. Nobody but the program may write below its stack pointer.
        .include "common.inc"
        .globl  _start
        .bss
        .balign 16
        .skip   4096
other:  .skip   16
        .text
_start: # the red zone holds 128 bytes across jumps, loops, string instructions and returns of the kernel
        mov     ecx, 16
1:      mov     [rsp + rcx*8 - 136], rcx
        loop    1b
        jmp     2f
2:      mov     ecx, 3
        lea     rdi, [rip + other]
        rep stosb
        mov     eax, 39
        syscall
        lea     rax, [rip + 3f]
        jmp     rax
3:      mov     ecx, 16
        xor     eax, eax
4:      add     rax, [rsp + rcx*8 - 136]
        dec     ecx
        jnz     4b
        same    rax, 136
        # frames
        mov     rbp, rsp
        mov     rdx, rsp
        call    frame
        same    rsp, rdx
        same    rbp, rdx
        enter   64, 3
        mov     rax, [rbp]
        same    rax, rdx
        leave
        same    rsp, rdx
        # 16-bit pushes leave the stack unaligned
        push    ax
        push    rbx
        pop     rcx
        add     rsp, 2
        same    rsp, rdx
        pushw   0x1234
        popw    ax
        same    ax, 0x1234
        # another stack, by exchange and by leave
        lea     rbp, [rip + other]
        xchg    rsp, rbp
        push    77
        call    nothing
        pop     rax
        same    rax, 77
        xchg    rsp, rbp
        same    rsp, rdx
        lea     rax, [rip + other]
        mov     qword ptr [rip + other - 16], 0
        lea     rbp, [rax - 16]
        leave
        lea     rcx, [rax - 8]
        same    rsp, rcx
        mov     rsp, rdx
        # recursion, 1,500 deep: sum of 1..1500
        mov     edi, 1500
        xor     eax, eax
        call    sum
        same    eax, 1125750
        # Ackermann(2, 6) = 15
        mov     edi, 2
        mov     esi, 6
        call    ackermann
        same    eax, 15
        # Fibonacci(15)
        mov     edi, 15
        call    fib
        same    eax, 610
        finish  "stack ok"
frame:  push    rbp
        mov     rbp, rsp
        and     rsp, -64
        sub     rsp, 256
        mov     [rsp + 255], al
        mov     rsp, rbp
        pop     rbp
nothing:
        ret
sum:    test    edi, edi
        jz      5f
        add     eax, edi
        dec     edi
        call    sum
5:      ret
ackermann:
        test    edi, edi
        jnz     6f
        lea     eax, [rsi + 1]
        ret
6:      test    esi, esi
        jnz     7f
        dec     edi
        mov     esi, 1
        jmp     ackermann
7:      push    rdi
        dec     esi
        call    ackermann
        mov     esi, eax
        pop     rdi
        dec     edi
        jmp     ackermann
fib:    cmp     edi, 2
        jb      8f
        push    rdi
        dec     edi
        call    fib
        pop     rdi
        push    rax
        lea     edi, [rdi - 2]
        call    fib
        pop     rcx
        add     eax, ecx
        ret
8:      mov     eax, edi
        ret
