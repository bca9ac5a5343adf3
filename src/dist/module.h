/* What the program and the MPI module know of each other: one function by name, which gives this table. Both are of one build. */
#ifndef HONE_DIST_MODULE_H
#define HONE_DIST_MODULE_H

#include "dist/transport.h"

struct mpi_module {
    const char *build;
    transport_open_fn *open;
};

typedef const struct mpi_module *mpi_module_fn(void);
#define MPI_MODULE_FUNCTION "hone_mpi_module"

#endif
