# Code that is entered at two places of one instruction, jumps across its own bytes, prefixes, branches of every form.
        .include "common.inc"
        .globl  _start
        .text
_start: # b8 .. : mov eax, imm32, whose immediate is inc ecx; jmp
        xor     ecx, ecx
        mov     edx, 2
1:      .byte   0xb8                    # mov eax, 0x9090c1ff
2:      .byte   0xff, 0xc1              # from here: inc ecx
        .byte   0x90, 0x90
        dec     edx
        jz      3f
        jmp     2b
3:      same    ecx, 1
        same    eax, 0x9090c1ff
        # three instruction streams through the same 10 bytes (movabs), ten rounds each
        xor     ecx, ecx
        mov     ebx, 30
        xor     esi, esi
4:      lea     rdx, [rip + 5f]
        add     rdx, rsi
        jmp     rdx
5:      .byte   0x48, 0xb8              # movabs rax, imm64
        .byte   0xff, 0xc1              # +2: inc ecx
        .byte   0xff, 0xc1              # +4: inc ecx
        .byte   0x90, 0x90, 0x90, 0x90
        cmp     esi, 4
        je      6f
        add     esi, 2
        jmp     7f
6:      xor     esi, esi
7:      dec     ebx
        jnz     4b
        same    ecx, 20 + 10
        # a jump over a lock prefix: with and without it the same instruction
        lea     rdi, [rsp - 64]
        mov     dword ptr [rdi], 0
        mov     edx, 4
8:      test    edx, 1
        jz      9f
        .byte   0xf0
9:      inc     dword ptr [rdi]
        dec     edx
        jnz     8b
        mov     eax, [rdi]
        same    eax, 4
        # short and near forms, taken and not, forwards and backwards
        mov     eax, 3
10:     dec     eax
        .byte   0x0f, 0x85              # jnz near backwards
        .long   10b - 11f
11:     .byte   0x0f, 0x84              # jz near to the next instruction
        .long   0
        jz      12f
12:     .byte   0xe9                    # jmp near to the next instruction
        .long   0
        jmp     13f
        .fill   300, 1, 0xcc
13:     must    e
        # redundant prefixes, segment overrides, branch hints
        .byte   0x2e, 0x75, 0x00        # jnz with a hint
        .byte   0x3e, 0x74, 0x00        # jz with a hint
        .byte   0x66, 0x66, 0x66, 0x90
        .byte   0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
        .byte   0xf3, 0x90
        .byte   0x3e, 0x8b, 0x07        # mov eax, ds:[rdi]
        same    eax, 4
        .byte   0x40, 0x8b, 0x07        # an empty rex
        .byte   0x67, 0x8d, 0x07        # lea with 32-bit address
        lea     rax, [rip + 14f]
        mov     [rsp - 8], rax
        .byte   0xf2, 0xff, 0x64, 0x24, 0xf8 # bnd jmp [rsp - 8]
        wrong
14:     finish  "overlap ok"
