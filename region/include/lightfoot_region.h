/* Regions for C and C++: parts of a program that `lightfoot count --region NAME` and
 * `lightfoot cache --region NAME` count apart.
 *
 *     region_begin("lookup");
 *     ...
 *     region_end("lookup");
 *
 * Natively a mark is a nop and a jump over the name. Names are string literals without quotes and
 * backslashes. Regions nest and belong to the thread that opened them. On other processors than
 * x86-64, and for other compilers than GCC and Clang, marks are nothing.
 */
#ifndef LIGHTFOOT_REGION_H
#define LIGHTFOOT_REGION_H

#if defined(__x86_64__) && defined(__GNUC__)
#define LIGHTFOOT_MARK(kind, name)                                                                 \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80\n\t.ascii \"" kind "\"\n\tjmp 2f\n"                  \
                     "\t.asciz \"" name "\"\n2:" ::: "memory")
#else
#define LIGHTFOOT_MARK(kind, name) ((void)(kind name))
#endif

#define region_begin(name) LIGHTFOOT_MARK("LFTB", name)
#define region_end(name) LIGHTFOOT_MARK("LFTE", name)

#endif
