# AVX-512 (F, BW, DQ, VL, VBMI2) with references beside them, worked out by hand. Conventions as in refs_integer.s:
# every instruction line runs exactly once; `data` is 0x600000.
        .intel_syntax noprefix
        .globl  _start
        .data
        .balign 64
data:   .long   0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
step:   .quad   3, -1, 0, 5, 7, 9, 11, 2        # data+64
        .skip   8192
        .text
_start:
        lea     rbx, [rip + data]
        mov     eax, 0b0010110001001000
        kmovw   k1, eax
        kxnorw  k2, k2, k2
        kxorw   k3, k3, k3
        mov     rax, 0x0000100000000100
        kmovq   k4, rax
        kmovw   [rbx + 512], k1                 #= S data+512 2
        kmovq   k5, [rbx + 512]                 #= L data+512 8
        kmovb   [rbx + 512], k1                 #= S data+512 1
        vmovups zmm0, [rbx]                     #= L data 64
        vmovdqu8 [rbx + 515], zmm0              #= S data+515 64
        vmovdqa64 zmm17, [rbx + 64]             #= L data+64 64
        vmovdqu32 xmm0, [rbx + 64]              #= L data+64 16
        vaddps  zmm0, zmm0, [rip + data]        #= L data 64
        vaddps  zmm0, zmm0, dword ptr [rbx + 4]{1to16} #= L data+4 4
        vaddpd  ymm0, ymm0, qword ptr [rbx + 8]{1to4} #= L data+8 8
        vmovntps [rbx + 512], zmm0              #= S data+512 64
        vpmovdb [rbx + 512], zmm0               #= S data+512 16
        vpmovqw [rbx + 512], ymm0               #= S data+512 8
        vpmovzxbd zmm0, [rbx]                   #= L data 16
        vcvtps2pd zmm0, [rbx]                   #= L data 32
        vextracti64x4 [rbx + 512], zmm0, 1      #= S data+512 32
        vinserti32x4 zmm0, zmm0, [rbx], 2       #= L data 16
        vbroadcasti32x4 zmm0, [rbx]             #= L data 16
        vbroadcastss zmm0, [rbx + 4]            #= L data+4 4
        vpternlogd zmm0, zmm0, [rbx], 0x55      #= L data 64
        vpermd  zmm0, zmm0, [rbx]               #= L data 64
        vpcmpeqd k6, zmm0, [rbx]                #= L data 64
        # k1 has bits 3, 6, 10, 11, 13: bytes 12 to 56 of 4-byte elements
        vmovups zmm1{k1}, [rbx]                 #= L data+12 44
        vmovups [rbx + 512]{k1}, zmm1           #= S data+524 44
        vmovdqu32 ymm1{k1}{z}, [rbx]            #= L data+12 16
        vmovdqu64 [rbx + 512]{k1}, zmm1         #= S data+536 32
        vmovdqu16 zmm1{k1}, [rbx]               #= L data+6 22
        vmovdqu8 xmm1{k1}, [rbx]                #= L data+3 11
        vmovdqu8 [rbx + 512]{k4}, zmm1          #= S data+520 37
        vaddps  zmm1{k1}, zmm1, [rbx]           #= L data+12 44
        vaddps  zmm1{k1}, zmm1, dword ptr [rbx]{1to16} #= L data 4
        vaddps  xmm1{k4}, xmm1, dword ptr [rbx]{1to4}
        vpcmpeqd k6{k1}, zmm1, [rbx]            #= L data+12 44
        vmovups zmm1{k3}, [rbx]
        vmovups [rbx]{k3}, zmm1
        vaddps  zmm1{k3}{z}, zmm1, [rbx]
        vmovss  xmm1{k1}, [rbx]
        vmovss  xmm1{k2}, [rbx]                 #= L data 4
        vmovsd  [rbx + 512]{k2}, xmm1           #= S data+512 8
        vaddsd  xmm1{k3}, xmm1, [rbx]
        vpmovdb [rbx + 512]{k1}, zmm1           #= S data+515 11
        vpmovzxbd zmm1{k1}, [rbx]               #= L data+3 11
        vpbroadcastd zmm1{k1}, [rbx + 8]        #= L data+8 4
        vpbroadcastd zmm1{k3}, [rbx + 8]
        vbroadcasti32x4 zmm1{k1}, [rbx]         #= L data 16
        # permutations read their whole source whatever the mask
        vpermd  zmm1{k1}, zmm1, [rbx]           #= L data 64
        vpshufb zmm1{k1}, zmm1, [rbx]           #= L data 64
        vpunpckldq zmm1{k3}, zmm1, [rbx]        #= L data 64
        # compress and expand: as many elements as bits
        vpcompressd [rbx + 512]{k1}, zmm1       #= S data+512 20
        vcompresspd [rbx + 512]{k1}, zmm1       #= S data+512 16
        vpcompressb [rbx + 512]{k4}, zmm1       #= S data+512 2
        vpcompressd [rbx + 512]{k3}, zmm1
        vpcompressd [rbx + 512], zmm1           #= S data+512 64
        vpexpandd zmm1{k1}, [rbx]               #= L data 20
        vexpandps ymm1{k1}{z}, [rbx]            #= L data 8
        vpexpandw zmm1{k4}, [rbx]               #= L data 2
        vpexpandq zmm1{k3}, [rbx]
        # gathers and scatters use their mask up
        vmovdqu32 zmm2, [rbx]                   #= L data 64
        vmovdqu64 zmm18, [rbx + 64]             #= L data+64 64
        kmovw   k6, k1
        vpgatherdd zmm3{k6}, [rbx + zmm2*4]     #= L data+12 4, L data+24 4, L data+40 4, L data+44 4, L data+52 4
        vpgatherdd zmm3{k6}, [rbx + zmm2*4]
        kmovw   k6, k1
        vgatherdpd zmm3{k6}, [rbx + ymm2*8]     #= L data+24 8, L data+48 8
        kmovw   k6, k1
        vpgatherqd ymm3{k6}, [rbx + zmm18*8]    #= L data+40 4, L data+88 4
        kxnorw  k6, k6, k6
        vgatherqpd ymm3{k6}, [rbx + ymm18*8 + 8] #= L data+32 8, L data 8, L data+8 8, L data+48 8
        kmovw   k6, k1
        vpscatterdd [rbx + zmm2*4 + 512]{k6}, zmm3 #= S data+524 4, S data+536 4, S data+552 4, S data+556 4, S data+564 4
        vpscatterdd [rbx + zmm2*4 + 512]{k6}, zmm3
        kmovw   k6, k1
        vscatterqps [rbx + zmm18*4 + 512]{k6}, ymm3 #= S data+532 4, S data+556 4
        kxnorw  k6, k6, k6
        vscatterdpd [rbx + xmm2*8 + 512]{k6}, ymm3 #= S data+512 8, S data+520 8, S data+528 8, S data+536 8
        vzeroupper
        xor     edi, edi
        mov     eax, 60
        syscall
