# Bit strings whose number reaches far from the operand, locked operations, exchanges, odd integer instructions.
        .include "common.inc"
        .globl  _start
        .data
        .balign 16
low:    .fill   16, 8, 0
mid:    .fill   32, 8, 0
wide:   .quad   1, 2
        .text
_start: lea     rbx, [rip + mid]
        # set bits -1000..999, step 37, then count them
        mov     rax, -1000
        xor     ebp, ebp
1:      bts     [rbx], rax
        must    nc
        bts     [rbx], rax
        must    c
        inc     ebp
        add     rax, 37
        cmp     rax, 1000
        jl      1b
        lea     rsi, [rip + low]
        xor     edx, edx
        mov     ecx, 48
2:      popcnt  rax, [rsi]
        add     edx, eax
        add     rsi, 8
        dec     ecx
        jnz     2b
        same    edx, ebp
        same    edx, 55
        # narrow numbers are signed and narrow
        mov     rax, 0xFFFFF                    # as a word: -1
        mov     word ptr [rbx - 2], 0
        bts     [rbx], ax
        cmp     word ptr [rbx - 2], 0x8000
        must    e
        mov     rax, 0x1FFFFFFE0                # as a double word: -32
        mov     dword ptr [rbx - 4], 0
        bts     [rbx], eax
        cmp     dword ptr [rbx - 4], 1
        must    e
        btr     [rbx], eax
        must    c
        btc     [rbx], eax
        must    nc
        lock btr [rbx], eax
        must    c
        bt      [rbx], eax
        must    nc
        # numbers in the instruction wrap around
        mov     qword ptr [rbx], 0
        bts     qword ptr [rbx], 127
        mov     rax, [rbx]
        shr     rax, 63
        same    eax, 1
        bt      eax, 32
        must    c
        # 16 bytes at once
        mov     eax, 1
        mov     edx, 2
        mov     ebx, 3
        mov     ecx, 4
        lock cmpxchg16b [rip + wide]
        must    e
        cmp     qword ptr [rip + wide + 8], 4
        must    e
        cmpxchg16b [rip + wide]
        must    ne
        same    eax, 3
        same    edx, 4
        cmpxchg8b [rip + wide]
        must    ne
        # xadd, xchg, cmpxchg of every width
        mov     qword ptr [rip + wide], 0x10
        mov     eax, 0x20
        lock xadd [rip + wide], rax
        same    eax, 0x10
        xadd    [rip + wide], al
        same    al, 0x30
        xadd    [rip + wide], ax
        same    ax, 0x40
        xchg    [rip + wide], al
        same    al, 0x70
        xchg    eax, [rip + wide]
        xchg    ax, cx
        xchg    rax, rax
        mov     al, 9
        mov     byte ptr [rip + wide], 8
        mov     cl, 7
        cmpxchg [rip + wide], cl
        must    ne
        same    al, 8
        cmpxchg [rip + wide], cl
        must    e
        cmp     byte ptr [rip + wide], 7
        must    e
        lock inc qword ptr [rip + wide]
        lock or byte ptr [rip + wide], 0x80
        lock neg word ptr [rip + wide]
        lock sub dword ptr [rip + wide], 5
        # scans and byte order
        mov     eax, 0x00f00000
        bsf     ecx, eax
        same    ecx, 20
        bsr     ecx, eax
        same    ecx, 23
        bswap   eax
        same    eax, 0x0000f000
        movbe   ecx, [rip + wide]
        movbe   [rip + wide], cx
        mov     eax, -5
        cdqe
        same    rax, -5
        cwd
        same    dx, -1
        xlatb_test:
        lea     rbx, [rip + letters]
        mov     eax, 0xFF02
        xlatb
        same    al, 'c'
        finish  "bits ok"
        .section .rodata
letters: .ascii "abcdef"
