# String instructions of all widths and prefixes, forwards and backwards, overlapping, with zero counts.
        .include "common.inc"
        .globl  _start
        .bss
        .balign 64
a:      .skip   1024
b:      .skip   1024
        .text
_start: lea     rdi, [rip + a]
        xor     eax, eax
1:      mov     [rdi + rax], al         # a[i] = i, 256 bytes
        inc     eax
        cmp     eax, 256
        jb      1b
        # copies of every width reach the same bytes
        .irp width, b, w, d, q
        lea     rsi, [rip + a]
        lea     rdi, [rip + b]
        .ifc \width, b
        mov     ecx, 256
        .endif
        .ifc \width, w
        mov     ecx, 128
        .endif
        .ifc \width, d
        mov     ecx, 64
        .endif
        .ifc \width, q
        mov     ecx, 32
        .endif
        rep movs\width
        same    rcx, 0
        lea     rax, [rip + a + 256]
        same    rsi, rax
        lea     rsi, [rip + a]
        lea     rdi, [rip + b]
        mov     ecx, 256
        repe cmpsb
        must    e
        same    rcx, 0
        lea     rdi, [rip + b]
        mov     ecx, 32
        xor     eax, eax
        rep stosq
        .endr
        # zero counts touch nothing and keep the flags
        stc
        mov     eax, 5
        cmp     eax, 5
        xor     ecx, ecx
        mov     edi, 0                  # a null pointer is never followed
        cmp     eax, 5
        rep stosb
        must    e
        repne scasb
        must    e
        rep movsq
        must    e
        # memchr: the 77th byte
        lea     rdi, [rip + a]
        mov     ecx, 256
        mov     al, 77
        repne scasb
        must    e
        lea     rdx, [rip + a + 78]
        same    rdi, rdx
        same    rcx, 178
        # first difference, by words
        lea     rsi, [rip + a]
        lea     rdi, [rip + b]
        mov     ecx, 32
        rep movsq
        mov     word ptr [rip + b + 100], 0
        lea     rsi, [rip + a]
        lea     rdi, [rip + b]
        mov     ecx, 128
        repe cmpsw
        must    ne
        same    rcx, 77
        # overlapping forwards: a[1..] becomes a[0]
        lea     rsi, [rip + a]
        lea     rdi, [rip + a + 1]
        mov     ecx, 200
        rep movsb
        cmp     byte ptr [rip + a + 200], 0
        must    e
        # backwards: a move up by 3 without loss
        std
        lea     rsi, [rip + b + 99]
        lea     rdi, [rip + b + 102]
        mov     ecx, 100
        rep movsb
        cld
        cmp     byte ptr [rip + b + 103], 103
        must    e
        cmp     byte ptr [rip + b + 102], 99
        must    e
        cmp     byte ptr [rip + b + 3], 0
        must    e
        # fill backwards by double words
        std
        lea     rdi, [rip + a + 60]
        mov     eax, 0x01020304
        mov     ecx, 16
        rep stosd
        cld
        cmp     dword ptr [rip + a], 0x01020304
        must    e
        same    rcx, 0
        # lods sums, one by one
        lea     rsi, [rip + a]
        xor     ebx, ebx
        mov     ecx, 64
2:      lodsb
        movzx   eax, al
        add     ebx, eax
        dec     ecx
        jnz     2b
        same    ebx, 160
        # 32-bit addresses: counts in ecx, pointers in esi and edi
        lea     rsi, [rip + a]
        lea     rdi, [rip + b]
        mov     rcx, 0x500000004
        rep movsd dword ptr es:[edi], dword ptr [esi]
        same    rcx, 0
        cmp     dword ptr [rip + b + 12], 0x01020304
        must    e
        # a long one crosses many lines and a page
        lea     rdi, [rip + c]
        mov     ecx, 1500
        mov     al, 7
        rep stosb
        cmp     byte ptr [rip + c + 1499], 7
        must    e
        finish  "strings ok"
        .bss
        .balign 4096
        .skip   3000
c:      .skip   2048
