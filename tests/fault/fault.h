/* What the driver (place.c) and the library in the program under test (inside.c) agree on. */
#ifndef HONE_FAULT_H
#define HONE_FAULT_H

#define FAULT_SHARED "HONE_FAULT_SHARED"        /* environment: the path of a file that holds a struct fault_shared */

enum { FAULT_BEGIN = 0x6661756c };      /* prctl of this number says: main is about to run, count from here */

enum { FAULT_HEAP_STEP = 1 << 16 };     /* heap N: there are N times so many bytes of it */

/* Allocations fail inside the process; all else fails at the system call, outside. */
struct fault_shared {
    unsigned long fail_at;              /* the number of the allocation that fails, from 1; 0: none */
    unsigned long calls;                /* allocations so far, but for those of libraries (inside.c) */
    unsigned long limit, in_use, peak;  /* bytes; an allocation beyond the limit fails; 0: no limit */
};

#endif
