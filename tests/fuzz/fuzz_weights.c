/* A config.json and the names and shapes of tensors, as somebody may bring them: {"config": {...}, "tensors": {NAME: [SHAPE]}}. Whatever
 * is said of the model, it is refused in words, or every parameter can be copied. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "model/model.h"
#include "weights/weights_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TENSORS_MAX = 64, NUMBERS_MAX = 4096, LAYERS_MAX = 4 };
static float numbers[NUMBERS_MAX];

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Shapes that have more numbers than there are here become empty. */
static struct tensor tensor_of(const char *name, const json_t *shape)
{
    struct tensor t = {.name = name, .type = TENSOR_F32, .data = numbers};
    int64_t count = 1;
    for (size_t i = 0; i < json_array_size(shape) && i < TENSOR_MAX_RANK; i++) {
        const json_int_t n = json_integer_value(json_array_get(shape, i));
        t.dim[t.rank++] = n < 0 || n > NUMBERS_MAX ? 0 : n;
        count *= t.dim[t.rank - 1];
        if (count > NUMBERS_MAX)
            t.dim[0] = count = 0;
    }
    return t;
}

static struct weights *made_of(const json_t *j)
{
    struct weights *w = xcalloc(1, sizeof *w);
    const char *name;
    json_t *shape;
    w->files = xcalloc(1, sizeof *w->files);
    w->files[0].tensors = xcalloc(TENSORS_MAX, sizeof(struct tensor));
    w->n_files = 1;
    w->config = json_is_object(json_object_get(j, "config")) ? json_incref(json_object_get(j, "config")) : NULL;
    json_object_foreach(json_object_get(j, "tensors"), name, shape)
        if (w->files[0].n < TENSORS_MAX && strlen(name) <= 512)
            w->files[0].tensors[w->files[0].n++] = tensor_of(name, shape);
    return w;
}

static void copy_all(const struct weights *w, const struct config_model *m)
{
    struct error err = {.text = ""};
    struct program *p = NULL;
    if (m->layers > LAYERS_MAX || model_build(&p, m, (struct model_options){.batch = 1}, &err) != OK)
        return;
    if (weights_check(w, p, m, &err) != OK)
        require(err.text[0] != '\0');
    else
        for (int i = 0; i < p->n_values; i++)
            if (p->values[i].kind == VALUE_PARAMETER) {
                float *to = xcalloc(1, value_bytes(&p->values[i]));
                weights_copy(w, &p->values[i], m, to);
                free(to);
            }
    program_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const sets[] = {"model.heads=2"};
    json_t *j = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    struct error err = {.text = ""};
    struct config *c = xcalloc(1, sizeof *c);
    struct weights *w = made_of(j);
    for (int n_sets = 0; n_sets < 2; n_sets++) {
        free(w->tensors);
        w->tensors = NULL;
        w->n = 0;
        enum status st = weights_index(w, &err);
        if (st == OK)
            st = weights_choose_family(w, &err);
        if (st == OK)
            st = weights_config(w, c, sets, n_sets, &err);
        if (st == OK)
            copy_all(w, &c->model);
        else
            require(err.text[0] != '\0');
    }
    weights_free(w);
    free(c);
    json_decref(j);
    return 0;
}
