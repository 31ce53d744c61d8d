# String instructions with their references beside them, worked out by hand. Conventions as in refs_integer.s:
# every instruction line runs exactly once; `data` is 0x600000.
        .intel_syntax noprefix
        .globl  _start
        .data
data:   .ascii  "abcdefgh"
        .fill   31, 8, 0x1111111111111111
        .fill   32, 8, 0x1111111111111111
        .text
_start:
        cld
        lea     rsi, [rip + data]
        lea     rdi, [rip + data + 64]
        movsb                                   #= L data 1, S data+64 1
        movsw                                   #= L data+1 2, S data+65 2
        movsd                                   #= L data+3 4, S data+67 4
        movsq                                   #= L data+7 8, S data+71 8
        lodsb                                   #= L data+15 1
        lodsw                                   #= L data+16 2
        lodsd                                   #= L data+18 4
        lodsq                                   #= L data+22 8
        stosb                                   #= S data+79 1
        stosw                                   #= S data+80 2
        stosd                                   #= S data+82 4
        stosq                                   #= S data+86 8
        scasb                                   #= L data+94 1
        scasw                                   #= L data+95 2
        scasd                                   #= L data+97 4
        scasq                                   #= L data+101 8
        lea     rsi, [rip + data]
        lea     rdi, [rip + data + 64]
        cmpsb                                   #= L data 1, L data+64 1
        cmpsw                                   #= L data+1 2, L data+65 2
        cmpsd                                   #= L data+3 4, L data+67 4
        cmpsq                                   #= L data+7 8, L data+71 8
        # repeated
        lea     rsi, [rip + data]
        lea     rdi, [rip + data + 64]
        mov     ecx, 3
        rep movsb                               #= L data 1, S data+64 1, L data+1 1, S data+65 1, L data+2 1, S data+66 1
        rep movsq
        mov     ecx, 1
        rep stosq                               #= S data+67 8
        rep stosb
        mov     ecx, 2
        rep lodsw                               #= L data+3 2, L data+5 2
        # the second comparison differs: it ends the loop with a count left
        lea     rsi, [rip + data]
        lea     rdi, [rip + data]
        add     rdi, 1
        mov     byte ptr [rsi + 1], 'a'         #= S data+1 1
        mov     ecx, 9
        repe cmpsb                              #= L data 1, L data+1 1, L data+1 1, L data+2 1
        mov     al, 'e'
        lea     rdi, [rip + data + 2]
        mov     ecx, 9
        repne scasb                             #= L data+2 1, L data+3 1, L data+4 1
        repne scasb                             #= L data+5 1, L data+6 1, L data+7 1, L data+8 1, L data+9 1, L data+10 1
        mov     al, 0x11
        mov     ecx, 2
        repe scasb                              #= L data+11 1, L data+12 1
        # backwards
        std
        lea     rsi, [rip + data + 16]
        lea     rdi, [rip + data + 96]
        mov     ecx, 2
        rep movsd                               #= L data+16 4, S data+96 4, L data+12 4, S data+92 4
        stosq                                   #= S data+88 8
        cld
        # 32-bit addresses and counts: the upper half of rcx is ignored
        lea     rsi, [rip + data]
        lea     rdi, [rip + data + 128]
        mov     rcx, 0x100000001
        rep movsb byte ptr es:[edi], byte ptr [esi] #= L data 1, S data+128 1
        mov     rcx, 0x100000000
        rep stosb byte ptr es:[edi]
        # a segment override on the source only
        mov     eax, 158
        mov     edi, 0x1002
        mov     esi, 0x600100
        syscall
        mov     esi, 8
        lea     rdi, [rip + data]
        lods    rax, qword ptr fs:[rsi]         #= L data+264 8
        movs    qword ptr es:[rdi], qword ptr fs:[rsi] #= L data+272 8, S data 8
        xor     edi, edi
        mov     eax, 60
        syscall
