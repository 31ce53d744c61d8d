# Indirect control transfers: tables, pointers in memory and on the stack, returns that drop arguments.
        .include "common.inc"
        .globl  _start
        .section .rodata
        .balign 8
table:  .quad   c0, c1, c2, c3
offsets:.long   c0 - offsets, c1 - offsets, c2 - offsets, c3 - offsets
        .text
_start: # a switch through an absolute table, 64 rounds
        xor     ebx, ebx
        xor     r12d, r12d
1:      mov     eax, ebx
        and     eax, 3
        lea     rdx, [rip + table]
        test    ebx, 1
        jz      2f
        jmp     [rdx + rax*8]
2:      lea     rdx, [rip + offsets]       # and through relative entries, every other
        movsxd  rax, [rdx + rax*4]
        add     rax, rdx
        jmp     rax
c0:     add     r12d, 1
        jmp     3f
c1:     add     r12d, 10
        jmp     3f
c2:     add     r12d, 100
        jmp     3f
c3:     add     r12d, 1000
3:      inc     ebx
        cmp     ebx, 64
        jb      1b
        same    r12d, 17776
        # calls through the stack pointer
        lea     rax, [rip + add3]
        push    rax
        push    0
        mov     ebx, 1
        call    [rsp + 8]
        call    qword ptr [rsp + 8]
        same    ebx, 7
        add     rsp, 8
        call    [rsp]
        same    ebx, 10
        pop     rcx
        call    rcx
        same    ebx, 13
        # jumps through the stack pointer
        lea     rax, [rip + 4f]
        push    rax
        jmp     [rsp]
        wrong
4:      lea     rax, [rip + 5f]
        mov     [rsp], rax
        mov     eax, 1
        jmp     [rsp + rax*8 - 8]
        wrong
5:      add     rsp, 8
        # push [rsp + 8], pop [rsp + 8]
        push    11
        push    22
        push    [rsp + 8]
        pop     rax
        same    rax, 11
        pop     [rsp]                   # the address is taken after the pop: 22 goes where 11 was
        pop     rax
        same    rax, 22
        mov     rdx, rsp
        push    rsp
        pop     rax
        same    rax, rdx
        push    rdx
        pop     rsp
        same    rsp, rdx
        # a return that drops its argument
        push    33
        call    takes
        same    rsp, rdx
        same    eax, 33
        # a return to a pushed address, a chain of them
        lea     rax, [rip + 7f]
        push    rax
        lea     rax, [rip + 6f]
        push    rax
        ret
        wrong
6:      inc     ebx
        ret
        wrong
7:      same    ebx, 14
        same    rsp, rdx
        # call as a way to read the instruction pointer; the return address is the program's own
        call    8f
8:      pop     rax
        lea     rcx, [rip + 8b]
        same    rax, rcx
        # a callee that changes where it returns to
        call    skips
        wrong
        nop
9:      # a pointer in a register that is also the base
        lea     rax, [rip + cell]
        call    [rax]
        same    ebx, 17
        # the same site with many targets
        xor     ebp, ebp
10:     lea     rdx, [rip + table2]
        mov     ecx, ebp
        and     ecx, 7
        call    [rdx + rcx*8]
        inc     ebp
        cmp     ebp, 200
        jb      10b
        same    ebx, 1617
        # repeated and bounded returns
        call    old
        finish  "indirect ok"
add3:   add     ebx, 3
        ret
takes:  mov     eax, [rsp + 8]
        ret     8
skips:  lea     rax, [rip + 9b]
        mov     [rsp], rax
        ret
old:    rep ret
t0:     add     ebx, 1
        ret
t1:     add     ebx, 15
        ret
        .data
cell:   .quad   add3
table2: .quad   t0, t1, t0, t1, t1, t0, t1, t0
