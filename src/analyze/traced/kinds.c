/* What kernels, host ops and runtime calls do, told by words in their names. The first line that fits decides, so narrow
 * words stand before wide ones: flash before cutlass, masked_fill before fill. Case does not matter. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "analyze/traced/view_int.h"

const char *const kernel_kind_names[KERNEL_KINDS] = {
    [KERNEL_OTHER] = "other",     [KERNEL_GEMM] = "gemm",   [KERNEL_ATTENTION] = "attention",
    [KERNEL_SOFTMAX] = "softmax", [KERNEL_NORM] = "norm",   [KERNEL_ELEMENTWISE] = "elementwise",
    [KERNEL_REDUCE] = "reduce",   [KERNEL_CAST] = "cast",   [KERNEL_COPY] = "copy",
    [KERNEL_FILL] = "fill",       [KERNEL_INDEX] = "index", [KERNEL_OPTIMIZER] = "optimizer",
    [KERNEL_DROPOUT] = "dropout", [KERNEL_CONV] = "conv",   [KERNEL_COMM] = "comm",
};

struct kind_words {
    int kind;
    const char *words;      /* separated by spaces; a+b: both */
};

static const struct kind_words kernel_words[] = {
    /* of libraries, and of custom kernels that do not name one */
    {KERNEL_COMM, "nccl rccl msccl oneccl nvshmem all_reduce allreduce all_gather allgather reduce_scatter reducescatter "
                  "all_to_all alltoall cross_device_reduce multimem_ deep_ep deepep gloo"},
    /* code that Inductor made lists the ops it fused; pointwise code is nothing more */
    {KERNEL_ELEMENTWISE, "triton_poi rotary with_index"},
    {KERNEL_COPY, "and_cache"},
    {KERNEL_ATTENTION, "flash fmha sdpa attention attn"},
    {KERNEL_OPTIMIZER, "multi_tensor adam sgd adagrad rmsprop"},
    {KERNEL_SOFTMAX, "softmax"},
    {KERNEL_NORM, "layer_norm layernorm rms_norm rmsnorm batch_norm batchnorm group_norm groupnorm instance_norm gammabeta "
                  "rowwisemoments ::bn_fw ::bn_bw ::ln_"},
    {KERNEL_DROPOUT, "dropout masked_scale bernoulli"},
    {KERNEL_COPY, "nchwtonhwc nhwctonchw"},
    {KERNEL_CONV, "winograd convol conv1d conv2d conv3d 3dconv implicit dgrad wgrad fprop scudnn im2col igemm_+_gtc miopenconv "
                  "cask_cudnn cutlass_cudnn"},
    {KERNEL_GEMM, "gemm gemv nvjet cijk_ xmma wgmma cublas splitk matmul triton_mm triton_bmm triton_tem"},
    {KERNEL_ELEMENTWISE, "masked_fill"},
    {KERNEL_INDEX, "index gather scatter embedding"},
    {KERNEL_CAST, "bfloat16_copy float16_copy float8_copy copy_kernel+withcast"},
    {KERNEL_COPY, "copy_kernel copy_device catarray transpose permute batchedcopy copybuffer"},
    {KERNEL_FILL, "fillfunctor fill_kernel memset fillbuffer"},
    {KERNEL_REDUCE, "reduce triton_red triton_per"},
    {KERNEL_GEMM, "cutlass"},
    {KERNEL_ELEMENTWISE, "elementwise pointwise vectorized"},
};

static const struct kind_words op_names[] = {   /* the op's whole name, but for its namespace and underscores around it */
    {KERNEL_GEMM, "mm bmm mv dot linear einsum"},
    {KERNEL_CAST, "to type_as"},
    {KERNEL_COPY, "copy clone contiguous cat stack repeat"},
    {KERNEL_FILL, "fill zero zeros ones full zeros_like ones_like full_like"},
    {KERNEL_REDUCE, "sum mean max min argmax argmin norm linalg_vector_norm var any all cumsum"},
    {KERNEL_ELEMENTWISE, "add sub mul div neg exp log pow sqrt rsqrt tanh sigmoid relu gelu silu gelu_backward silu_backward "
                         "threshold_backward where addcmul addcdiv lerp clamp clamp_min"},
};

static const struct kind_words op_words[] = {   /* in the op's name without its namespace */
    {KERNEL_ATTENTION, "attention dot_product flash"},
    {KERNEL_SOFTMAX, "softmax"},
    {KERNEL_OPTIMIZER, "fused_adam fused_sgd foreach"},
    {KERNEL_NORM, "layer_norm batch_norm group_norm rms_norm instance_norm"},
    {KERNEL_DROPOUT, "dropout bernoulli"},
    {KERNEL_CONV, "convolution conv1d conv2d conv3d"},
    {KERNEL_GEMM, "matmul addmm addmv baddbmm scaled_mm grouped_mm"},
    {KERNEL_COMM, "allreduce all_reduce allgather all_gather reduce_scatter alltoall all_to_all nccl"},
    {KERNEL_INDEX, "embedding index gather scatter"},
    {KERNEL_ELEMENTWISE, "masked_fill"},
    {KERNEL_CAST, "to_copy"},
};

/* Names differ in their maker only: cudaMemcpyAsync, hipMemcpyAsync, cuMemcpyHtoDAsync, zeCommandListAppendMemoryCopy. */
static const struct kind_words call_words[] = {
    {CALL_GRAPH, "graphlaunch"},
    {CALL_LAUNCH, "launch+kernel launch+cooperative launchfunction enqueuekernel runmodel"},
    {CALL_COPY, "memcpy memorycopy copybuffer"},
    {CALL_FILL, "memset memoryfill"},
    {CALL_SYNC_DEVICE, "devicesync ctxsync contextsync synchronizedevice"},
    {CALL_SYNC_STREAM, "streamsync queuesync queuefinish synchronizestream"},
    {CALL_SYNC_EVENT, "eventsync eventhostsync eventwait synchronizeevent"},
    {CALL_STREAM_WAIT, "streamwait waitonevents"},
    {CALL_EVENT_RECORD, "eventrecord"},
    {CALL_HOST_ALLOC, "hostalloc mallochost hostmalloc allochost hostregister"},
    {CALL_MALLOC, "malloc memalloc memcreate memaddressreserve memmap"},
    {CALL_FREE, "free memunmap memrelease"},
};

#define LINES(table) (sizeof(table) / sizeof *(table))

/* The next word of a line, or the next part of a word, up to the separator; false at the end. */
static bool next_word(const char **at, const char *separators, char *word, size_t room)
{
    *at += strspn(*at, separators);
    const size_t n = strcspn(*at, separators);
    if (!n || n >= room)
        return false;
    memcpy(word, *at, n);
    word[n] = 0;
    *at += n;
    return true;
}

static bool has_all(const char *name, const char *parts)
{
    char part[64];
    while (next_word(&parts, "+", part, sizeof part))
        if (!strcasestr(name, part))
            return false;
    return true;
}

/* "_softmax", "mul_" are "softmax", "mul". */
static bool is_name(const char *name, const char *word)
{
    const size_t n = strlen(word);
    name += strspn(name, "_");
    return !strncmp(name, word, n) && !name[n + strspn(name + n, "_")];
}

static int find_kind(const struct kind_words *table, size_t n, const char *name, bool (*fits)(const char *, const char *))
{
    char word[64];
    for (size_t i = 0; i < n; i++)
        for (const char *at = table[i].words; next_word(&at, " ", word, sizeof word);)
            if (fits(name, word))
                return table[i].kind;
    return 0;
}

/* Kernels of the library fbgemm are no products by its name: what follows it says what they do. */
static bool is_fbgemm(const char *name, char *rest, size_t room)
{
    const char *at = strcasestr(name, "fbgemm");
    if (!at)
        return false;
    const int n = snprintf(rest, room, "%.*s%s", (int)(at - name), name, at + 6);
    return n > 0 && (size_t)n < room;
}

enum kernel_kind kind_of_kernel(const char *name)
{
    char rest[1024];
    if (is_fbgemm(name, rest, sizeof rest))
        return kind_of_kernel(rest);
    return (enum kernel_kind)find_kind(kernel_words, LINES(kernel_words), name, has_all);
}

enum kernel_kind kind_of_op(const char *name)
{
    const char *colons = strstr(name, "::");
    if (!colons)                            /* code that Inductor made goes by the name of its kernel */
        return kind_of_kernel(name);
    const int kind = find_kind(op_names, LINES(op_names), colons + 2, is_name);
    return (enum kernel_kind)(kind ? kind : find_kind(op_words, LINES(op_words), colons + 2, has_all));
}

/* "gloo:all_reduce": a thread of the backend moves the data. Those of NCCL are only the calls that launch it. */
bool name_is_collective(const char *name)
{
    static const char *const backends[] = {"gloo:", "mpi:", "ucc:"};
    for (size_t i = 0; i < LINES(backends); i++)
        if (!strncmp(name, backends[i], strlen(backends[i])))
            return true;
    return false;
}

enum call_kind kind_of_call(const char *name)
{
    return (enum call_kind)find_kind(call_words, LINES(call_words), name, has_all);
}

bool kind_is_work(enum call_kind kind)
{
    return kind == CALL_LAUNCH || kind == CALL_GRAPH || kind == CALL_COPY || kind == CALL_FILL;
}
