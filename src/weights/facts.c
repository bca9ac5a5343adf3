/* What a model is: from its config.json, and from the shapes of its tensors where that says nothing; then as a configuration of ours. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weights/weights_int.h"

enum { SEQ_MOST = 2048 };       /* tokens of a sample where positions are rotated, and so no table has a say; more is a --set */

/* ---- values of config.json ---- */

static enum status refuse_value(const json_t *j, const char *key, const char *wanted, const char *where, struct error *err)
{
    char shown[64] = "no such thing";
    const json_t *v = json_object_get(j, key);
    if (json_is_string(v))
        snprintf(shown, sizeof shown, "'%.50s'", json_string_value(v));
    else if (json_is_number(v))
        snprintf(shown, sizeof shown, "%.15g", json_number_value(v));
    else if (json_is_boolean(v))
        snprintf(shown, sizeof shown, "%s", json_is_true(v) ? "true" : "false");
    return error_set(err, BAD_INPUT, "'%s': %s is %s; expected %s", where, key, shown, wanted);
}

static bool is_there(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    return v && !json_is_null(v);
}

enum status facts_need(const json_t *j, const char *key, const char *where, struct error *err)
{
    return is_there(j, key) ? OK : error_set(err, BAD_INPUT, "'%s': %s is missing", where, key);
}

enum status facts_int(int64_t *out, const json_t *j, const char *key, const char *where, struct error *err)
{
    const json_t *v = json_object_get(j, key);
    if (!is_there(j, key))
        return OK;
    if (!json_is_integer(v) || json_integer_value(v) < 1)
        return refuse_value(j, key, "a whole number from 1 up", where, err);
    if (json_integer_value(v) > INT32_MAX)
        return refuse_value(j, key, "at most 2147483647", where, err);
    *out = json_integer_value(v);
    return OK;
}

enum status facts_real(double *out, const json_t *j, const char *key, const char *where, struct error *err)
{
    const double x = json_number_value(json_object_get(j, key));
    if (!is_there(j, key))
        return OK;
    if (!json_is_number(json_object_get(j, key)) || !(x > 0) || !isfinite(x))
        return refuse_value(j, key, "a number above 0", where, err);
    *out = x;
    return OK;
}

enum status facts_bool(bool *out, const json_t *j, const char *key, const char *where, struct error *err)
{
    if (!is_there(j, key))
        return OK;
    if (!json_is_boolean(json_object_get(j, key)))
        return refuse_value(j, key, "true or false", where, err);
    *out = json_is_true(json_object_get(j, key));
    return OK;
}

enum status facts_want_bool(const json_t *j, const char *key, bool wanted, const char *why, const char *where, struct error *err)
{
    bool is = wanted;
    const enum status st = facts_bool(&is, j, key, where, err);
    if (st != OK || is == wanted)
        return st;
    return error_set(err, BAD_INPUT, "'%s': %s is %s, and that cannot be read so far: %s", where, key, is ? "true" : "false", why);
}

enum status facts_want_word(const json_t *j, const char *key, const char *const *words, const char *where, struct error *err)
{
    const char *is = json_string_value(json_object_get(j, key));
    if (!is_there(j, key))
        return OK;
    for (const char *const *w = words; is && *w; w++)
        if (!strcmp(is, *w))
            return OK;
    char list[128] = "";
    size_t used = 0;
    for (const char *const *w = words; *w && used < sizeof list; w++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", w == words ? "" : w[1] ? ", " : " or ", *w);
    return refuse_value(j, key, list, where, err);
}

/* ---- what the tensors tell ---- */

static const struct tensor *tensor_of(const struct weights *w, const char *ours, enum layout *layout)
{
    char name[NAME_MAX_BYTES];
    int part;
    int64_t layer;
    const struct name_row *row = name_row_of(w->family, ours, &part, &layer);
    *layout = row ? row->layout : LAYOUT_SAME;
    if (!row)
        return NULL;
    name_fill(name, row->theirs, layer);
    return weights_find(w, name);
}

/* Rows of a matrix of ours that has one of theirs to itself. */
static int64_t rows_of(const struct weights *w, const char *ours)
{
    enum layout layout;
    const struct tensor *t = tensor_of(w, ours, &layout);
    return t && t->rank == 2 ? t->dim[layout == LAYOUT_TURNED] : 0;
}

static int64_t count_layers(const struct weights *w)
{
    int64_t most = -1, layer;
    for (int i = 0; i < w->n; i++)
        for (const struct name_row *r = w->family->rows; r->theirs; r++)
            if (name_matches(r->theirs, w->tensors[i].name, &layer) && layer > most)
                most = layer;
    return most + 1;
}

static void look_at_tensors(struct model_facts *f, const struct weights *w)
{
    enum layout layout;
    const struct tensor *words = tensor_of(w, "emb.weight", &layout);
    if (words && words->rank == 2) {
        f->vocab = f->vocab ? f->vocab : words->dim[0];
        f->dim = f->dim ? f->dim : words->dim[1];
    }
    f->layers = f->layers ? f->layers : count_layers(w);
    f->ffn = f->ffn ? f->ffn : rows_of(w, "blocks.0.u.weight");
    if (!f->positions && w->family->arch == ARCH_GPT)
        f->positions = rows_of(w, "pos.weight");
    if (!f->kv_heads && w->family->arch == ARCH_LLAMA && f->heads && f->dim >= f->heads)
        f->kv_heads = rows_of(w, "blocks.0.attn.k.weight") / (f->dim / f->heads);
    f->tied = (f->tied || !f->tied_known) && !weights_head_differs(w);      /* whatever config.json says, no numbers are lost */
}

/* ---- as a configuration ---- */

static bool is_set(const char *const *sets, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (!strncmp(sets[i], key, strlen(key)) && sets[i][strlen(key)] == '=')
            return true;
    return false;
}

static enum status refuse_unknown(const struct weights *w, const char *what, const struct model_facts *f, struct error *err)
{
    if (!strcmp(what, "heads"))
        return error_set(err, BAD_INPUT, "'%s' does not say how many heads attention has, and no config.json lies beside it; give --set model.heads=N, "
                         "where N divides %lld", w->where, (long long)f->dim);
    return error_set(err, BAD_INPUT, "'%s' does not say %s: neither a config.json beside it nor its tensors do", w->where, what);
}

static enum status check_known(const struct weights *w, const struct model_facts *f, bool heads_are_set, struct error *err)
{
    if (!f->vocab)
        return refuse_unknown(w, "how large its vocabulary is", f, err);
    if (!f->dim)
        return refuse_unknown(w, "how wide it is", f, err);
    if (!f->layers)
        return refuse_unknown(w, "how many layers it has", f, err);
    return f->heads || heads_are_set ? OK : refuse_unknown(w, "heads", f, err);
}

/* A key that nothing is said about keeps its default. */
static void put_int(FILE *to, const char *key, int64_t value)
{
    if (value)
        fprintf(to, ", %s: %lld", key, (long long)value);
}

static void print_model(FILE *to, const struct weights *w, const struct model_facts *f, bool seq_is_set)
{
    const bool table = w->family->arch == ARCH_GPT;
    fprintf(to, "model: {arch: %s, head: %s", config_word("model.arch", (int)w->family->arch), f->tied ? "tied" : "own");
    put_int(to, "vocab", f->vocab);
    put_int(to, "dim", f->dim);
    put_int(to, "layers", f->layers);
    put_int(to, "heads", f->heads);
    put_int(to, "kv_heads", table ? 0 : f->kv_heads);
    put_int(to, "ffn", f->ffn);
    put_int(to, "positions", table && seq_is_set ? f->positions : 0);
    put_int(to, "seq", table || (f->positions && f->positions < SEQ_MOST) ? f->positions : SEQ_MOST);
    if (f->rope_base > 0)
        fprintf(to, ", rope_base: %.17g", f->rope_base);
    if (f->rope_scaling != ROPE_PLAIN)
        fprintf(to, ", rope_scaling: %s, rope_factor: %.17g", config_word("model.rope_scaling", (int)f->rope_scaling), f->rope_factor);
    if (f->rope_scaling == ROPE_LLAMA3)
        fprintf(to, ", rope_low: %.17g, rope_high: %.17g, rope_context: %lld", f->rope_low, f->rope_high, (long long)f->rope_context);
    if (f->norm_eps > 0)
        fprintf(to, ", norm_eps: %.17g", f->norm_eps);
    fputs("}\n", to);
}

enum { WHERE_MAX = CONFIG_PATH_MAX + 16 };

/* The file that says what the model is, or the weights themselves. */
static const char *where_of(const struct weights *w, char out[WHERE_MAX])
{
    if (w->config)
        snprintf(out, WHERE_MAX, "%s/%s", w->folder, w->family->model_type ? "config.json" : "params.json");
    else
        snprintf(out, WHERE_MAX, "%s", w->where);
    return out;
}

/* In the words of their file, not of ours that is made of it. */
static enum status check_heads(const struct weights *w, const struct model_facts *f, struct error *err)
{
    char where[WHERE_MAX];
    const char *heads = w->family->heads_key, *dim = w->family->dim_key;
    if (!w->config || !heads || !f->heads || f->dim % f->heads == 0)
        return OK;
    return error_set(err, BAD_INPUT, "'%s': %s is %lld, and %lld does not divide %s %lld", where_of(w, where), heads, (long long)f->heads, (long long)f->heads, dim,
                     (long long)f->dim);
}

/* No file of theirs has the line of ours that is wrong. */
static enum status blame_theirs(const struct weights *w, struct error *err)
{
    char ours[WHERE_MAX + 16], text[sizeof err->text], where[WHERE_MAX];
    const int n = snprintf(ours, sizeof ours, "'%s' line 1: ", w->where);
    if (strncmp(err->text, ours, (size_t)n))
        return err->status;
    snprintf(text, sizeof text, "%s", err->text + n);
    return error_set(err, err->status, "'%.400s': %.600s", where_of(w, where), text);
}

static enum status read_said(const struct weights *w, struct model_facts *f, struct error *err)
{
    char where[WHERE_MAX];
    where_of(w, where);
    if (is_there(w->config, "quantization_config"))
        return error_set(err, BAD_INPUT, "'%s' has a quantization_config; hone reads weights of F32, F16, BF16 and F64", where);
    return w->config && w->family->read_config ? w->family->read_config(f, w->config, where, err) : OK;
}

static enum status read_facts(const struct weights *w, struct model_facts *f, struct error *err)
{
    const enum status st = read_said(w, f, err);
    if (st == OK)
        look_at_tensors(f, w);
    return st;
}

const char *weights_note(const struct weights *w)
{
    struct model_facts f = {0};
    struct error unused;
    if (w->family->note || read_said(w, &f, &unused) != OK || !f.tied || !weights_head_differs(w))
        return w->family->note;
    return "config.json ties the head to the embeddings, and the files have a head with other numbers: it is imported as a head of its own";
}

enum status weights_config(const struct weights *w, struct config *out, const char *const *sets, int n_sets, struct error *err)
{
    struct model_facts f = {0};
    char text[1024];
    if (w->family->ours)
        return error_set(err, BAD_INPUT, "'%s' has hone's own names, which do not say what model it is; train it with a config that does: "
                         "--set train.init=%s", w->where, w->where);
    enum status st = read_facts(w, &f, err);
    if (st == OK)
        st = check_known(w, &f, is_set(sets, n_sets, "model.heads"), err);
    if (st == OK && !is_set(sets, n_sets, "model.heads") && !is_set(sets, n_sets, "model.dim"))
        st = check_heads(w, &f, err);
    if (st != OK)
        return st;
    FILE *to = fmemopen(text, sizeof text, "w");
    if (!to)
        return error_set(err, CANNOT, "out of memory for a configuration");
    print_model(to, w, &f, is_set(sets, n_sets, "model.seq"));
    fclose(to);
    st = config_parse(out, w->where, text, strlen(text), sets, n_sets, err);
    return st == OK ? OK : blame_theirs(w, err);
}
