/* Which host op does what, told by words of its name without namespace and overload, and the shapes of its inputs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/study_int.h"

/* The first entry that fits decides. `exact` names stand alone; the others begin the name. */
static const struct {
    const char *word;
    bool exact;
    enum task kind;
} words[] = {
    {"_foreach_", false, TASK_MULTI},       {"_fused_ad", false, TASK_MULTI},       {"_fused_sgd", false, TASK_MULTI},
    {"_amp_foreach", false, TASK_MULTI},
    {"scaled_dot_product", false, TASK_ATTENTION}, {"_scaled_dot_product", false, TASK_ATTENTION},
    {"_flash_attention", false, TASK_ATTENTION},   {"_efficient_attention", false, TASK_ATTENTION},
    {"_cudnn_attention", false, TASK_ATTENTION},   {"flash_attn", false, TASK_ATTENTION},
    {"_fused_sdp", false, TASK_ATTENTION},         {"memory_efficient_attention", false, TASK_ATTENTION},
    {"linear", true, TASK_LINEAR},          {"mm", true, TASK_LINEAR},              {"addmm", false, TASK_LINEAR},
    {"_addmm", false, TASK_LINEAR},         {"_scaled_mm", false, TASK_LINEAR},     {"_int_mm", false, TASK_LINEAR},
    {"bmm", true, TASK_BATCHED},            {"baddbmm", true, TASK_BATCHED},        {"matmul", true, TASK_LINEAR},
    {"einsum", true, TASK_BATCHED},         {"addbmm", true, TASK_BATCHED},
    {"softmax", true, TASK_SOFTMAX},        {"_softmax", true, TASK_SOFTMAX},       {"_safe_softmax", true, TASK_SOFTMAX},
    {"masked_softmax", false, TASK_SOFTMAX}, {"_masked_softmax", true, TASK_SOFTMAX},
    {"layer_norm", false, TASK_NORM},       {"native_layer_norm", false, TASK_NORM}, {"rms_norm", false, TASK_NORM},
    {"_fused_rms_norm", false, TASK_NORM},  {"batch_norm", false, TASK_NORM},       {"native_batch_norm", false, TASK_NORM},
    {"cudnn_batch_norm", false, TASK_NORM}, {"group_norm", false, TASK_NORM},       {"native_group_norm", false, TASK_NORM},
    {"conv", false, TASK_CONVOLUTION},      {"_conv", false, TASK_CONVOLUTION},     {"cudnn_conv", false, TASK_CONVOLUTION},
    {"miopen_conv", false, TASK_CONVOLUTION}, {"convolution", false, TASK_CONVOLUTION}, {"mkldnn_conv", false, TASK_CONVOLUTION},
    {"slow_conv", false, TASK_CONVOLUTION}, {"_slow_conv", false, TASK_CONVOLUTION}, {"thnn_conv", false, TASK_CONVOLUTION},
    {"mkldnn_linear", false, TASK_LINEAR},  {"_linear_pointwise", false, TASK_LINEAR}, {"_mkl_linear", false, TASK_LINEAR},
    {"embedding", false, TASK_EMBEDDING},
    {"cross_entropy", false, TASK_LOSS},    {"nll_loss", false, TASK_LOSS},         {"mse_loss", false, TASK_LOSS},
    {"log_softmax", false, TASK_LOSS},      {"_log_softmax", false, TASK_LOSS},     {"binary_cross_entropy", false, TASK_LOSS},
    {"item", true, TASK_SCALAR},            {"_local_scalar_dense", true, TASK_SCALAR}, {"is_nonzero", true, TASK_SCALAR},
    {"equal", true, TASK_SCALAR},           {"nonzero", false, TASK_SCALAR},        {"masked_select", true, TASK_SCALAR},
    {"unique", false, TASK_SCALAR},         {"_unique", false, TASK_SCALAR},
    {"arange", false, TASK_CREATE},         {"full", true, TASK_CREATE},            {"ones", true, TASK_CREATE},
    {"zeros", true, TASK_CREATE},           {"eye", false, TASK_CREATE},            {"linspace", false, TASK_CREATE},
    {"logspace", false, TASK_CREATE},       {"tril_indices", false, TASK_CREATE},   {"triu_indices", false, TASK_CREATE},
    {"scalar_tensor", true, TASK_CREATE},   {"lift_fresh", false, TASK_CREATE},     {"tensor", true, TASK_CREATE},
    {"randn", false, TASK_OTHER},           {"rand", false, TASK_OTHER},
    {"triu", false, TASK_FIXED},            {"tril", false, TASK_FIXED},            {"cos", true, TASK_FIXED},
    {"sin", true, TASK_FIXED},              {"outer", true, TASK_FIXED},            {"ger", true, TASK_FIXED},
    {"polar", true, TASK_FIXED},            {"masked_fill", false, TASK_FIXED},     {"logical_", false, TASK_FIXED},
    {"bitwise_", false, TASK_FIXED},        {"ones_like", true, TASK_FIXED},        {"zeros_like", true, TASK_FIXED},
    {"full_like", true, TASK_FIXED},        {"where", true, TASK_FIXED},            {"reciprocal", true, TASK_FIXED},
    {"rsub", true, TASK_FIXED},             {"pow", true, TASK_FIXED},              {"exp", true, TASK_FIXED},
    {"cumsum", true, TASK_FIXED},
    {"lt", true, TASK_FIXED},               {"le", true, TASK_FIXED},               {"gt", true, TASK_FIXED},
    {"ge", true, TASK_FIXED},               {"eq", true, TASK_FIXED},               {"ne", true, TASK_FIXED},
    {"view", false, TASK_SHAPE},            {"_unsafe_view", true, TASK_SHAPE},     {"reshape", false, TASK_SHAPE},
    {"_reshape_alias", true, TASK_SHAPE},   {"transpose", false, TASK_SHAPE},       {"t", true, TASK_SHAPE},
    {"permute", true, TASK_SHAPE},          {"slice", true, TASK_SHAPE},            {"select", true, TASK_SHAPE},
    {"narrow", true, TASK_SHAPE},           {"unsqueeze", false, TASK_SHAPE},       {"squeeze", false, TASK_SHAPE},
    {"expand", false, TASK_SHAPE},          {"as_strided", false, TASK_SHAPE},      {"detach", false, TASK_SHAPE},
    {"alias", false, TASK_SHAPE},           {"chunk", true, TASK_SHAPE},            {"split", false, TASK_SHAPE},
    {"unbind", false, TASK_SHAPE},          {"unflatten", true, TASK_SHAPE},        {"flatten", true, TASK_SHAPE},
    {"resolve_", false, TASK_SHAPE},        {"swapaxes", true, TASK_SHAPE},         {"movedim", true, TASK_SHAPE},
    {"mT", true, TASK_SHAPE},               {"unsafe_split", false, TASK_SHAPE},    {"unsafe_chunk", true, TASK_SHAPE},
    {"numpy_T", true, TASK_SHAPE},          {"lift", true, TASK_SHAPE},
    {"to", true, TASK_CAST},                {"_to_copy", true, TASK_CAST},          {"type_as", true, TASK_CAST},
    {"copy_", true, TASK_COPY},             {"clone", true, TASK_COPY},             {"contiguous", true, TASK_COPY},
    {"cat", true, TASK_JOIN},               {"stack", true, TASK_JOIN},             {"concat", false, TASK_JOIN},
    {"zero_", true, TASK_FILL},             {"fill_", true, TASK_FILL},
    {"addcdiv_", true, TASK_UPDATE},        {"addcmul_", true, TASK_UPDATE},        {"lerp_", true, TASK_UPDATE},
    {"linalg_vector_norm", true, TASK_REDUCE}, {"linalg_norm", true, TASK_REDUCE},  {"norm", true, TASK_REDUCE},
    {"sum", true, TASK_REDUCE},             {"mean", true, TASK_REDUCE},            {"max", true, TASK_REDUCE},
    {"min", true, TASK_REDUCE},             {"amax", true, TASK_REDUCE},            {"any", true, TASK_REDUCE},
    {"all", true, TASK_REDUCE},             {"argmax", true, TASK_REDUCE},          {"std", false, TASK_REDUCE},
    {"var", false, TASK_REDUCE},            {"isnan", true, TASK_REDUCE},           {"isfinite", true, TASK_REDUCE},
    {"abs", true, TASK_REDUCE},
    {"add", false, TASK_ELEMENTWISE},       {"mul", false, TASK_ELEMENTWISE},       {"div", false, TASK_ELEMENTWISE},
    {"sub", false, TASK_ELEMENTWISE},       {"gelu", false, TASK_ELEMENTWISE},      {"relu", false, TASK_ELEMENTWISE},
    {"silu", false, TASK_ELEMENTWISE},      {"tanh", false, TASK_ELEMENTWISE},      {"sigmoid", false, TASK_ELEMENTWISE},
    {"sqrt", false, TASK_ELEMENTWISE},      {"rsqrt", false, TASK_ELEMENTWISE},     {"neg", true, TASK_ELEMENTWISE},
    {"dropout", false, TASK_ELEMENTWISE},   {"native_dropout", false, TASK_ELEMENTWISE}, {"clamp", false, TASK_ELEMENTWISE},
};

enum task task_of(const char *name)
{
    if (strstr(name, "autograd::engine::evaluate_function"))
        return TASK_BACKWARD;
    for (const char *colon; (colon = strstr(name, "::"));)
        name = colon + 2;
    const size_t n = strcspn(name, ".");            /* without the overload */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t w = strlen(words[i].word);
        if (words[i].exact ? n == w && !strncmp(name, words[i].word, n) : !strncmp(name, words[i].word, w))
            return words[i].kind;
    }
    return TASK_OTHER;
}

/* ---- shapes: "[[32, 256], [], [[4], [4]]]"; a list of tensors counts as its first ---- */

static const char *skip_item(const char *p)
{
    int depth = 0;
    for (; *p; p++) {
        if (*p == '[')
            depth++;
        else if (*p == ']' && depth-- == 0)
            return NULL;
        else if (*p == ',' && depth == 0)
            return p + 1;
    }
    return NULL;
}

struct dims dims_take(const char **at)
{
    struct dims d = {.n = -1};
    const char *p = *at;
    if (*p != '[')
        return d;
    d.n = 0;
    for (p++; *p && *p != ']' && d.n < MOST_DIMS;) {
        char *end;
        const long long x = strtoll(p, &end, 10);
        if (end == p)
            break;
        d.size[d.n++] = x;
        p = end + strspn(end, ", ");
    }
    *at = p;
    return d;
}

static struct dims read_dims(const char *p)
{
    while (*p && *p != '[' && *p != ']' && *p != ',')
        p++;
    while (*p == '[' && p[1] == '[')                /* a list of tensors */
        p++;
    return dims_take(&p);
}

struct dims dims_read(const char *text, int input)
{
    const char *p = text && *text == '[' ? text + 1 : NULL;
    for (int i = 0; p && i < input; i++)
        p = skip_item(p);
    return p ? read_dims(p) : (struct dims){.n = -1};
}

int64_t dims_elements(struct dims d)
{
    int64_t n = 1;
    for (int i = 0; i < d.n; i++)
        if (d.size[i] <= 0 || __builtin_mul_overflow(n, d.size[i], &n))
            return 0;
    return d.n < 0 ? 0 : n;
}

bool dims_equal(struct dims a, struct dims b)
{
    if (a.n != b.n)
        return false;
    for (int i = 0; i < a.n; i++)
        if (a.size[i] != b.size[i])
            return false;
    return true;
}
