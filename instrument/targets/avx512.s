# AVX-512: mask arithmetic, masked accesses beside a missing page, compression, expansion, gathers, scatters, broadcasts.
        .include "common.inc"
        .globl  _start
        .data
        .balign 64
index:  .long   0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45
        .bss
        .balign 4096
numbers: .skip  4096
result: .skip   4096
        .text
_start: mov     eax, 7
        xor     ecx, ecx
        cpuid
        bt      ebx, 16
        jnc     done
        bt      ebx, 31
        jnc     done
        bt      ecx, 6                  # VBMI2
        jnc     done
        lea     rdi, [rip + numbers]
        xor     eax, eax
1:      mov     [rdi + rax*4], eax      # numbers[i] = i
        inc     eax
        cmp     eax, 1024
        jb      1b
        # mask registers live through branches and calls of the kernel
        mov     eax, 0b1010101001010101
        kmovw   k1, eax
        knotw   k2, k1
        kortestw k1, k2
        must    c
        mov     eax, 39
        syscall
        kmovw   eax, k1
        same    eax, 0b1010101001010101
        # every other element, 100 rounds with a rotating mask
        mov     ecx, 100
        mov     edx, 0x1357
        vpxord  zmm0, zmm0, zmm0
2:      kmovw   k3, edx
        vpaddd  zmm0{k3}, zmm0, [rdi]
        vmovdqu32 [rip + result]{k3}, zmm0
        vpaddd  zmm0{k3}, zmm0, dword ptr [rdi + 4]{1to16}
        rol     dx, 1
        dec     ecx
        jnz     2b
        vextracti32x4 xmm1, zmm0, 3
        vpextrd eax, xmm1, 3
        mov     r12d, eax
        # compress the odd ones, expand them again
        mov     eax, 0xaaaa
        kmovw   k4, eax
        vmovdqu32 zmm2, [rdi]
        vpcompressd [rip + result]{k4}, zmm2
        cmp     dword ptr [rip + result + 28], 15
        must    e
        vpexpandd zmm3{k4}{z}, [rip + result]
        vpcmpeqd k5{k4}, zmm3, zmm2
        kmovw   eax, k5
        same    eax, 0xaaaa
        vpcompressb [rip + result]{k4}, zmm2
        vpexpandb zmm4{k4}{z}, [rip + result]
        # gather, scatter with colliding indices (the last one wins)
        vmovdqa32 zmm5, [rip + index]
        kxnorw  k6, k6, k6
        vpgatherdd zmm6{k6}, [rdi + zmm5*4]
        kortestw k6, k6
        must    e
        vpcmpeqd k7, zmm6, zmm5
        kortestw k7, k7
        must    c
        vpxord  zmm7, zmm7, zmm7
        kxnorw  k6, k6, k6
        lea     rsi, [rip + result]
        vpscatterdd [rsi + zmm7*4]{k6}, zmm6
        cmp     dword ptr [rip + result], 45
        must    e
        # masked accesses: the disabled part lies on a page that nobody has
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
        mov     eax, 0x0f
        kmovw   k1, eax
        mov     dword ptr [rbx + 4080], 7
        vmovdqu32 zmm8{k1}{z}, [rbx + 4080]
        vpaddd  zmm8{k1}, zmm8, [rbx + 4080]
        vpdpbusd zmm8{k1}, zmm8, [rbx + 4080]
        vmovdqu32 [rbx + 4080]{k1}, zmm8
        vpmovzxbd zmm9{k1}, [rbx + 4092]
        vcvtps2pd zmm9{k1}, [rbx + 4080]
        vpmovdb [rbx + 4092]{k1}, zmm9
        kxorw   k2, k2, k2
        vmovdqu8 zmm9{k2}, [rbx + 4096]
        vpaddd  zmm9{k2}, zmm9, dword ptr [rbx + 4096]{1to16}
        vpbroadcastd zmm9{k2}, [rbx + 4096]
        vbroadcasti32x4 zmm9{k2}, [rbx + 4096]
        vmovss  xmm9{k2}, [rbx + 4096]
        vmovdqu64 [rbx + 4096]{k2}, zmm9
        vpcompressd [rbx + 4080]{k1}, zmm9
        vpexpandd zmm9{k1}, [rbx + 4080]
        kxnorw  k3, k3, k3
        vpgatherdd xmm9{k2}, [rbx + xmm5 + 4096]
        # ternary logic, rotates, conflicts, the upper sixteen registers
        vmovdqu32 zmm16, [rip + index]
        vmovdqu32 zmm31, [rip + index]
        vpternlogd zmm16, zmm31, [rip + index], 0x96    # a ^ a ^ a = a
        vpcmpeqd k4, zmm16, zmm31
        kortestw k4, k4
        must    c
        vprold  zmm17, zmm16, 7
        vpconflictd zmm18, [rip + index]
        vplzcntd zmm19, [rip + index]
        vaddps  zmm20, zmm19, zmm18, {rn-sae}
        vzeroupper
        same    r12d, 784               # 49 of 100 rounds have bit 15 set: 49 * (15 + 1)
done:   finish  "avx512 ok"
