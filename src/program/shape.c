/* Shapes, types and the names of the enums. */
#include <stdarg.h>
#include <string.h>

#include "program/program.h"

struct shape shape_of(int rank, ...)
{
    struct shape s = {.rank = rank};
    va_list args;
    va_start(args, rank);
    for (int i = 0; i < rank; i++)
        s.dim[i] = va_arg(args, int64_t);
    va_end(args);
    return s;
}

int64_t shape_count(struct shape s)
{
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++)
        n *= s.dim[i];
    return n;
}

bool shape_equal(struct shape a, struct shape b)
{
    return a.rank == b.rank && !memcmp(a.dim, b.dim, (size_t)a.rank * sizeof *a.dim);
}

int64_t shape_last(struct shape s) { return s.rank ? s.dim[s.rank - 1] : 1; }

int64_t shape_rows(struct shape s)
{
    s.rank = s.rank ? s.rank - 1 : 0;
    return shape_count(s);
}

const char *shape_text(struct shape s, char out[64])
{
    size_t n = (size_t)snprintf(out, 64, "(");
    for (int i = 0; i < s.rank && n < 60; i++)
        n += (size_t)snprintf(out + n, 64 - n, "%s%lld", i ? ", " : "", (long long)s.dim[i]);
    if (n < 63)
        snprintf(out + n, 64 - n, ")");
    return out;
}

size_t dtype_size(enum dtype t) { return dtype_is_narrow(t) ? 2 : 4; }
const char *dtype_name(enum dtype t) { return (const char *[]){"f32", "bf16", "f16", "i32"}[t]; }

const char *value_kind_name(enum value_kind k)
{
    return (const char *[]){"parameter", "activation", "gradient", "state", "input", "constant", "host", "table"}[k];
}

const char *phase_name(enum phase p)
{
    return (const char *[]){"setup", "data", "forward", "backward", "communicate", "optimize"}[p];
}

size_t value_bytes(const struct value *v) { return (size_t)shape_count(v->shape) * dtype_size(v->dtype); }

bool value_is_persistent(const struct value *v)
{
    return v->kind == VALUE_PARAMETER || v->kind == VALUE_STATE || v->kind == VALUE_INPUT || v->kind == VALUE_HOST ||
           v->kind == VALUE_TABLE;
}
