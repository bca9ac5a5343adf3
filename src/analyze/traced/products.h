/* Matrix products of a trace: their sizes, precision and device time. */
#ifndef HONE_ANALYZE_TRACED_PRODUCTS_H
#define HONE_ANALYZE_TRACED_PRODUCTS_H

#include "analyze/traced/study.h"

enum precision { PRECISION_UNKNOWN, PRECISION_F64, PRECISION_F32, PRECISION_TF32, PRECISION_16, PRECISION_8 };

struct product {
    int64_t batch, m, n, k;
    double flops, device_ns;                /* of the kernels that multiply */
    enum precision precision;
};

/* By the types of its inputs. */
enum precision op_precision(const struct study *s, int32_t host);
/* An innermost product op (mm, addmm, bmm, baddbmm) with known shapes. */
bool product_read(const struct study *s, int32_t host, struct product *out);
/* Of an innermost convolution, forward or backward, whose result is thought of as large as what it is of: where strides make it smaller that is too much. 0: it is none. */
double convolution_about_flops(const struct study *s, int32_t host);
/* On a CPU, per ns: what a thread reaches in a large product of f32, which those with wide units pass. */
#define PRODUCT_FLOPS_PER_NS 40.0
/* A width (n or k) that is no multiple of what the fast units take; 0: both are, or the type has no such units. */
int64_t product_odd_width(const struct product *p);
bool product_has(const struct product *p, int64_t size);        /* as m, n or k */
/* Of a kernel, by its name, then by the types of the op that launched it. */
enum precision product_precision(const struct study *s, int32_t device_event);
/* Factor on the device time of the op's multiplying kernels. */
void charge_product(const struct study *s, struct charge *c, int32_t host, double factor);

#endif
