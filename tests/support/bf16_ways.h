/* Tests in every way that this CPU multiplies bf16. */
#ifndef HONE_TESTS_BF16_WAYS_H
#define HONE_TESTS_BF16_WAYS_H

#include "ops/cpu/bf16.h"
#include "support/check.h"

static inline int run_in_every_way(int (*run)(void))
{
    int failed = 0;
    for (int way = BF16_ROUNDED; way <= BF16_AMX; way++) {
        cpu_bf16_limit((enum bf16_way)way);
        if (cpu_bf16_way() != (enum bf16_way)way)
            continue;
        print_message("bf16 products: %s\n", cpu_bf16_name());
        failed += run();
    }
    return failed;
}

#endif
