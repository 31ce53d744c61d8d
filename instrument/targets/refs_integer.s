# Straight-line integer code with the references of every instruction beside it, worked out by hand from the manual.
# Every instruction line runs exactly once, in order: the number of such lines is the instruction count.
# `#= L address size, S address size`; `data` is 0x600000 and `stack` 0x604000, fixed by the linker.
        .intel_syntax noprefix
        .globl  _start
        .data
data:   .fill   64, 8, 0x0102030405060708
        .skip   0x4000 - 512
stack:  .quad   0
        .text
_start:
        lea     rsp, [rip + stack]
        lea     rbx, [rip + data]
        mov     rax, [rbx]                      #= L data 8
        mov     eax, [rip + data + 4]           #= L data+4 4
        mov     ax, [rbx + 2]                   #= L data+2 2
        mov     al, [rbx + 1]                   #= L data+1 1
        movzx   ecx, byte ptr [rbx + 3]         #= L data+3 1
        movsx   rcx, word ptr [rbx + 6]         #= L data+6 2
        movsxd  rcx, dword ptr [rbx + 60]       #= L data+60 4
        mov     [rbx + 8], rax                  #= S data+8 8
        mov     [rbx + 8], eax                  #= S data+8 4
        mov     [rbx + 8], ah                   #= S data+8 1
        mov     word ptr [rbx + 63], 7          #= S data+63 2
        mov     qword ptr [rip + data + 16], 3  #= S data+16 8
        movabs  rax, [0x600020]                 #= L data+32 8
        movabs  [0x600028], al                  #= S data+40 1
        add     [rbx], rax                      #= L data 8, S data 8
        add     rax, [rbx]                      #= L data 8
        adc     dword ptr [rbx + 4], 1          #= L data+4 4, S data+4 4
        cmp     byte ptr [rbx], 3               #= L data 1
        cmp     [rbx], rax                      #= L data 8
        test    [rbx + 1], cl                   #= L data+1 1
        inc     word ptr [rbx]                  #= L data 2, S data 2
        neg     byte ptr [rbx]                  #= L data 1, S data 1
        not     qword ptr [rbx]                 #= L data 8, S data 8
        shl     dword ptr [rbx], 3              #= L data 4, S data 4
        shld    [rbx], rax, 5                   #= L data 8, S data 8
        rcr     byte ptr [rbx + 9], cl          #= L data+9 1, S data+9 1
        xchg    [rbx + 16], rdx                 #= L data+16 8, S data+16 8
        lock xadd [rbx + 24], edx               #= L data+24 4, S data+24 4
        cmpxchg [rbx + 24], edx                 #= L data+24 4, S data+24 4
        lock cmpxchg8b [rbx + 8]                #= L data+8 8, S data+8 8
        lock cmpxchg16b [rbx + 16]              #= L data+16 16, S data+16 16
        imul    rax, [rbx], 3                   #= L data 8
        mul     dword ptr [rbx + 32]            #= L data+32 4
        cmovz   rax, [rbx]                      #= L data 8
        cmovnz  rax, [rbx]                      #= L data 8
        sete    [rbx + 5]                       #= S data+5 1
        bswap   rax
        movbe   rax, [rbx]                      #= L data 8
        movbe   [rbx + 8], eax                  #= S data+8 4
        crc32   eax, word ptr [rbx]             #= L data 2
        popcnt  rax, [rbx]                      #= L data 8
        movnti  [rbx], rax                      #= S data 8
        # addresses: index, scale, negative displacement, 32-bit registers, no base
        mov     rcx, 3
        mov     rax, [rbx + rcx*8]              #= L data+24 8
        mov     rax, [rbx + rcx*8 - 16]         #= L data+8 8
        mov     rax, [rcx*4 + 0x600000]         #= L data+12 8
        mov     rcx, -1
        mov     eax, [rbx + rcx*4 + 8]          #= L data+4 4
        mov     ecx, -1
        mov     eax, [ebx + ecx*1 + 9]          #= L data+8 4
        mov     eax, ds:[0x600008]              #= L data+8 4
        lea     rax, [rbx + rcx*8]
        nop     word ptr [rbx + rcx*8]
        nop     dword ptr [rax]
        endbr64
        pause
        # bit strings: the bit number moves the address
        mov     rax, 200
        bt      [rbx], rax                      #= L data+24 8
        bts     [rbx], eax                      #= L data+24 4, S data+24 4
        btr     [rbx], ax                       #= L data+24 2, S data+24 2
        mov     rax, -1
        btc     [rbx + 64], rax                 #= L data+56 8, S data+56 8
        btc     [rbx + 64], eax                 #= L data+60 4, S data+60 4
        lock bts [rbx + 64], ax                 #= L data+62 2, S data+62 2
        bt      qword ptr [rbx], 63             #= L data 8
        bts     dword ptr [rbx], 33             #= L data 4, S data 4
        # the stack
        push    rax                             #= S stack-8 8
        push    5                               #= S stack-16 8
        push    ax                              #= S stack-18 2
        pop     ax                              #= L stack-18 2
        push    [rsp + 8]                       #= L stack-8 8, S stack-24 8
        push    [rbx]                           #= L data 8, S stack-32 8
        pop     [rbx + 8]                       #= L stack-32 8, S data+8 8
        pop     [rsp + 8]                       #= L stack-24 8, S stack-8 8
        push    rsp                             #= S stack-24 8
        pop     rsp                             #= L stack-24 8
        pushfq                                  #= S stack-24 8
        popfq                                   #= L stack-24 8
        pop     rcx                             #= L stack-16 8
        pop     rcx                             #= L stack-8 8
        call    1f                              #= S stack-8 8
1:
        add     rsp, 8
        lea     rax, [rip + 2f]
        mov     [rbx + 64], rax                 #= S data+64 8
        call    [rbx + 64]                      #= L data+64 8, S stack-8 8
2:
        lea     rax, [rip + 3f]
        mov     [rsp], rax                      #= S stack-8 8
        ret                                     #= L stack-8 8
3:
        lea     rax, [rip + 4f]
        push    rax                             #= S stack-8 8
        jmp     [rsp]                           #= L stack-8 8
4:
        lea     rax, [rip + 5f]
        mov     [rsp], rax                      #= S stack-8 8
        ret     16                              #= L stack-8 8
5:
        mov     rbp, rsp
        sub     rsp, 16
        enter   32, 0                           #= S stack-8 8
        leave                                   #= L stack-8 8
        enter   16, 2                           #= S stack-8 8, S stack-16 8, S stack-24 8
        leave                                   #= L stack-8 8
        lea     rax, [rip + 6f]
        push    rax                             #= S stack-8 8
        call    [rsp]                           #= L stack-8 8, S stack-16 8
6:
        lea     rsp, [rip + stack]
        # xlat and segment bases
        lea     rbx, [rip + data]
        mov     eax, 5
        xlatb                                   #= L data+5 1
        mov     eax, 158
        mov     edi, 0x1002
        mov     esi, 0x600100
        syscall
        mov     rax, fs:[8]                     #= L data+264 8
        mov     fs:[16], al                     #= S data+272 1
        mov     ecx, 16
        mov     eax, fs:[rcx - 8]               #= L data+264 4
        # hints
        prefetcht0 [rbx + 3]                    #= P data+3 1
        prefetchnta [rbx + 64]                  #= P data+64 1
        prefetchw [rbx]                         #= P data 1
        clflush [rbx + 7]                       #= P data+7 1
        mfence
        cpuid
        rdtsc
        xor     edi, edi
        mov     eax, 60
        syscall
