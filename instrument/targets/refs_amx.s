# AMX tiles with references beside them, worked out by hand: one reference per row. Conventions as in refs_integer.s:
# every instruction line runs exactly once; `data` is 0x600000.
        .intel_syntax noprefix
        .globl  _start
        .data
        .balign 64
data:   .byte   1, 0                            # palette 1, first row 0
        .skip   14
        .word   64, 12, 16, 0, 0, 0, 0, 0       # bytes per row
        .skip   16
        .byte   4, 3, 16, 0, 0, 0, 0, 0         # rows
        .skip   8
        .skip   8192
        .text
_start:
        lea     rbx, [rip + data]
        mov     eax, 158                        # arch_prctl(ARCH_REQ_XCOMP_PERM, tile data)
        mov     edi, 0x1023
        mov     esi, 18
        syscall
        ldtilecfg [rbx]                         #= L data 64
        mov     ecx, 128
        tileloadd tmm0, [rbx + rcx*1 + 1024]    #= L data+1024 64, L data+1152 64, L data+1280 64, L data+1408 64
        mov     rcx, -16
        tileloaddt1 tmm1, [rbx + rcx*4 + 1024]  #= L data+1024 12, L data+960 12, L data+896 12
        tilezero tmm2
        mov     ecx, 32
        tilestored [rbx + rcx*2 + 2048], tmm1   #= S data+2048 12, S data+2112 12, S data+2176 12
        tilezero tmm0
        sttilecfg [rbx + 512]                   #= S data+512 64
        tilerelease
        xor     edi, edi
        mov     eax, 60
        syscall
