# x87 and MMX arithmetic, and state saved and restored in every format.
        .include "common.inc"
        .globl  _start
        .data
        .balign 64
area:   .skip   8192
three:  .double 3.0
tenth:  .double 0.1
whole:  .quad   0
bcd:    .skip   16
words:  .word   1, 2, 3, 4
        .text
_start: # sum of 0.1, ten times, rounded: 1 in extended precision
        fninit
        fldz
        mov     ecx, 10
1:      fadd    qword ptr [rip + tenth]
        dec     ecx
        jnz     1b
        fistp   qword ptr [rip + whole]
        cmp     qword ptr [rip + whole], 1
        must    e
        # square root, transcendental functions, the stack of registers
        fld     qword ptr [rip + three]
        fmul    st(0), st(0)
        fsqrt
        fld     qword ptr [rip + three]
        fucomip st(0), st(1)
        must    e
        fstp    st(0)
        fldpi
        fsin
        fabs
        fld     qword ptr [rip + tenth]
        fcomip  st(0), st(1)
        must    a
        fstp    st(0)
        fld1
        fldl2e
        fxch
        fscale
        fyl2x
        fstp    st(0)
        fild    qword ptr [rip + whole]
        fbstp   [rip + bcd]
        cmp     byte ptr [rip + bcd], 1
        must    e
        # the control word changes rounding
        fnstcw  [rip + bcd]
        or      word ptr [rip + bcd], 0x0c00
        fldcw   [rip + bcd]
        fld     qword ptr [rip + three]
        fmul    qword ptr [rip + tenth]
        fistp   dword ptr [rip + whole]
        cmp     dword ptr [rip + whole], 0
        must    e
        fninit
        # fxsave keeps xmm registers and the x87 stack
        movq    xmm5, [rip + three]
        fld     qword ptr [rip + three]
        fxsave  [rip + area]
        fninit
        pxor    xmm5, xmm5
        fxrstor [rip + area]
        movq    rax, xmm5
        cmp     rax, [rip + three]
        must    e
        fistp   dword ptr [rip + whole]
        cmp     dword ptr [rip + whole], 3
        must    e
        fnstenv [rip + area]
        fldenv  [rip + area]
        fnsave  [rip + area]
        frstor  [rip + area]
        # MMX
        movq    mm0, [rip + words]
        paddw   mm0, [rip + words]
        pmaddwd mm0, [rip + words]
        movd    eax, mm0
        same    eax, 10
        pcmpeqb mm1, mm1
        lea     rdi, [rip + area]
        maskmovq mm0, mm1
        movntq  [rip + area + 8], mm0
        emms
        # xsave in the standard and the compact format, where there is any
        mov     eax, 1
        cpuid
        bt      ecx, 27
        jnc     done
        movq    xmm6, [rip + three]
        lea     rdi, [rip + area]
        xor     eax, eax
        mov     ecx, 1024
        rep stosq
        xor     edx, edx
        mov     eax, 3
        xsave   [rip + area]
        pxor    xmm6, xmm6
        xrstor  [rip + area]
        movq    rax, xmm6
        cmp     rax, [rip + three]
        must    e
        mov     eax, 13
        mov     ecx, 1
        cpuid
        bt      eax, 1
        jnc     done
        mov     eax, -1                 # all that the kernel allows, but not the tiles
        mov     edx, -1
        and     eax, 0xfff9ffff
        xsavec  [rip + area]
        pxor    xmm6, xmm6
        mov     eax, -1
        and     eax, 0xfff9ffff
        xrstor  [rip + area]
        movq    rax, xmm6
        cmp     rax, [rip + three]
        must    e
        xor     ecx, ecx
        xgetbv
        same    edx, 0
done:   finish  "x87 ok"
