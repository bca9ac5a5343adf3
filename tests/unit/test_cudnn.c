/* The graphs of attention, as far as cuDNN looks at them without a GPU: every tensor and operation is accepted. Skipped where hone was
 * built without cuDNN. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#ifdef HONE_CUDNN

#include "ops/cuda/cudnn_int.h"

static struct cudnn library;

static int load(void **state)
{
    (void)state;
    return cudnn_load(&library) ? 0 : -1;
}

static void build(struct cudnn_graph *g, struct cudnn_attention_of a)
{
    *g = (struct cudnn_graph){.lib = &library};
    cudnn_build_attention(g, &a);
}

static void accepted(struct cudnn_attention_of a, int given, int ops)
{
    struct cudnn_graph g;
    build(&g, a);
    assert_int_equal(g.status, CUDNN_STATUS_SUCCESS);
    assert_int_equal(g.n_ops, ops);
    assert_true(g.n_tensors > given);
    cudnn_graph_free(&g);
    assert_int_equal(g.n_made, 0);
}

static void forward(void **state)
{
    (void)state;
    accepted((struct cudnn_attention_of){4, 12, 12, 1024, 64, CUDNN_DATA_BFLOAT16, false}, FORWARD_GIVEN, 14);
    accepted((struct cudnn_attention_of){3, 8, 2, 300, 128, CUDNN_DATA_HALF, false}, FORWARD_GIVEN, 14);
}

static void backward(void **state)
{
    (void)state;
    accepted((struct cudnn_attention_of){4, 12, 12, 1024, 64, CUDNN_DATA_BFLOAT16, true}, BACKWARD_GIVEN, 21);
    accepted((struct cudnn_attention_of){3, 8, 2, 300, 128, CUDNN_DATA_HALF, true}, BACKWARD_GIVEN, 23);      /* heads of a group are summed */
}

/* A failure stays, and nothing is left behind. */
static void refused(void **state)
{
    (void)state;
    struct cudnn_graph g;
    build(&g, (struct cudnn_attention_of){-1, 12, 12, 1024, 64, CUDNN_DATA_BFLOAT16, false});
    assert_int_not_equal(g.status, CUDNN_STATUS_SUCCESS);
    assert_int_equal(g.n_ops, 0);
    struct cudnn_plan plan;
    assert_false(cudnn_plan_of(&g, 0, &plan));
    cudnn_graph_free(&g);
    assert_int_equal(g.n_made, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward), cmocka_unit_test(backward), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, load, NULL);
}

#else

static void none(void **state)
{
    (void)state;
    print_message("hone was built without cuDNN\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
