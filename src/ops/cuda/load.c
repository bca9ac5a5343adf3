/* Finds and loads the CUDA module, by absolute path only: beside the program where it is installed, or in the folder where it was
 * built. The first part of hone that knows there is such a thing as CUDA, and the only one that is linked into the program. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/process.h"
#include "ops/cuda/cuda.h"

#ifdef HONE_CUDA_MODULE

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct cuda_module *module;
static struct error refusal;

static void load_module(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        error_set(&refusal, CANNOT, "the CUDA module '%s' cannot be loaded: %s", path, why ? why : "unknown reason");
        return;
    }
    cuda_module_fn *get = (cuda_module_fn *)dlsym(handle, CUDA_MODULE_FUNCTION);
    const struct cuda_module *m = get ? get() : NULL;
    if (m && !strcmp(m->build, HONE_CUDA_BUILD))
        module = m;
    else
        error_set(&refusal, CANNOT, "the CUDA module '%s' is of another build of hone (%s, and this is %s)", path,
                  m ? m->build : "unknown", HONE_CUDA_BUILD);
}

static void find_module(void)
{
    char path[PATH_MAX];
    load_module(process_installed(path, "libhone_cuda.so") ? path : HONE_CUDA_MODULE);
}

static const struct cuda_module *loaded(struct error *err)
{
    pthread_once(&once, find_module);
    if (!module && err)
        *err = refusal;
    return module;
}

#else

static const struct cuda_module *loaded(struct error *err)
{
    error_set(err, CANNOT, "this build of hone has no CUDA backend: install CUDA 12 or newer (nvcc, cuBLAS) and a C++ compiler and build it again (docs/start.md)");
    return NULL;
}

#endif

enum status cuda_backend_new_for(struct backend **out, const struct cuda_wish *wish, struct error *err)
{
    static const struct cuda_choices choices = {choices_recall, choices_remember};
    const struct cuda_module *m = loaded(err);
    return m ? m->backend_new(out, wish, &choices, err) : CANNOT;
}

enum status cuda_backend_new(struct backend **out, bool graphs, struct error *err)
{
    return cuda_backend_new_for(out, &(struct cuda_wish){.graphs = graphs ? GRAPHS_ALWAYS : GRAPHS_NEVER}, err);
}

enum status cuda_kernel_name(const char **out, enum op_kind kind, struct error *err)
{
    const struct cuda_module *m = loaded(err);
    *out = m ? m->kernel(kind) : NULL;
    return m ? OK : CANNOT;
}

int cuda_devices(void)
{
    struct error unsaid;
    const struct cuda_module *m = loaded(&unsaid);
    return m ? m->devices() : 0;
}

enum status cuda_device_read_at(struct cuda_device *out, int index, struct error *err)
{
    const struct cuda_module *m = loaded(err);
    return m ? m->device(out, index, err) : CANNOT;
}

enum status cuda_device_read(struct cuda_device *out, struct error *err) { return cuda_device_read_at(out, 0, err); }

enum status cuda_nccl_version(int *version, struct error *err)
{
    const struct cuda_module *m = loaded(err);
    return m ? m->nccl(version, err) : CANNOT;
}

/* Which algorithm NCCL takes may else depend on the size of a bucket, and NVLS sums in the network's order. */
void cuda_pin_nccl(void)
{
    setenv("NCCL_ALGO", "Ring", 0);
    setenv("NCCL_PROTO", "Simple", 0);
    setenv("NCCL_NVLS_ENABLE", "0", 0);
}

enum status cuda_measure_peaks(struct backend *b, struct peaks *out, struct error *err)
{
    const struct cuda_module *m = loaded(err);
    return m ? m->measure_peaks(b, out, err) : CANNOT;
}

void cuda_fingerprint(const struct cuda_device *d, char out[160])
{
    snprintf(out, 160, "%s, sm_%d%d, CUDA %d.%d", d->name, d->major, d->minor, d->runtime / 1000, d->runtime % 1000 / 10);
}
