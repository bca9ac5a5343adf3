/* Times of work on the GPU, to choose by. */
#ifndef HONE_OPS_CUDA_TIMING_CUH
#define HONE_OPS_CUDA_TIMING_CUH

#include "ops/cuda/device.cuh"

enum { RUNS_MOST = 20, RUNS_LEAST = 2, READINGS = 3, MORE_READINGS = 8 };
static const double READING_US = 250;
static const double LOST = 1.3;         /* times the fastest so far: read no more */
static const double NEAR = 1.04;        /* times the fastest: read again, noise could have decided */
static const double WINS = 0.985;       /* of an earlier way's time: less would let noise choose */

struct stopwatch {
    cudaStream_t stream;
    cudaEvent_t start, end;
};

static inline bool open_stopwatch(struct stopwatch *w, cudaStream_t stream)
{
    *w = {stream, NULL, NULL};
    return cudaEventCreate(&w->start) == cudaSuccess && cudaEventCreate(&w->end) == cudaSuccess;
}

static inline void close_stopwatch(struct stopwatch *w)
{
    if (w->start)
        cudaEventDestroy(w->start);
    if (w->end)
        cudaEventDestroy(w->end);
}

/* Keeps the stream busy, so that what comes after it is all there when it ends. */
static __global__ void wait_a_while(uint64_t ns)
{
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

/* Microseconds of one of so many runs; INFINITY: it cannot be run. */
template <class F> static double read_us(struct stopwatch *w, int runs, const F &work)
{
    float ms = 0;
    wait_a_while<<<1, 1, 0, w->stream>>>(20000 + 8000 * (uint64_t)runs);
    cudaEventRecord(w->start, w->stream);
    for (int i = 0; i < runs; i++)
        work();
    cudaEventRecord(w->end, w->stream);
    const bool refused = cudaGetLastError() != cudaSuccess;
    if (cudaEventSynchronize(w->end) != cudaSuccess || refused || cudaEventElapsedTime(&ms, w->start, w->end) != cudaSuccess)
        return INFINITY;
    return (double)ms * 1e3 / runs;
}

static inline int runs_for(double us) { return (int)at_least(RUNS_LEAST, at_most((int64_t)(READING_US / us), RUNS_MOST)); }

/* Reads those ways in turns that took less than so many times the fastest; us[i] becomes the fastest reading. */
template <class F> static double read_again(struct stopwatch *w, double *us, int ways, double below, bool afresh, const F &work)
{
    double least = INFINITY;
    for (int i = 0; i < ways; i++)
        least = fmin(least, us[i]);
    const int runs = runs_for(least);
    for (int i = 0; i < ways; i++)
        if (us[i] < below * least) {
            const double again = read_us(w, runs, [&] { work(i); });
            us[i] = afresh ? again : fmin(us[i], again);
        }
    return least;
}

/* Fills us[i] with the fastest reading of way i, and returns the first that is hardly slower than the fastest of all: so two ways that
 * take the same time do not take turns in being chosen. work(i) runs it. */
template <class F> static int read_ways(struct stopwatch *w, double *us, int ways, const F &work)
{
    double least = INFINITY;
    int best = 0;
    for (int i = 0; i < ways; i++) {
        read_us(w, 1, [&] { work(i); });                /* loads it */
        us[i] = read_us(w, RUNS_LEAST, [&] { work(i); });
        least = fmin(least, us[i]);
    }
    for (int r = 0; r < READINGS + MORE_READINGS && isfinite(least); r++)
        least = read_again(w, us, ways, r < READINGS ? LOST : NEAR, r == 0, work);
    for (int i = 0; i < ways; i++)
        least = fmin(least, us[i]);
    while (best < ways - 1 && !(WINS * us[best] <= least))
        best++;
    return best;
}

#endif
