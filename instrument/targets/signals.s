# Signals that the program raises itself: from the kernel, from faults that a handler repairs or skips, nested, on another
# stack, with every register and the flags restored.
        .include "common.inc"
        .globl  _start
        .data
        .balign 8
action: .quad   0, 0x04000004, restore, 0       # SA_SIGINFO | SA_RESTORER
nested: .quad   inner, 0x44000004, restore, 0   # and SA_NODEFER
away:   .quad   onstack, 0x0c000004, restore, 0 # and SA_ONSTACK
ignore: .quad   1, 0x04000000, restore, 0
stack:  .quad   ground, 0, 8192
mask:   .quad   0
count:  .quad   0
page:   .quad   0
saved:  .quad   0
        .bss
        .balign 64
ground: .skip   8192
        .text
        .macro  handle number, handler
        lea     rax, [rip + \handler]
        mov     [rip + action], rax
        mov     edi, \number
        lea     rsi, [rip + action]
        xor     edx, edx
        mov     r10d, 8
        sys     13
        same    rax, 0
        .endm
        .macro  raise number
        sys     39
        mov     edi, eax
        mov     esi, \number
        sys     62
        .endm
_start: # a signal from the kernel, 20 times; the registers and flags come back
        handle  10, counter
        mov     ebx, 20
1:      mov     rbp, 0x123456789
        mov     r12, -5
        movq    xmm7, rbp
        sys     39
        mov     edi, eax
        mov     esi, 10
        stc
        sys     62
        must    c
        movq    rax, xmm7
        same    rax, rbp
        same    r12, -5
        dec     ebx
        jnz     1b
        cmp     qword ptr [rip + count], 20
        must    e
        # a page without rights is repaired by the handler: the same instruction runs again
        xor     edi, edi
        mov     esi, 4096
        xor     edx, edx
        mov     r10d, 0x22
        mov     r8, -1
        xor     r9d, r9d
        sys     9
        mov     [rip + page], rax
        handle  11, repair
        mov     rbx, [rip + page]
        mov     eax, 7
        add     eax, 1
        mov     [rbx + 8], eax          # faults, repaired, done
        add     eax, [rbx + 8]
        same    eax, 16
        # a null pointer: the handler moves on to the address in r13
        handle  11, skip
        lea     r13, [rip + 2f]
        xor     eax, eax
        mov     edx, 3
        inc     edx
        mov     rax, [rax]
        wrong
2:      same    edx, 4
        # a jump into nowhere
        lea     r13, [rip + 3f]
        mov     eax, 16
        call    rax
        wrong
3:      add     rsp, 8
        # a division by zero, an illegal instruction, a breakpoint
        handle  8, skip
        lea     r13, [rip + 4f]
        xor     ecx, ecx
        mov     eax, 1
        cdq
        div     ecx
        wrong
4:      handle  4, skip
        lea     r13, [rip + 5f]
        ud2
        wrong
5:      handle  5, counter
        mov     qword ptr [rip + count], 0
        int3
        cmp     qword ptr [rip + count], 1
        must    e
        # a fault in the middle of a repeated instruction: the rest is done after the repair
        mov     rdi, [rip + page]
        mov     esi, 4096
        xor     edx, edx
        sys     10
        handle  11, repair
        lea     rdi, [rip + ground]
        mov     rsi, [rip + page]
        mov     ecx, 24
        xchg    rsi, rdi
        rep movsb
        same    ecx, 0
        # a handler that is itself interrupted
        handle  10, outer
        mov     edi, 12
        lea     rsi, [rip + nested]
        xor     edx, edx
        mov     r10d, 8
        sys     13
        mov     qword ptr [rip + count], 0
        raise   10
        cmp     qword ptr [rip + count], 1111
        must    e
        # on a stack of its own
        lea     rdi, [rip + stack]
        xor     esi, esi
        sys     131
        same    rax, 0
        mov     edi, 10
        lea     rsi, [rip + away]
        xor     edx, edx
        mov     r10d, 8
        sys     13
        raise   10
        mov     rax, [rip + saved]
        lea     rcx, [rip + ground]
        sub     rax, rcx
        cmp     rax, 8192
        must    b
        # an ignored one, and a blocked one that waits
        mov     edi, 10
        lea     rsi, [rip + ignore]
        xor     edx, edx
        mov     r10d, 8
        sys     13
        raise   10
        handle  10, counter
        mov     qword ptr [rip + count], 0
        mov     qword ptr [rip + mask], 0x200
        xor     edi, edi                # SIG_BLOCK
        lea     rsi, [rip + mask]
        xor     edx, edx
        mov     r10d, 8
        sys     14
        raise   10
        cmp     qword ptr [rip + count], 0
        must    e
        mov     edi, 1                  # SIG_UNBLOCK
        lea     rsi, [rip + mask]
        xor     edx, edx
        mov     r10d, 8
        sys     14
        cmp     qword ptr [rip + count], 1
        must    e
        finish  "signals ok"
counter:
        inc     qword ptr [rip + count]
        xor     ebp, ebp
        xor     r12d, r12d
        pxor    xmm7, xmm7
        clc
        ret
repair: mov     rdi, [rip + page]
        mov     esi, 4096
        mov     edx, 3
        sys     10
        ret
skip:   mov     rax, [rdx + 40 + 8*5]   # r13
        mov     [rdx + 40 + 8*16], rax  # rip
        ret
outer:  add     qword ptr [rip + count], 1
        raise   12
        add     qword ptr [rip + count], 1000
        ret
inner:  add     qword ptr [rip + count], 10
        cmp     qword ptr [rip + count], 50
        jae     1f
        add     qword ptr [rip + count], 90
        raise   12
1:      ret
onstack:
        mov     [rip + saved], rsp
        ret
restore:
        mov     eax, 15
        syscall
