# AVX, AVX2 and FMA with references beside them, worked out by hand. Conventions as in refs_integer.s: every instruction
# line runs exactly once; `data` is 0x600000.
        .intel_syntax noprefix
        .globl  _start
        .data
        .balign 64
data:   .long   0, 1, 2, 3, 4, 5, 6, 7
even:   .long   -1, 0, -1, 0, -1, 0, -1, 0      # data+32
middle: .long   0, 0, -1, 0, 0, -1, 0, 0        # data+64
none:   .quad   0, 0, 0, 0                      # data+96
step:   .quad   3, -1, 0, 5                     # data+128
pair:   .quad   0, -1, -1, 0                    # data+160
        .skip   4096
        .text
_start:
        lea     rbx, [rip + data]
        vmovaps ymm0, [rbx]                     #= L data 32
        vmovups [rbx + 257], ymm0               #= S data+257 32
        vmovdqu xmm1, [rbx]                     #= L data 16
        vaddps  ymm0, ymm0, [rbx + 32]          #= L data+32 32
        vfmadd231ps ymm0, ymm0, [rbx]           #= L data 32
        vfmadd213sd xmm0, xmm0, [rbx]           #= L data 8
        vbroadcastss ymm0, [rbx + 4]            #= L data+4 4
        vbroadcastsd ymm0, [rbx + 8]            #= L data+8 8
        vbroadcastf128 ymm0, [rbx]              #= L data 16
        vpbroadcastb xmm0, [rbx + 1]            #= L data+1 1
        vpbroadcastw xmm0, [rbx + 1]            #= L data+1 2
        vinserti128 ymm0, ymm0, [rbx + 16], 1   #= L data+16 16
        vextracti128 [rbx + 256], ymm0, 1       #= S data+256 16
        vpmovzxbd ymm0, [rbx]                   #= L data 8
        vcvtps2pd ymm0, [rbx]                   #= L data 16
        vcvtph2ps ymm0, [rbx]                   #= L data 16
        vcvtps2ph [rbx + 256], ymm0, 0          #= S data+256 16
        vptest  ymm0, [rbx]                     #= L data 32
        vpslld  ymm0, ymm0, [rbx]               #= L data 16
        vpsllvd ymm0, ymm0, [rbx]               #= L data 32
        vmovntdqa ymm0, [rbx]                   #= L data 32
        vmovntps [rbx + 256], ymm0              #= S data+256 32
        vmovhps xmm0, xmm0, [rbx]               #= L data 8
        andn    eax, eax, [rbx]                 #= L data 4
        bextr   eax, [rbx], eax                 #= L data 4
        pdep    rax, rax, [rbx]                 #= L data 8
        rorx    rax, [rbx], 3                   #= L data 8
        mulx    rcx, rax, [rbx]                 #= L data 8
        sarx    ecx, [rbx + 4], eax             #= L data+4 4
        # masked moves: from the first to the last enabled element
        vmovdqa ymm1, [rbx + 32]                #= L data+32 32
        vmovdqa ymm2, [rbx + 64]                #= L data+64 32
        vmovdqa ymm3, [rbx + 96]                #= L data+96 32
        vmovdqu ymm4, [rbx + 160]               #= L data+160 32
        vmaskmovps ymm0, ymm1, [rbx]            #= L data 28
        vmaskmovps [rbx + 256], ymm2, ymm0      #= S data+264 16
        vmaskmovps ymm0, ymm3, [rbx]
        vmaskmovpd ymm0, ymm4, [rbx]            #= L data+8 16
        vmaskmovpd [rbx + 256], xmm4, xmm0      #= S data+264 8
        vpmaskmovd xmm0, xmm2, [rbx]            #= L data+8 4
        vpmaskmovd [rbx + 256], ymm2, ymm0      #= S data+264 16
        vpmaskmovq ymm0, ymm4, [rbx]            #= L data+8 16
        vpmaskmovq [rbx + 256], ymm3, ymm0
        vpxor   xmm5, xmm5, xmm5
        lea     rdi, [rbx + 256]
        vmaskmovdqu xmm0, xmm5
        vmaskmovdqu xmm0, xmm1                  #= S data+256 12
        # gathers: one reference per enabled element; the mask is used up by each
        vmovdqa ymm6, [rbx]                     #= L data 32
        vgatherdps ymm0, [rbx + ymm6*4], ymm1   #= L data 4, L data+8 4, L data+16 4, L data+24 4
        vgatherdps ymm0, [rbx + ymm6*4], ymm1
        vpcmpeqd ymm1, ymm1, ymm1
        vgatherdpd ymm0, [rbx + xmm6*8], ymm1   #= L data 8, L data+8 8, L data+16 8, L data+24 8
        vpcmpeqd ymm1, ymm1, ymm1
        vpgatherdd xmm0, [rbx + xmm6*2 + 1], xmm1 #= L data+1 4, L data+3 4, L data+5 4, L data+7 4
        vmovdqu ymm7, [rbx + 128]               #= L data+128 32
        vpcmpeqd ymm1, ymm1, ymm1
        vpgatherqq ymm0, [rbx + ymm7*8 + 8], ymm1 #= L data+32 8, L data 8, L data+8 8, L data+48 8
        vpcmpeqd ymm1, ymm1, ymm1
        vgatherqps xmm0, [rbx + ymm7*1 + 64], xmm1 #= L data+67 4, L data+63 4, L data+64 4, L data+69 4
        vpcmpeqd ymm1, ymm1, ymm1
        vgatherqps xmm0, [rbx + xmm7*1 + 64], xmm1 #= L data+67 4, L data+63 4
        vgatherdpd xmm0, [rbx + xmm6*8], xmm4   #= L data+8 8
        vzeroupper
        xor     edi, edi
        mov     eax, 60
        syscall
