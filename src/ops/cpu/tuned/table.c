/* All tuned kernels of one instruction set. */
#include "ops/cpu/tuned/tuned.h"

const struct kernel *const TUNED(kernels)[] = {
    TUNED(matmul), TUNED(attention), TUNED(flash), TUNED(elementwise), TUNED(norm), TUNED(softmax),
    TUNED(loss), TUNED(embed), TUNED(rope), TUNED(optimizer), TUNED(linear_gelu), TUNED(project), TUNED(swiglu),
    TUNED(linear_loss), TUNED(cache), NULL,
};
