/* Numbers too small for their full precision (subnormal) as zero, for the calling thread: as inputs and as results. */
#ifndef HONE_CORE_SUBNORMAL_H
#define HONE_CORE_SUBNORMAL_H

#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef uint64_t subnormals_mode;       /* how the thread was before */

#if defined(__x86_64__)
static inline subnormals_mode subnormals_flush(void)
{
    const unsigned mode = _mm_getcsr(), flush = 0x8040;         /* FTZ, DAZ */
    if ((mode & flush) != flush)
        _mm_setcsr(mode | flush);
    return mode;
}
static inline void subnormals_restore(subnormals_mode mode) { _mm_setcsr((unsigned)mode); }
#elif defined(__aarch64__)
static inline subnormals_mode subnormals_flush(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" ::"r"(mode | (uint64_t)1 << 24) : "memory");       /* FZ */
    return mode;
}
static inline void subnormals_restore(subnormals_mode mode) { __asm__ volatile("msr fpcr, %0" ::"r"(mode) : "memory"); }
#else
static inline subnormals_mode subnormals_flush(void) { return 0; }
static inline void subnormals_restore(subnormals_mode mode) { (void)mode; }
#endif

#endif
