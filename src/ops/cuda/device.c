/* Which GPU is used, and clear words where none can be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cuda/cuda_int.h"

enum { OLDEST_MAJOR = 8 };          /* sm_80: cmake/Cuda.cmake compiles for nothing older */

static enum status say_no_device(cudaError_t e, struct error *err)
{
    int driver = 0, runtime = 0;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return error_set(err, CANNOT, "there is no GPU: no NVIDIA driver is installed");
    if (e == cudaErrorInsufficientDriver)
        return error_set(err, CANNOT, "the NVIDIA driver is older than this build of hone: it knows CUDA %d.%d, and %d.%d is needed",
                         driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if ((e == cudaSuccess || e == cudaErrorNoDevice) && visible)
        return error_set(err, CANNOT, "there is no GPU: CUDA_VISIBLE_DEVICES is '%.64s' and hides them", visible);
    if (e == cudaSuccess || e == cudaErrorNoDevice)
        return error_set(err, CANNOT, "there is no GPU: the NVIDIA driver sees none");
    return error_set(err, CANNOT, "the GPU cannot be used: %s (%s)", cudaGetErrorString(e), cudaGetErrorName(e));
}

/* HONE_CUDA_CAPABILITY=80: kernels are chosen as for an older GPU, to try on this one what that one would run. */
int cuda_capability(int index)
{
    int major = 0, minor = 0;
    const char *text = getenv("HONE_CUDA_CAPABILITY");
    const int asked = text ? atoi(text) : 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) != cudaSuccess)
        return 0;
    const int has = 10 * major + minor;
    return asked >= 10 * OLDEST_MAJOR && asked < has ? asked : has;
}

static enum status read_device(struct cuda_device *out, int index, struct error *err)
{
    struct cudaDeviceProp p;
    size_t free_bytes = 0, total = 0;
    cudaError_t e = cudaGetDeviceProperties(&p, index);
    if (e != cudaSuccess)
        return say_no_device(e, err);
    if (p.major < OLDEST_MAJOR)
        return error_set(err, CANNOT, "the GPU '%.96s' is too old: its compute capability is %d.%d, and %d.0 is needed", p.name, p.major,
                         p.minor, OLDEST_MAJOR);
    e = cudaSetDevice(index);
    if (e == cudaSuccess)
        e = cudaMemGetInfo(&free_bytes, &total);
    if (e == cudaErrorMemoryAllocation)
        return error_set(err, CANNOT, "the GPU '%.96s' has no memory left; does another process use it?", p.name);
    if (e != cudaSuccess)
        return say_no_device(e, err);
    const int capability = cuda_capability(index);
    *out = (struct cuda_device){.index = index, .major = capability / 10, .minor = capability % 10, .processors = p.multiProcessorCount, .memory_bytes = (double)total, .free_bytes = (double)free_bytes};
    snprintf(out->name, sizeof out->name, "%.95s", p.name);
    cudaDriverGetVersion(&out->driver);
    cudaRuntimeGetVersion(&out->runtime);
    if (cudaDeviceGetPCIBusId(out->address, sizeof out->address, index) != cudaSuccess)
        out->address[0] = '\0';
    return OK;
}

int cuda_count_devices(void)
{
    int n = 0;
    const bool known = cudaGetDeviceCount(&n) == cudaSuccess;
    cudaGetLastError();
    return known ? n : 0;
}

enum status cuda_find_device(struct cuda_device *out, int index, struct error *err)
{
    int n = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    enum status st = e == cudaSuccess && n > 0 ? OK : say_no_device(e, err);
    if (st == OK && index >= n)
        st = error_set(err, CANNOT, "there is no GPU %d: the NVIDIA driver sees %d", index, n);
    if (st == OK)
        st = read_device(out, index, err);
    cudaGetLastError();             /* it was told; nobody else shall find it */
    return st;
}
