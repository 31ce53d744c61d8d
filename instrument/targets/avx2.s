# AVX2 and FMA: gathers with every index and data width, masked moves at the edge of a page, upper halves kept.
        .include "common.inc"
        .globl  _start
        .data
        .balign 64
index:  .long   0, 3, 6, 9, 12, 15, 18, 21
wide:   .quad   1, 4, 7, 10
ones:   .fill   8, 4, -1
third:  .long   0, 0, -1, 0, 0, 0, 0, 0
first:  .long   -1, -1, 0, 0, 0, 0, 0, 0
        .bss
        .balign 4096
numbers: .skip  4096
result: .skip   64
        .text
_start: mov     eax, 7
        xor     ecx, ecx
        cpuid
        bt      ebx, 5
        jnc     done
        lea     rdi, [rip + numbers]
        xor     eax, eax
1:      mov     [rdi + rax*4], eax      # numbers[i] = i
        inc     eax
        cmp     eax, 1024
        jb      1b
        # sums of gathered elements
        vmovdqa ymm1, [rip + index]
        vmovdqa ymm2, [rip + ones]
        vpgatherdd ymm0, [rdi + ymm1*4], ymm2
        vextracti128 xmm3, ymm0, 1
        vpaddd  xmm0, xmm0, xmm3
        vphaddd xmm0, xmm0, xmm0
        vphaddd xmm0, xmm0, xmm0
        vmovd   eax, xmm0
        same    eax, 84
        vpmovmskb eax, ymm2             # the mask is used up
        same    eax, 0
        vmovdqa ymm2, [rip + ones]
        vpgatherdq ymm0, [rdi + xmm1*4], ymm2
        vmovdqa ymm2, [rip + ones]
        vmovdqa ymm4, [rip + wide]
        vpgatherqq ymm0, [rdi + ymm4*8], ymm2
        vmovq   rax, xmm0
        mov     rcx, 0x300000002
        same    rax, rcx
        vmovdqa ymm2, [rip + third]
        vpxor   xmm0, xmm0, xmm0
        vpgatherqd xmm0, [rdi + ymm4*4], xmm2
        vpextrd eax, xmm0, 2
        same    eax, 7
        vmovdqa ymm2, [rip + ones]
        vgatherdpd ymm0, [rdi + xmm1*8 + 8], ymm2
        vmovdqa ymm2, [rip + ones]
        vgatherqps xmm0, [rdi + xmm4*8 - 4], xmm2
        vmovd   eax, xmm0
        same    eax, 1
        # masked moves: the disabled part lies on a page that nobody has
        mov     eax, 9
        xor     edi, edi
        mov     esi, 8192
        mov     edx, 3
        mov     r10d, 0x22
        mov     r8, -1
        xor     r9d, r9d
        syscall
        mov     rbx, rax
        lea     rdi, [rbx + 4096]
        mov     esi, 4096
        mov     eax, 11
        syscall
        mov     dword ptr [rbx + 4088], 5
        mov     dword ptr [rbx + 4092], 6
        vmovdqa ymm2, [rip + first]
        vmaskmovps ymm0, ymm2, [rbx + 4088]
        vpextrd eax, xmm0, 1
        same    eax, 6
        vpaddd  ymm0, ymm0, ymm0
        vpmaskmovd [rbx + 4088], ymm2, ymm0
        cmp     dword ptr [rbx + 4088], 10
        must    e
        vpxor   xmm2, xmm2, xmm2
        vpmaskmovq ymm0, ymm2, [rbx + 4096]     # nothing enabled: no fault
        vmaskmovpd [rbx + 8192], ymm2, ymm0
        lea     rdi, [rbx + 4080]
        vmovdqa ymm2, [rip + first]
        vpsrldq xmm2, xmm2, 4
        vmaskmovdqu xmm0, xmm2
        # upper halves live through jumps, calls and calls of the kernel
        vmovdqa ymm5, [rip + index]
        vextracti128 xmm6, ymm5, 1
        call    2f
        mov     eax, 39
        syscall
        vextracti128 xmm7, ymm5, 1
        vpcmpeqd xmm7, xmm7, xmm6
        vpmovmskb eax, xmm7
        same    eax, 0xffff
        # fused multiply and add in memory operands
        vcvtdq2ps ymm8, [rip + index]
        vxorps  xmm9, xmm9, xmm9
        vfmadd231ps ymm9, ymm8, ymm8
        vmovups [rip + result], ymm9
        vfnmadd231ps ymm9, ymm8, [rip + result]
        vcvttss2si eax, dword ptr [rip + result + 28]
        same    eax, 441
        vzeroupper
done:   finish  "avx2 ok"
2:      vpaddd  ymm6, ymm6, ymm6
        vextracti128 xmm6, ymm5, 1
        ret
