# AMX: a small product of 8-bit integers in tiles, where the processor and the kernel have them.
        .include "common.inc"
        .globl  _start
        .data
        .balign 64
config: .byte   1, 0
        .skip   14
        .word   64, 64, 64, 0, 0, 0, 0, 0
        .skip   16
        .byte   16, 16, 16, 0, 0, 0, 0, 0
        .skip   8
a:      .fill   1024, 1, 2
b:      .fill   1024, 1, 3
c:      .fill   256, 4, 0
        .text
_start: mov     eax, 7
        xor     ecx, ecx
        cpuid
        mov     ebp, edx
        bt      ebp, 24                 # AMX-TILE
        jnc     done
        bt      ebp, 25                 # AMX-INT8
        jnc     done
        mov     eax, 158
        mov     edi, 0x1023
        mov     esi, 18
        syscall
        test    rax, rax
        jnz     done
        ldtilecfg [rip + config]
        mov     ecx, 64
        lea     rsi, [rip + a]
        lea     rdi, [rip + b]
        lea     rbx, [rip + c]
        tileloadd tmm1, [rsi + rcx*1]
        tileloadd tmm2, [rdi + rcx*1]
        tileloadd tmm0, [rbx + rcx*1]
        mov     edx, 3
1:      tdpbssd tmm0, tmm1, tmm2
        dec     edx
        jnz     1b
        mov     eax, 39                 # tiles live through a call of the kernel
        syscall
        mov     ecx, 64
        tilestored [rbx + rcx*1], tmm0
        tilerelease
        cmp     dword ptr [rip + c], 3 * 64 * 6
        must    e
        cmp     dword ptr [rip + c + 1020], 3 * 64 * 6
        must    e
done:   finish  "amx ok"
