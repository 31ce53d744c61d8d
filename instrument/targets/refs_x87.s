# x87, SSE and state-saving instructions with their references beside them, worked out by hand. Conventions as in
# refs_integer.s: every instruction line runs exactly once; `data` is 0x600000.
        .intel_syntax noprefix
        .globl  _start
        .data
        .balign 64
data:   .quad   1, 2, 3, 4, 5, 6, 7, 8
        .skip   8128
        .text
_start:
        lea     rbx, [rip + data]
        fninit
        fild    word ptr [rbx]                  #= L data 2
        fild    dword ptr [rbx]                 #= L data 4
        fild    qword ptr [rbx]                 #= L data 8
        fstp    dword ptr [rbx + 64]            #= S data+64 4
        fstp    qword ptr [rbx + 72]            #= S data+72 8
        fstp    tbyte ptr [rbx + 80]            #= S data+80 10
        fld     dword ptr [rbx + 64]            #= L data+64 4
        fadd    qword ptr [rbx + 72]            #= L data+72 8
        fmul    dword ptr [rbx + 64]            #= L data+64 4
        fld     tbyte ptr [rbx + 80]            #= L data+80 10
        fiadd   word ptr [rbx]                  #= L data 2
        fistp   word ptr [rbx + 96]             #= S data+96 2
        fist    dword ptr [rbx + 96]            #= S data+96 4
        fisttp  qword ptr [rbx + 96]            #= S data+96 8
        fld1
        fbstp   [rbx + 96]                      #= S data+96 10
        fbld    [rbx + 96]                      #= L data+96 10
        fnstcw  [rbx + 112]                     #= S data+112 2
        fldcw   [rbx + 112]                     #= L data+112 2
        fnstsw  [rbx + 114]                     #= S data+114 2
        fnstsw  ax
        fnstenv [rbx + 128]                     #= S data+128 28
        fldenv  [rbx + 128]                     #= L data+128 28
        fnsave  [rbx + 128]                     #= S data+128 108
        frstor  [rbx + 128]                     #= L data+128 108
        fninit
        stmxcsr [rbx + 116]                     #= S data+116 4
        ldmxcsr [rbx + 116]                     #= L data+116 4
        fxsave  [rbx + 256]                     #= S data+256 512
        fxrstor [rbx + 256]                     #= L data+256 512
        fxsave64 [rbx + 256]                    #= S data+256 512
        fxrstor64 [rbx + 256]                   #= L data+256 512
        # SSE
        movaps  xmm0, [rbx]                     #= L data 16
        movups  xmm1, [rbx + 3]                 #= L data+3 16
        movss   xmm2, [rbx]                     #= L data 4
        movsd   xmm2, [rbx]                     #= L data 8
        movq    xmm3, [rbx]                     #= L data 8
        movd    xmm3, [rbx]                     #= L data 4
        movhps  xmm3, [rbx + 8]                 #= L data+8 8
        movlps  [rbx + 64], xmm3                #= S data+64 8
        movhpd  [rbx + 64], xmm3                #= S data+64 8
        movss   [rbx + 64], xmm2                #= S data+64 4
        movdqu  [rbx + 65], xmm0                #= S data+65 16
        movntdq [rbx + 64], xmm0                #= S data+64 16
        movntps [rbx + 64], xmm0                #= S data+64 16
        lddqu   xmm4, [rbx + 1]                 #= L data+1 16
        movddup xmm4, [rbx]                     #= L data 8
        addps   xmm0, [rbx]                     #= L data 16
        addsd   xmm0, [rbx]                     #= L data 8
        addss   xmm0, [rbx]                     #= L data 4
        cvtsi2sd xmm0, dword ptr [rbx]          #= L data 4
        cvtsi2ss xmm0, qword ptr [rbx]          #= L data 8
        cvtps2pd xmm0, [rbx]                    #= L data 8
        pshufd  xmm0, [rbx], 3                  #= L data 16
        paddd   xmm0, [rbx]                     #= L data 16
        pinsrb  xmm0, [rbx + 1], 2              #= L data+1 1
        pinsrw  xmm0, [rbx + 1], 2              #= L data+1 2
        pinsrd  xmm0, [rbx + 1], 2              #= L data+1 4
        pinsrq  xmm0, [rbx + 1], 1              #= L data+1 8
        pextrb  [rbx + 64], xmm0, 2             #= S data+64 1
        pextrw  [rbx + 64], xmm0, 2             #= S data+64 2
        pextrd  [rbx + 64], xmm0, 2             #= S data+64 4
        pextrq  [rbx + 64], xmm0, 1             #= S data+64 8
        extractps [rbx + 64], xmm0, 1           #= S data+64 4
        pmovzxbd xmm0, [rbx]                    #= L data 4
        pmovsxwq xmm0, [rbx]                    #= L data 4
        pmovsxbq xmm0, [rbx]                    #= L data 2
        insertps xmm0, [rbx], 0x10              #= L data 4
        pcmpistri xmm0, [rbx], 0                #= L data 16
        aeskeygenassist xmm0, [rbx], 1          #= L data 16
        ucomisd xmm0, [rbx]                     #= L data 8
        # bytes chosen by sign bits: 3 to 6 of xmm1
        mov     rax, 0x0080008080000000
        movq    xmm1, rax
        lea     rdi, [rbx + 64]
        maskmovdqu xmm0, xmm1                   #= S data+67 4
        pxor    xmm1, xmm1
        maskmovdqu xmm0, xmm1
        movq    mm1, rax
        movq    mm0, [rbx]                      #= L data 8
        maskmovq mm0, mm1                       #= S data+67 4
        movntq  [rbx + 64], mm0                 #= S data+64 8
        emms
        # state areas: x87 only, x87 + SSE + AVX (standard format: 576 + 256), and the compact format
        xor     edx, edx
        mov     eax, 1
        xsave   [rbx + 1024]                    #= S data+1024 576
        mov     eax, 7
        xsave   [rbx + 1024]                    #= S data+1024 832
        xsave64 [rbx + 1024]                    #= S data+1024 832
        xsaveopt [rbx + 1024]                   #= S data+1024 832
        xrstor  [rbx + 1024]                    #= L data+1024 832
        xrstor64 [rbx + 1024]                   #= L data+1024 832
        xsavec  [rbx + 2048]                    #= S data+2048 832
        xrstor  [rbx + 2048]                    #= L data+2048 832
        mov     eax, 3
        xrstor  [rbx + 2048]                    #= L data+2048 576
        mov     eax, 4
        xsavec  [rbx + 2048]                    #= S data+2048 832
        xor     eax, eax
        xsave   [rbx + 1024]                    #= S data+1024 576
        xor     edi, edi
        mov     eax, 60
        syscall
