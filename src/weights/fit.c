/* Do the tensors that were brought fit a program? Whatever does not is listed by name, with what is nearest to it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/bf16.h"
#include "core/f16.h"
#include "core/suggest.h"
#include "weights/weights_int.h"

enum { LISTED = 4 };        /* names of each list in a message */

/* Where a parameter of ours stands; NULL: the family has no name for it. */
static const char *theirs_of(const struct weights *w, const char *ours, char name[NAME_MAX_BYTES], const struct name_row **row, int *part)
{
    int64_t layer;
    *row = name_row_of(w->family, ours, part, &layer);
    if (w->family->ours)
        return ours;
    if (!*row)
        return NULL;
    name_fill(name, (*row)->theirs, layer);
    return name;
}

/* The shape that theirs must have: `parts` of ours, one after the other along the rows. */
static struct shape shape_of_theirs(const struct name_row *row, struct shape ours)
{
    int parts = 0;
    while (row && parts < PARTS_MAX && row->ours[parts])
        parts++;
    struct shape s = ours;
    s.dim[0] *= parts ? parts : 1;
    if (row && row->layout == LAYOUT_TURNED) {
        const int64_t rows = s.dim[0];
        s.dim[0] = s.dim[1];
        s.dim[1] = rows;
    }
    return s;
}

static bool is_number_type(enum tensor_type t) { return t == TENSOR_F32 || t == TENSOR_F16 || t == TENSOR_BF16 || t == TENSOR_F64; }

static enum status check_tensor(const struct weights *w, const struct tensor *t, const char *name, struct shape want, struct error *err)
{
    char a[64], b[64];
    struct shape has = {.rank = t->rank > MAX_RANK ? MAX_RANK : t->rank};
    memcpy(has.dim, t->dim, sizeof has.dim);
    if (!is_number_type(t->type))
        return error_set(err, BAD_INPUT, "'%s': tensor '%s' is %s; expected f32, f16, bf16 or f64", w->where, name, tensor_type_name(t->type));
    if (t->rank <= MAX_RANK && shape_equal(has, want))
        return OK;
    return error_set(err, BAD_INPUT, "'%s': tensor '%s' is %s, and this model needs %s", w->where, name, shape_text(has, a), shape_text(want, b));
}

/* ---- numbers, and whether they are the same ---- */

static float number(const struct tensor *t, int64_t i)
{
    switch (t->type) {
    case TENSOR_F16:
        return f16_value(((const uint16_t *)t->data)[i]);
    case TENSOR_BF16:
        return bf16_value(((const uint16_t *)t->data)[i]);
    case TENSOR_F64:
        return (float)((const double *)t->data)[i];
    default:
        return ((const float *)t->data)[i];
    }
}

static bool same_shape(const struct tensor *a, const struct tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

/* Whatever they are stored as. */
static bool same_numbers(const struct tensor *a, const struct tensor *b)
{
    if (!same_shape(a, b) || !is_number_type(a->type) || !is_number_type(b->type))
        return false;
    if (a->type == b->type && !memcmp(a->data, b->data, tensor_bytes(a)))
        return true;
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n *= a->dim[i];
    for (int64_t i = 0; i < n; i++) {
        const float x = number(a, i), y = number(b, i);
        if (x != y && !(isnan(x) && isnan(y)))
            return false;
    }
    return true;
}

/* Of a parameter of ours; *name: as it is in the file. NULL: there is none. */
static const struct tensor *tensor_of(const struct weights *w, const char *ours, char room[NAME_MAX_BYTES], const char **name)
{
    const struct name_row *row;
    int part;
    *name = theirs_of(w, ours, room, &row, &part);
    return *name ? weights_find(w, *name) : NULL;
}

bool weights_head_differs(const struct weights *w)
{
    char room[NAME_MAX_BYTES];
    const char *name;
    const struct tensor *head = tensor_of(w, "head.weight", room, &name), *words = tensor_of(w, "emb.weight", room, &name);
    return head && words && !same_numbers(head, words);
}

/* A tied head has no place for numbers of its own, which must not be lost without a word. */
static enum status check_head(const struct weights *w, const struct config_model *m, struct error *err)
{
    char rooms[2][NAME_MAX_BYTES];
    const char *head, *words;
    if (!config_head_is_tied(m) || !weights_head_differs(w))
        return OK;
    tensor_of(w, "head.weight", rooms[0], &head);
    tensor_of(w, "emb.weight", rooms[1], &words);
    return error_set(err, BAD_INPUT, "'%s': tensor '%s' has other numbers than '%s', and this model's head is tied to the embeddings; set model.head to own",
                     w->where, head, words);
}

/* ---- what is too much ---- */

/* A tensor of theirs that nothing of the program needs. A head beside tied embeddings is the embeddings once more (check_head). */
static bool is_spare(const struct weights *w, const struct program *p, const struct config_model *m, const char *name)
{
    char ours[NAME_MAX_BYTES];
    int64_t layer;
    if (weights_is_passed_over(w, name))
        return false;
    if (w->family->ours)
        return program_find(p, name) == NO_VALUE;
    for (const struct name_row *r = w->family->rows; r->theirs; r++) {
        if (!name_matches(r->theirs, name, &layer))
            continue;
        name_fill(ours, r->ours[0], layer);
        return program_find(p, ours) == NO_VALUE && !(config_head_is_tied(m) && !strcmp(ours, "head.weight"));
    }
    return true;
}

/* ---- lists ---- */

struct name_list {
    const char **names;
    int n;
};

static void list_add(struct name_list *l, struct arena *a, const char *name)
{
    l->names = xrealloc(l->names, (size_t)(l->n + 1) * sizeof *l->names);
    l->names[l->n++] = arena_printf(a, "%s", name);
}

static const char *nearest(const char *name, const struct name_list *among)
{
    const char *best = NULL;
    int least = (int)strlen(name) / 2;
    for (int i = 0; i < among->n; i++) {
        const int d = suggest_distance(name, among->names[i]);
        if (d < least)
            best = among->names[i], least = d;
    }
    return best;
}

/* "'a' (nearest 'b'), 'c' and 7 more" */
static void list_print(const struct name_list *l, const struct name_list *near, char *out, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < l->n && i < LISTED && used < size; i++) {
        const char *other = near ? nearest(l->names[i], near) : NULL;
        used += (size_t)snprintf(out + used, size - used, "%s'%.70s'", i ? ", " : "", l->names[i]);
        if (other && used < size)
            used += (size_t)snprintf(out + used, size - used, " (nearest: '%.70s')", other);
    }
    if (l->n > LISTED && used < size)
        snprintf(out + used, size - used, " and %d more", l->n - LISTED);
}

static enum status refuse(const struct weights *w, const struct name_list *missing, const struct name_list *spare, struct error *err)
{
    char lacks[512] = "", more[384] = "";
    list_print(missing, spare, lacks, sizeof lacks);
    list_print(spare, NULL, more, sizeof more);
    return error_set(err, BAD_INPUT, "'%.100s' does not fit this model:%s%s%s%s%s", w->where, missing->n ? " it lacks " : "", lacks,
                     missing->n && spare->n ? "," : "", spare->n ? " it has too much: " : "", more);
}

/* A parameter: missing ones go to the list, wrong ones are refused at once. */
static enum status check_parameter(const struct weights *w, const struct value *v, struct name_list *missing, struct arena *a, struct error *err)
{
    char room[NAME_MAX_BYTES];
    const struct name_row *row;
    int part;
    const char *name = theirs_of(w, v->name, room, &row, &part);
    const struct tensor *t = name ? weights_find(w, name) : NULL;
    if (t)
        return check_tensor(w, t, name, shape_of_theirs(row, v->shape), err);
    if (!(row && row->may_lack) && part == 0)
        list_add(missing, a, name ? name : v->name);
    return OK;
}

enum status weights_check(const struct weights *w, const struct program *p, const struct config_model *m, struct error *err)
{
    struct name_list missing = {0}, spare = {0};
    struct arena a = {0};
    enum status st = OK;
    for (int i = 0; i < p->n_values && st == OK; i++)
        if (p->values[i].kind == VALUE_PARAMETER && !p->values[i].slice)
            st = check_parameter(w, &p->values[i], &missing, &a, err);
    if (st == OK && !missing.n)
        st = check_head(w, m, err);
    for (int i = 0; i < w->n && st == OK; i++)
        if (is_spare(w, p, m, w->tensors[i].name))
            list_add(&spare, &a, w->tensors[i].name);
    if (st == OK && (missing.n || spare.n))
        st = refuse(w, &missing, &spare, err);
    free(missing.names);
    free(spare.names);
    arena_release(&a);
    return st;
}

/* ---- copies ---- */

void weights_copy(const struct weights *w, const struct value *v, const struct config_model *m, float *to)
{
    char room[NAME_MAX_BYTES];
    const struct name_row *row;
    int part = 0;
    const char *name = theirs_of(w, v->name, room, &row, &part);
    const struct tensor *t = name ? weights_find(w, name) : NULL;
    const int64_t rows = v->shape.dim[0], columns = v->shape.rank > 1 ? v->shape.dim[1] : 1;
    if (!t) {
        memset(to, 0, (size_t)(rows * columns) * sizeof *to);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        const int64_t from = layout_row(row ? row->layout : LAYOUT_SAME, m, r) + (row ? part : 0) * rows;
        const bool turned = row && row->layout == LAYOUT_TURNED;
        const int64_t first = turned ? from : from * columns, stride = turned ? t->dim[1] : 1;
        for (int64_t c = 0; c < columns; c++)
            to[r * columns + c] = number(t, first + c * stride);
    }
}

int64_t layout_row(enum layout l, const struct config_model *m, int64_t row)
{
    const int64_t width = m->dim / m->heads;
    if (l != LAYOUT_HALVES)
        return row;
    const int64_t head = row / width, at = row % width;
    return head * width + at / 2 + at % 2 * (width / 2);
}
