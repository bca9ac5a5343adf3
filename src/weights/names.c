/* Names of tensors: without what programs put before them, by the patterns of a family, and which family they are of. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "weights/weights_int.h"

/* torch.compile, DataParallel, and the classes that a model is wrapped in. */
static const char *const wrappers[] = {"_orig_mod.", "module.", "transformer.", "model."};

static const char *unwrapped(const char *name)
{
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (!strncmp(name, wrappers[i], strlen(wrappers[i])))
            return unwrapped(name + strlen(wrappers[i]));
    return name;
}

static int compare_named(const void *a, const void *b) { return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name); }

enum status weights_index(struct weights *w, struct error *err)
{
    int n = 0;
    for (int i = 0; i < w->n_files; i++)
        n += w->files[i].n;
    if (!n)
        return error_set(err, BAD_INPUT, "'%s' holds no tensors", w->where);
    w->tensors = xcalloc((size_t)n, sizeof *w->tensors);
    for (int i = 0; i < w->n_files; i++)
        for (int t = 0; t < w->files[i].n; t++)
            w->tensors[w->n++] = (struct named){unwrapped(w->files[i].tensors[t].name), &w->files[i].tensors[t]};
    qsort(w->tensors, (size_t)w->n, sizeof *w->tensors, compare_named);
    for (int i = 1; i < w->n; i++)
        if (!strcmp(w->tensors[i].name, w->tensors[i - 1].name))
            return error_set(err, BAD_INPUT, "'%s' holds the tensor '%s' twice: as '%s' and as '%s'", w->where, w->tensors[i].name,
                             w->tensors[i - 1].tensor->name, w->tensors[i].tensor->name);
    return OK;
}

const struct tensor *weights_find(const struct weights *w, const char *name)
{
    const struct named key = {.name = name};
    const struct named *found = bsearch(&key, w->tensors, (size_t)w->n, sizeof *w->tensors, compare_named);
    return found ? found->tensor : NULL;
}

void name_fill(char out[NAME_MAX_BYTES], const char *pattern, int64_t layer)
{
    const char *at = strchr(pattern, '#');
    if (at)
        snprintf(out, NAME_MAX_BYTES, "%.*s%lld%s", (int)(at - pattern), pattern, (long long)layer, at + 1);
    else
        snprintf(out, NAME_MAX_BYTES, "%s", pattern);
}

bool name_matches(const char *pattern, const char *name, int64_t *layer)
{
    *layer = -1;
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*name++ != *pattern)
                return false;
            continue;
        }
        if (!isdigit((unsigned char)*name) || (*name == '0' && isdigit((unsigned char)name[1])))
            return false;
        for (*layer = 0; isdigit((unsigned char)*name); name++)
            if (*layer < INT32_MAX)
                *layer = *layer * 10 + (*name - '0');
    }
    return !*name;
}

const struct name_row *name_row_of(const struct family *f, const char *ours, int *part, int64_t *layer)
{
    for (const struct name_row *r = f->rows; r->theirs; r++)
        for (*part = 0; *part < PARTS_MAX && r->ours[*part]; ++*part)
            if (name_matches(r->ours[*part], ours, layer))
                return r;
    *part = 0;
    return NULL;
}

bool weights_is_passed_over(const struct weights *w, const char *name)
{
    int64_t layer;
    for (const char *const *p = w->family->passed_over; p && *p; p++)
        if (name_matches(*p, name, &layer))
            return true;
    return false;
}

/* ---- families ---- */

static const struct family *const families[] = {&family_gpt2, &family_nanogpt, &family_llama, &family_meta, &family_hone};
enum { FAMILIES = sizeof families / sizeof *families };

const struct family *family_of_type(const char *model_type)
{
    for (int i = 0; i < FAMILIES; i++)
        if (families[i]->model_type && !strcmp(families[i]->model_type, model_type))
            return families[i];
    return NULL;
}

/* Conv1D has three times as many columns as rows, Linear as many rows as columns: that is all that tells GPT-2 of Hugging Face from nanoGPT. */
static bool is_turned(const struct tensor *t) { return t->rank == 2 && t->dim[1] == 3 * t->dim[0]; }

static const struct family *family_by_names(const struct weights *w)
{
    for (int i = 0; i < FAMILIES; i++) {
        const struct tensor *t = weights_find(w, families[i]->sign);
        if (t && (families[i] != &family_gpt2 || is_turned(t)))
            return families[i];
    }
    return NULL;
}

static enum status refuse_names(const struct weights *w, struct error *err)
{
    char list[300] = "";
    size_t used = 0;
    for (int i = 0; i < w->n && i < 4; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s'%.60s'", i ? ", " : "", w->tensors[i].name);
    return error_set(err, BAD_INPUT, "'%s' holds %d tensors, such as %s: these are names of no family that is known here; expected GPT-2 ('%s'), nanoGPT, "
                     "LLaMA ('%s' or '%s') or hone ('%s')", w->where, w->n, list, family_gpt2.sign, family_llama.sign, family_meta.sign, family_hone.sign);
}

/* "f16 and f32": what the weights are stored as. */
static void list_types(struct weights *w)
{
    size_t used = 0;
    for (int type = TENSOR_F32; type <= TENSOR_BOOL; type++)
        for (int i = 0; i < w->n; i++)
            if ((int)w->tensors[i].tensor->type == type && !weights_is_passed_over(w, w->tensors[i].name)) {
                used += (size_t)snprintf(w->types + used, sizeof w->types - used, "%s%s", used ? " and " : "", tensor_type_name((enum tensor_type)type));
                break;
            }
}

enum status weights_choose_family(struct weights *w, struct error *err)
{
    const char *type = json_string_value(json_object_get(w->config, "model_type"));
    w->family = type ? family_of_type(type) : family_by_names(w);
    if (type && !w->family)
        return error_set(err, BAD_INPUT, "'%s/config.json': model_type is '%.64s'; expected gpt2 or llama", w->folder, type);
    if (!w->family)
        return refuse_names(w, err);
    list_types(w);
    return OK;
}
