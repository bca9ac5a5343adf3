/* Loads cuDNN and makes a handle of it, once for the process: there is one GPU that is used. */
#ifdef HONE_CUDNN

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/cudnn_int.h"

enum { OLDEST = 91600 };            /* older ones need a mask of their own where the sequence is no multiple of 128 */

bool cudnn_load(struct cudnn *out)
{
    /* Its kernels for attention are compiled when a plan is made; it asks for the compiler by name alone. */
    dlopen(HONE_NVRTC, RTLD_NOW | RTLD_LOCAL);
    void *from = dlopen(HONE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    if (!from)
        return false;
#define LOAD(name)                                                                                                    \
    out->name = (__typeof__(out->name))dlsym(from, #name);                                                            \
    if (!out->name)                                                                                                   \
        return false;
    CUDNN_FUNCTIONS(LOAD)
#undef LOAD
    const size_t version = out->cudnnGetVersion();
    return version >= OLDEST && version / 10000 == CUDNN_MAJOR;
}

/* HONE_CUDNN=0 in the environment: as if there were none. */
static bool wanted(void)
{
    const char *text = getenv("HONE_CUDNN");
    return !text || strcmp(text, "0") != 0;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cudnn library;
static bool usable;

static void open_library(void)
{
    usable = wanted() && cudnn_load(&library) && library.cudnnCreate(&library.handle) == CUDNN_STATUS_SUCCESS;
}

const struct cudnn *cudnn_open(void)
{
    pthread_once(&once, open_library);
    return usable ? &library : NULL;
}

#endif
