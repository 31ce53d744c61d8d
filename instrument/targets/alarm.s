# Timer signals at fixed places: blocked except while the program waits for them, so that every run is the same.
        .include "common.inc"
        .globl  _start
        .data
        .balign 8
action: .quad   handler, 0x04000000, restore, 0
timer:  .quad   0, 2000, 0, 2000
blocked: .quad  0x2000                          # SIGALRM
open:   .quad   0
count:  .quad   0
pause:  .quad   0, 1000000
pipe:   .long   0, 0
byte:   .quad   0
        .text
_start: xor     edi, edi
        lea     rsi, [rip + blocked]
        xor     edx, edx
        mov     r10d, 8
        sys     14
        mov     edi, 14
        lea     rsi, [rip + action]
        xor     edx, edx
        mov     r10d, 8
        sys     13
        xor     edi, edi
        lea     rsi, [rip + timer]
        xor     edx, edx
        sys     38                      # setitimer
        mov     ebx, 15
1:      lea     rdi, [rip + open]
        mov     esi, 8
        sys     130                     # rt_sigsuspend
        same    rax, -4
        dec     ebx
        jnz     1b
        cmp     qword ptr [rip + count], 15
        must    e
        finish  "alarm ok"
handler:
        inc     qword ptr [rip + count]
        ret
restore:
        mov     eax, 15
        syscall
