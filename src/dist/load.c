/* Finds and loads the MPI module, by absolute path only: beside the program where it is installed, or in the folder where it was
 * built. And tells from the environment whether something has started several ranks. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/process.h"
#include "dist/dist_int.h"
#include "dist/module.h"

/* What tells how many ranks were started together, and who sets it. */
static const struct { const char *size, *rank, *by; } starters[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"},
    {"PMI_SIZE", "PMI_RANK", "mpiexec"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "mpirun"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"},
};

struct dist_start dist_start_read(void)
{
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        const char *size = getenv(starters[i].size), *rank = getenv(starters[i].rank);
        const int n = size ? atoi(size) : 0;
        if (n > 0)
            return (struct dist_start){n, rank ? atoi(rank) : 0, starters[i].by};
    }
    return (struct dist_start){1, 0, NULL};
}

#ifdef HONE_MPI_MODULE

/* Parts of MPI that it loads itself look for its symbols in the whole process. */
enum status dist_load_mpi(const struct mpi_module **out, struct error *err)
{
    char path[PATH_MAX];
    if (!process_installed(path, "libhone_mpi.so"))
        snprintf(path, sizeof path, "%s", HONE_MPI_MODULE);
    if (access(path, R_OK))
        return error_set(err, CANNOT, "there is no MPI module, neither lib/hone/libhone_mpi.so beside the program's folder nor '%s'; on Debian install hone-mpi", path);
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        const char *why = dlerror();
        return error_set(err, CANNOT, "the MPI module '%s' cannot be loaded: %s", path, why ? why : "unknown reason");
    }
    mpi_module_fn *get = (mpi_module_fn *)dlsym(handle, MPI_MODULE_FUNCTION);
    const struct mpi_module *m = get ? get() : NULL;
    if (!m || strcmp(m->build, HONE_MPI_BUILD))
        return error_set(err, CANNOT, "the MPI module '%s' is of another build of hone (%s, and this is %s)", path,
                         m ? m->build : "unknown", HONE_MPI_BUILD);
    *out = m;
    return OK;
}

#else

enum status dist_load_mpi(const struct mpi_module **out, struct error *err)
{
    *out = NULL;
    return error_set(err, CANNOT, "this build of hone has no MPI module: install libopenmpi-dev and openmpi-bin and build it again");
}

#endif
