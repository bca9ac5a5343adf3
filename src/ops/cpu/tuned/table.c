/* All tuned kernels of one instruction set. */
#include "ops/cpu/tuned/tuned.h"

const struct kernel *const TUNED(kernels)[] = {
    TUNED(matmul), TUNED(attention), TUNED(elementwise), TUNED(norm), TUNED(softmax),
    TUNED(loss), TUNED(embed), TUNED(rope), TUNED(optimizer), NULL,
};
