/* What the driver (place.c) and the library in the program under test (inside.c) agree on. */
#ifndef HONE_FAULT_H
#define HONE_FAULT_H

#include <stdint.h>

#define FAULT_SHARED "HONE_FAULT_SHARED"        /* environment: the path of a file that holds a struct fault_shared */

/* Numbers of prctl that tell the driver: main is about to run, count from here; and, with a path, what a thread was asked for. */
enum { FAULT_BEGIN = 0x6661756c, FAULT_PATH = 0x66617570 };
#define FAULT_ASK SIGURG                        /* sent to a thread: by which path did you come here? */

enum { FAULT_HEAP_STEP = 1 << 16 };     /* heap N: there are N times so many bytes of it */
enum { FAULT_PATHS = 1 << 14 };

/* A call path: a hash of the places in the program and its libraries through which a call came. 0: not known. */
struct fault_path {
    uint64_t path;
    unsigned long calls;
};

/* Calls of one kind. */
struct fault_calls {
    unsigned long at;                   /* the number of the call that fails, from 1; 0: none */
    uint64_t path;                      /* not 0: of those by this path alone */
    unsigned long calls, by_path;       /* so far: all, and those by the path */
    int hit;
    struct fault_path paths[FAULT_PATHS];
};

/* Allocations and products fail inside the process; all else fails at the system call, outside. */
struct fault_shared {
    int notes;                          /* every call is noted with its path */
    struct fault_calls allocations;     /* but for those of libraries (inside.c) */
    struct fault_calls products;        /* of the BLAS library */
    unsigned long limit, in_use, peak;  /* bytes; an allocation beyond the limit fails; 0: no limit */
};

#endif
