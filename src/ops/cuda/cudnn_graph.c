/* Graphs of operations in the form that cuDNN's backend interface has them: descriptors with attributes. */
#ifdef HONE_CUDNN

#include "ops/cuda/cudnn_int.h"

/* ---- descriptors ---- */

static cudnnBackendDescriptor_t make(struct cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;
    if (g->status == CUDNN_STATUS_SUCCESS && g->n_made == CUDNN_DESCRIPTORS)
        g->status = CUDNN_STATUS_INTERNAL_ERROR;
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->status = g->lib->cudnnBackendCreateDescriptor(type, &d);
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->made[g->n_made++] = d;
    return d;
}

static void set(struct cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t n, const void *values)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->status = g->lib->cudnnBackendSetAttribute(d, name, type, n, values);
}

static void set_descriptor(struct cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                           cudnnBackendDescriptor_t value)
{
    set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_tensor(struct cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int tensor)
{
    if (tensor != NO_TENSOR)
        set_descriptor(g, d, name, g->tensors[tensor]);
}

static void finish(struct cudnn_graph *g, cudnnBackendDescriptor_t d)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->status = g->lib->cudnnBackendFinalize(d);
}

static void finish_op(struct cudnn_graph *g, cudnnBackendDescriptor_t d)
{
    finish(g, d);
    if (g->status == CUDNN_STATUS_SUCCESS && g->n_ops == CUDNN_OPS)
        g->status = CUDNN_STATUS_INTERNAL_ERROR;
    if (g->status == CUDNN_STATUS_SUCCESS)
        g->ops[g->n_ops++] = d;
}

void cudnn_graph_free(struct cudnn_graph *g)
{
    while (g->n_made > 0)
        g->lib->cudnnBackendDestroyDescriptor(g->made[--g->n_made]);
}

/* ---- tensors ---- */

static int tensor(struct cudnn_graph *g, struct cudnn_shape s, cudnnDataType_t type, bool is_virtual, bool by_value)
{
    const int64_t id = g->n_tensors + 1, alignment = 16;
    cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    if (g->n_tensors == CUDNN_TENSORS) {
        g->status = CUDNN_STATUS_INTERNAL_ERROR;
        return 0;
    }
    set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, s.dim);
    set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, s.stride);
    set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (is_virtual)
        set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    if (by_value)
        set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    finish(g, d);
    g->tensors[g->n_tensors] = d;
    return g->n_tensors++;
}

int cudnn_given(struct cudnn_graph *g, struct cudnn_shape s, cudnnDataType_t type) { return tensor(g, s, type, false, false); }
int cudnn_inner(struct cudnn_graph *g, struct cudnn_shape s, cudnnDataType_t type) { return tensor(g, s, type, true, false); }

int cudnn_number(struct cudnn_graph *g)
{
    return tensor(g, (struct cudnn_shape){{1, 1, 1, 1}, {1, 1, 1, 1}}, CUDNN_DATA_FLOAT, false, true);
}

/* ---- operations ---- */

static void pointwise(struct cudnn_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t math, int64_t axis, int y, int x, int b, int t)
{
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &math);
    if (mode == CUDNN_POINTWISE_GEN_INDEX)
        set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    finish(g, how);
    cudnnBackendDescriptor_t op = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    finish_op(g, op);
}

void cudnn_pointwise(struct cudnn_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t math, int y, int x, int b, int t)
{
    pointwise(g, mode, math, 0, y, x, b, t);
}

void cudnn_index(struct cudnn_graph *g, int axis, int y, int x)
{
    pointwise(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis, y, x, NO_TENSOR, NO_TENSOR);
}

void cudnn_product(struct cudnn_graph *g, int y, int a, int b)
{
    const cudnnDataType_t math = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &math);
    finish(g, how);
    cudnnBackendDescriptor_t op = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    finish_op(g, op);
}

void cudnn_reduce(struct cudnn_graph *g, cudnnReduceTensorOp_t op_kind, int y, int x)
{
    const cudnnDataType_t math = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &math);
    set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op_kind);
    finish(g, how);
    cudnnBackendDescriptor_t op = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    finish_op(g, op);
}

void cudnn_reshape(struct cudnn_graph *g, int y, int x)
{
    cudnnBackendDescriptor_t op = make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    finish_op(g, op);
}

#endif
