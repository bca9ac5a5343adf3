/* Introsort for one type with an inlined order, in place: quicksort, insertion sort for short runs, and heapsort where
 * quicksort would degrade. SORT_DEFINE(name, type, less) defines static void name(type *at, int64_t n). */
#ifndef HONE_ANALYZE_TRACED_VIEW_SORT_H
#define HONE_ANALYZE_TRACED_VIEW_SORT_H

#include <stdbool.h>
#include <stdint.h>

enum { SORT_SHORT = 16 };   /* runs that insertion sort takes */

#define SORT_DEFINE(name, type, less)                                                                                  \
    static bool name##_done(const type *at, int64_t n)                                                                 \
    {                                                                                                                 \
        for (int64_t i = 1; i < n; i++)                                                                                \
            if (less(&at[i], &at[i - 1]))                                                                              \
                return false;                                                                                          \
        return true;                                                                                                   \
    }                                                                                                                  \
    static void name##_insert(type *at, int64_t n)                                                                     \
    {                                                                                                                 \
        for (int64_t i = 1; i < n; i++) {                                                                              \
            const type x = at[i];                                                                                      \
            int64_t j = i;                                                                                             \
            for (; j > 0 && less(&x, &at[j - 1]); j--)                                                                 \
                at[j] = at[j - 1];                                                                                     \
            at[j] = x;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_sift(type *at, int64_t i, int64_t n)                                                            \
    {                                                                                                                 \
        const type x = at[i];                                                                                          \
        for (int64_t child; (child = 2 * i + 1) < n; i = child) {                                                      \
            child += child + 1 < n && less(&at[child], &at[child + 1]);                                                \
            if (!less(&x, &at[child]))                                                                                 \
                break;                                                                                                 \
            at[i] = at[child];                                                                                         \
        }                                                                                                              \
        at[i] = x;                                                                                                     \
    }                                                                                                                  \
    static void name##_heap(type *at, int64_t n)                                                                       \
    {                                                                                                                 \
        for (int64_t i = n / 2; i-- > 0;)                                                                              \
            name##_sift(at, i, n);                                                                                     \
        for (int64_t i = n - 1; i > 0; i--) {                                                                          \
            const type x = at[0];                                                                                      \
            at[0] = at[i];                                                                                             \
            at[i] = x;                                                                                                 \
            name##_sift(at, 0, i);                                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    /* Hoare's partition around the median of three; returns where the second part begins, 0 < it < n. */              \
    static int64_t name##_split(type *at, int64_t n)                                                                   \
    {                                                                                                                 \
        const type *a = &at[0], *b = &at[n / 2], *c = &at[n - 1];                                                      \
        const type x = less(a, b) ? (less(b, c) ? *b : less(a, c) ? *c : *a)                                           \
                                  : (less(a, c) ? *a : less(b, c) ? *c : *b);                                          \
        int64_t i = -1, j = n;                                                                                         \
        for (;;) {                                                                                                     \
            do                                                                                                         \
                i++;                                                                                                   \
            while (less(&at[i], &x));                                                                                  \
            do                                                                                                         \
                j--;                                                                                                   \
            while (less(&x, &at[j]));                                                                                  \
            if (i >= j)                                                                                                \
                return j + 1 < n ? j + 1 : n - 1;                                                                      \
            const type y = at[i];                                                                                      \
            at[i] = at[j];                                                                                             \
            at[j] = y;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_some(type *at, int64_t n, int depth)                                                            \
    {                                                                                                                 \
        while (n > SORT_SHORT && depth-- > 0) {                                                                        \
            const int64_t half = name##_split(at, n);                                                                  \
            name##_some(at + half, n - half, depth);                                                                   \
            n = half;                                                                                                  \
        }                                                                                                              \
        if (n > SORT_SHORT)                                                                                            \
            name##_heap(at, n);                                                                                        \
        else                                                                                                           \
            name##_insert(at, n);                                                                                      \
    }                                                                                                                  \
    static void name(type *at, int64_t n)                                                                              \
    {                                                                                                                 \
        int depth = 2;                                                                                                 \
        for (int64_t m = n; m > 1; m /= 2)                                                                             \
            depth += 2;                                                                                                \
        if (!name##_done(at, n))                                                                                       \
            name##_some(at, n, depth);                                                                                 \
    }

#endif
