# The fs base, set by the kernel and by the program itself, in every kind of operand.
        .include "common.inc"
        .globl  _start
        .data
        .balign 64
one:    .quad   100, 101, 102, 103, 104, 105, 106, 107
two:    .quad   200, 201, 202, 203, 204, 205, 206, 207
old:    .quad   0
words:  .byte   1, 2, 3, 4
        .text
_start: mov     edi, 0x1002             # ARCH_SET_FS
        lea     rsi, [rip + one]
        sys     158
        mov     rax, fs:[8]
        same    eax, 101
        mov     ecx, 2
        add     rax, fs:[rcx*8 + 8]
        same    eax, 204
        inc     dword ptr fs:[rcx*8]
        cmp     dword ptr fs:[16], 103
        must    e
        mov     rdx, -8
        mov     rax, fs:[rdx + 16]
        same    eax, 101
        mov     rdx, 0xffffffff00000008 # cut to 32 bits before the base is added
        mov     rax, fs:[edx]
        same    eax, 101
        push    fs:[24]
        pop     fs:[32]
        cmp     qword ptr fs:[32], 103
        must    e
        mov     esi, 40
        lods    rax, qword ptr fs:[rsi]
        same    eax, 105
        same    esi, 48
        mov     esi, 8
        lea     rdi, [rip + two]
        mov     ecx, 3
        rep movs qword ptr es:[rdi], qword ptr fs:[rsi]
        cmp     qword ptr [rip + two], 101
        must    e
        movq    xmm0, qword ptr fs:[8]
        movq    rax, xmm0
        same    eax, 101
        mov     rax, fs:[8]
        lea     rbx, fs:[8]             # lea knows no segments
        same    ebx, 8
        cmp     rax, qword ptr fs:[8]
        must    e
        mov     eax, 101
        lock cmpxchg fs:[8], rcx
        must    e
        mov     qword ptr fs:[8], 101
        lea     rax, [rip + 1f]
        mov     fs:[48], rax
        jmp     fs:[48]
        wrong
1:      lea     rax, [rip + function]
        mov     fs:[48], rax
        call    fs:[48]
        same    eax, 55
        lea     rbx, [rip + words]      # xlat through fs
        sub     rbx, [rip + base]
        mov     eax, 2
        .byte   0x64
        xlatb
        same    al, 3
        # the base as a value
        mov     edi, 0x1003             # ARCH_GET_FS
        lea     rsi, [rip + old]
        sys     158
        lea     rax, [rip + one]
        cmp     rax, [rip + old]
        must    e
        # instructions that set it, where the kernel allows them (AT_HWCAP2 bit 1)
        lea     rsi, [rsp + 8]
2:      lodsq                           # arguments
        test    rax, rax
        jnz     2b
3:      lodsq                           # environment
        test    rax, rax
        jnz     3b
4:      lodsq                           # auxiliary vector
        mov     rdx, rax
        lodsq
        test    rdx, rdx
        jz      done
        cmp     edx, 26
        jne     4b
        test    al, 2
        jz      done
        rdfsbase rax
        lea     rcx, [rip + one]
        same    rax, rcx
        lea     rcx, [rip + two]
        wrfsbase rcx
        mov     rax, fs:[32]
        same    eax, 204
        rdfsbase eax
        same    eax, ecx
        mov     ecx, 0
        wrfsbase ecx
        lea     rcx, [rip + two]
        mov     rax, fs:[rcx + 40]
        same    eax, 205
done:   finish  "segment ok"
function:
        mov     eax, 55
        ret
        .data
base:   .quad   one
