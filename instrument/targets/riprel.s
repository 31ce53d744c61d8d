# Everything that can name memory relative to the instruction pointer, with immediates behind the displacement too.
        .include "common.inc"
        .globl  _start
        .data
        .balign 64
v:      .quad   0x1111111111111111, 0x2222222222222222
w:      .quad   3, 4, 5, 6, 7, 8
f:      .double 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5
s:      .float  1.5, 2.5, 3.5, 4.5
out:    .skip   128
to1:    .quad   step1
to2:    .quad   step2
fun:    .quad   function
        .text
_start: mov     rax, [rip + v]
        mov     ebx, [rip + v + 8]
        same    ebx, 0x22222222
        mov     byte ptr [rip + out], 1
        mov     word ptr [rip + out + 2], 0x0203
        mov     dword ptr [rip + out + 4], 0x04050607
        mov     qword ptr [rip + out + 8], -2
        cmp     byte ptr [rip + out], 1
        must    e
        cmp     word ptr [rip + out + 2], 0x0203
        must    e
        cmp     dword ptr [rip + out + 4], 0x04050607
        must    e
        cmp     qword ptr [rip + out + 8], -2
        must    e
        test    dword ptr [rip + out + 4], 0x7
        must    ne
        add     qword ptr [rip + w], 10
        cmp     qword ptr [rip + w], 13
        must    e
        imul    rcx, [rip + w], 1000
        same    rcx, 13000
        imul    ecx, [rip + w + 8], -3
        same    ecx, -12
        shl     qword ptr [rip + w + 8], 4
        cmp     qword ptr [rip + w + 8], 64
        must    e
        shld    [rip + w + 8], rax, 4
        bt      dword ptr [rip + w + 16], 2
        must    c
        lea     rdx, [rip + w]
        lea     rsi, [rip + v]
        sub     rdx, rsi
        same    edx, 16
        lea     edx, [rip + w]
        push    [rip + w + 24]
        pop     [rip + out + 16]
        cmp     qword ptr [rip + out + 16], 6
        must    e
        mov     eax, 6
        mov     ecx, 99
        lock cmpxchg [rip + w + 24], ecx
        must    e
        cmp     dword ptr [rip + w + 24], 99
        must    e
        xchg    [rip + w + 32], rcx
        same    rcx, 7
        sete    [rip + out + 24]
        cmovne  rax, [rip + v]
        movzx   edx, byte ptr [rip + w + 32]
        same    edx, 99
        xor     edx, edx
        div     qword ptr [rip + w + 40]
        not     qword ptr [rip + out]
        # every register as the other operand
        .irp r, rax, rcx, rdx, rbx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
        mov     [rip + out + 32], \r
        mov     \r, [rip + w + 40]
        same    \r, 8
        .endr
        mov     [rip + out + 40], rsp
        same    rsp, [rip + out + 40]
        mov     rsp, [rip + out + 40]
        mov     [rip + out + 40], ah
        mov     bh, [rip + w + 40]
        same    bh, 8
        # addresses cut to 32 bits (eip-relative)
        mov     eax, [eip + w + 40]
        same    eax, 8
        # SSE with and without immediates
        movsd   xmm0, [rip + f]
        addsd   xmm0, [rip + f + 8]
        cvttsd2si eax, xmm0
        same    eax, 4
        movapd  xmm1, [rip + f + 16]
        shufpd  xmm1, [rip + f + 16], 1
        pshufd  xmm2, [rip + v], 0x1b
        movd    eax, xmm2
        same    eax, 0x22222222
        ucomisd xmm0, [rip + f]
        must    a
        pinsrd  xmm2, dword ptr [rip + w + 40], 3
        pextrd  [rip + out + 48], xmm2, 3
        cmp     dword ptr [rip + out + 48], 8
        must    e
        movups  [rip + out + 64], xmm2
        ldmxcsr [rip + csr]
        # x87
        fld     qword ptr [rip + f]
        fadd    dword ptr [rip + s]
        fistp   dword ptr [rip + out + 52]
        cmp     dword ptr [rip + out + 52], 3
        must    e
        # jumps and calls through pointers
        jmp     [rip + to1]
        wrong
step1:  call    [rip + fun]
        same    eax, 17
        mov     rax, [rip + to2]
        jmp     rax
        wrong
function:
        mov     eax, 17
        ret
step2:  # VEX and EVEX where the processor has them
        mov     eax, 7
        xor     ecx, ecx
        cpuid
        mov     ebp, ebx
        bt      ebp, 5
        jnc     done
        vmovupd ymm0, [rip + f]
        vaddpd  ymm0, ymm0, [rip + f]
        vfmadd231pd ymm0, ymm0, [rip + f]
        vpermilps ymm1, [rip + f], 0x1b
        vpalignr ymm1, ymm1, [rip + f], 3
        vinsertf128 ymm1, ymm1, [rip + f], 1
        vcmppd  ymm2, ymm0, [rip + f], 1
        vextractf128 [rip + out + 64], ymm0, 1
        vmovupd [rip + out + 64], ymm0
        vblendvpd ymm2, ymm1, [rip + f], ymm0
        mov     eax, 0x0101
        bextr   eax, [rip + w], eax
        rorx    rax, [rip + w + 40], 3
        same    rax, 1
        vzeroupper
        bt      ebp, 16
        jnc     done
        bt      ebp, 31
        jnc     done
        vmovupd zmm16, [rip + f]
        vaddpd  zmm16, zmm16, [rip + f]
        vaddpd  zmm16, zmm16, qword ptr [rip + f]{1to8}
        mov     eax, 0x0f
        kmovw   k1, eax
        vcmppd  k2{k1}, zmm16, [rip + f], 6
        kmovw   eax, k2
        same    eax, 15
        vpternlogq zmm17, zmm16, [rip + f], 0x96
        vmovupd [rip + out + 64]{k1}, zmm16
        kmovw   [rip + out + 56], k1
        cmp     word ptr [rip + out + 56], 15
        must    e
        vzeroupper
done:   finish  "riprel ok"
        .data
csr:    .long   0x1f80
