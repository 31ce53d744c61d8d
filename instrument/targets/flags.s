# Flags: carry chains, shifts by nothing, rotates through carry, flags that live across blocks, every loop form.
        .include "common.inc"
        .globl  _start
        .text
_start: # a 256-bit sum: the carry crosses three additions and a jump
        mov     rax, -1
        mov     rbx, -1
        mov     rcx, -1
        mov     rdx, 5
        add     rax, 1
        jmp     1f
1:      adc     rbx, 0
        jmp     2f
2:      adc     rcx, 0
        adc     rdx, 0
        same    rdx, 6
        sub     rax, 1
        sbb     rbx, 0
        sbb     rcx, 0
        sbb     rdx, 0
        same    rdx, 5
        same    rbx, -1
        # a carry that survives 40 blocks
        stc
        mov     ecx, 40
3:      dec     ecx                     # keeps the carry
        jnz     3b
        must    c
        # shifts by cl = 0 leave all flags alone
        xor     eax, eax                # ZF, no CF
        stc
        mov     cl, 0
        shl     ebx, cl
        must    c
        must    e
        sar     rbx, cl
        must    c
        rol     ebx, cl
        must    c
        shld    rax, rbx, cl
        must    e
        mov     cl, 32
        shl     ebx, cl                 # counts are taken modulo 32
        must    c
        mov     cl, 33
        mov     ebx, 0x80000000
        shl     ebx, cl
        must    c
        must    e
        # rotates through carry
        mov     al, 0x80
        clc
        rcl     al, 1
        must    c
        same    al, 0
        stc
        mov     eax, 0
        rcr     eax, 1
        same    eax, 0x80000000
        stc
        mov     rax, 3
        mov     cl, 2
        rcr     rax, cl
        mov     rbx, 0xC000000000000000
        same    rax, rbx
        # lahf, sahf, pushf, popf
        xor     eax, eax
        stc
        lahf
        and     ah, 0x41
        same    ah, 0x41
        mov     ah, 0x01
        sahf
        must    c
        must    ne
        pushfq
        xor     eax, eax
        popfq
        must    c
        must    ne
        pushfq
        pop     rax
        and     eax, 0x100              # nobody sees the trap flag of a tracer
        same    eax, 0
        pushfq
        or      qword ptr [rsp], 0x400  # direction by hand
        popfq
        lea     rdi, [rsp - 64]
        lea     rsi, [rdi - 8]
        stosq
        same    rdi, rsi
        cld
        # setcc and cmov of every condition after one comparison
        mov     eax, 3
        mov     edx, 1
        xor     ebx, ebx
        cmp     eax, 5                  # 3 - 5: below, less, negative, carry
        .irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
        set\cc  cl
        rcl     ebx, 1                  # spoils the carry; the next line sets it again
        cmp     eax, 5
        .endr
        .irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
        cmov\cc esi, edx
        .endr
        mov     edi, 0
        cmp     eax, 5
        cmovl   edi, edx
        same    edi, 1
        cmp     eax, 5
        mov     edi, 0
        cmovge  edi, edx
        same    edi, 0
        # flags through a call and a return
        mov     eax, 1
        cmp     eax, 2
        call    4f
        must    b
        jmp     5f
4:      ret
5:      # cmc, std, cld, clc
        clc
        cmc
        must    c
        cmc
        must    nc
        # jrcxz, jecxz
        xor     ecx, ecx
        jrcxz   6f
        wrong
6:      mov     rcx, 0x100000000
        jecxz   7f
        wrong
7:      jrcxz   8f
        jmp     9f
8:      wrong
9:      inc     ecx
        jecxz   8b
        # loop, with flags kept; loope and loopne
        mov     ecx, 10
        xor     eax, eax
        stc
10:     loop    10b
        must    c
        same    rcx, 0
        mov     ecx, 10
        xor     eax, eax
11:     inc     eax
        cmp     eax, 4
        loopne  11b
        same    eax, 4
        same    ecx, 6
        mov     ecx, 10
        xor     eax, eax
12:     inc     eax
        cmp     eax, eax
        loope   12b
        same    eax, 10
        mov     rcx, 0x700000003        # a 32-bit count counts ecx only
        xor     eax, eax
13:     inc     eax
        addr32 loop 13b
        same    eax, 3
        same    rcx, 0
        # multiplication and division flags, bit scans
        mov     eax, 0x10000
        mul     eax
        must    c
        bsf     ecx, edi
        mov     eax, 7
        xor     edx, edx
        mov     ecx, 2
        div     ecx
        same    edx, 1
        mov     rax, -7
        cqo
        mov     ecx, 2
        idiv    rcx
        same    rdx, -1
        same    rax, -3
        # adcx and adox keep two chains
        mov     ecx, 0
        mov     ebx, -1
        xor     eax, eax                # no CF, no OF
        mov     edx, 1
        mov     r8d, ebx
        test    eax, eax
        finish  "flags ok"
