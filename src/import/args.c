/* What an event says beyond its times, each combination kept once. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>

#include "import/import_int.h"

enum { FREE_BYTES = 32 << 20, SHARE = 16 };

#define BIT(f) (UINT64_C(1) << (f))
static const uint64_t interesting = BIT(FIELD_DIMS) | BIT(FIELD_TYPES) | BIT(FIELD_VALUES) | BIT(FIELD_STACK) |
    BIT(FIELD_MODULES) | BIT(FIELD_GRID) | BIT(FIELD_BLOCK) | BIT(FIELD_REGISTERS) | BIT(FIELD_SHARED) |
    BIT(FIELD_OCCUPANCY) | BIT(FIELD_BYTES) | BIT(FIELD_COLLECTIVE) | BIT(FIELD_ELEMENTS) | BIT(FIELD_GROUP_SIZE) |
    BIT(FIELD_DTYPE);
static const uint64_t numbers = BIT(FIELD_GRID) | BIT(FIELD_BLOCK) | BIT(FIELD_REGISTERS) | BIT(FIELD_SHARED) |
    BIT(FIELD_OCCUPANCY) | BIT(FIELD_BYTES) | BIT(FIELD_ELEMENTS) | BIT(FIELD_GROUP_SIZE);
#undef BIT

void args_release(struct args *a) { free(a->table.slots); }

struct wanted { const struct trace *trace; const struct event_args *args; };

static bool is_wanted(const void *context, int32_t index)
{
    const struct wanted *w = context;
    return !memcmp(&w->trace->args[index], w->args, sizeof *w->args);
}

static void add(struct args *a, const struct event_args *args)
{
    struct trace *t = a->trace;
    if (t->n_args == a->cap) {
        a->cap += a->cap / 2 + 64;
        t->args = xrealloc(t->args, (size_t)a->cap * sizeof *t->args);
    }
    t->args[t->n_args++] = *args;
}

static int32_t intern(struct args *a, const struct event_args *args, int64_t read_bytes)
{
    _Static_assert(sizeof *args == 80, "no padding: it is compared and hashed as bytes");
    const struct wanted w = {a->trace, args};
    const uint32_t hash = (uint32_t)XXH3_64bits(args, sizeof *args);
    struct slot *slot = table_find(&a->table, hash, is_wanted, &w);
    if (slot->index)
        return slot->index - 1;
    if (a->trace->n_args > (FREE_BYTES + read_bytes / SHARE) / (int64_t)sizeof *args) {
        a->full = true;
        return -1;
    }
    add(a, args);
    *slot = (struct slot){hash, a->trace->n_args};
    a->table.n++;
    return a->trace->n_args - 1;
}

static void read_numbers(struct event_args *args, const struct raw_event *e)
{
    double occupancy;
    number_triple(raw_field(e, FIELD_GRID), args->grid);
    number_triple(raw_field(e, FIELD_BLOCK), args->block);
    args->registers = number_int32(raw_field(e, FIELD_REGISTERS), -1);
    args->shared_bytes = number_int32(raw_field(e, FIELD_SHARED), -1);
    args->group_size = number_int32(raw_field(e, FIELD_GROUP_SIZE), 0);
    if (number_real(raw_field(e, FIELD_OCCUPANCY), &occupancy))
        args->occupancy = (float)occupancy;
    number_int(raw_field(e, FIELD_BYTES), &args->bytes);
    number_int(raw_field(e, FIELD_ELEMENTS), &args->elements);
}

static int32_t text(struct texts *x, const struct raw_event *e, enum field f, size_t longest, int64_t read_bytes)
{
    return e->seen >> f & 1 ? texts_name(x, &e->field[f], longest, read_bytes) : -1;
}

static void read_texts(struct event_args *args, struct texts *x, const struct raw_event *e, int64_t read_bytes)
{
    args->dims = text(x, e, FIELD_DIMS, IMPORT_LONGEST_ARG, read_bytes);
    args->types = text(x, e, FIELD_TYPES, IMPORT_LONGEST_ARG, read_bytes);
    args->values = text(x, e, FIELD_VALUES, IMPORT_LONGEST_ARG, read_bytes);
    args->collective = text(x, e, FIELD_COLLECTIVE, IMPORT_LONGEST_ARG, read_bytes);
    args->dtype = text(x, e, FIELD_DTYPE, IMPORT_LONGEST_ARG, read_bytes);
    const enum field stack = raw_field(e, FIELD_STACK)->size ? FIELD_STACK : FIELD_MODULES;
    if (raw_field(e, stack)->size)
        args->stack = text(x, e, stack, IMPORT_LONGEST_STACK, read_bytes);
}

int32_t args_index(struct args *a, struct texts *x, const struct raw_event *e, int64_t read_bytes)
{
    struct event_args args = {.registers = -1, .shared_bytes = -1, .occupancy = -1, .bytes = -1, .elements = -1,
                              .dims = -1, .types = -1, .values = -1, .collective = -1, .dtype = -1, .stack = -1};
    if (!(e->seen & interesting))
        return -1;
    if (e->seen & numbers)
        read_numbers(&args, e);
    if (e->seen & interesting & ~numbers)
        read_texts(&args, x, e, read_bytes);
    a->trace->origin.has_stacks |= args.stack >= 0;
    a->trace->origin.has_shapes |= args.dims >= 0;
    return intern(a, &args, read_bytes);
}
