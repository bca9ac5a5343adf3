/* Inside the weights room: families, their tables of names, and files that were opened. */
#ifndef HONE_WEIGHTS_WEIGHTS_INT_H
#define HONE_WEIGHTS_WEIGHTS_INT_H

#include <jansson.h>

#include "weights/weights.h"

enum { NAME_MAX_BYTES = 600, PARTS_MAX = 3 };

/* How a matrix of ours (out, in) lies in theirs. */
enum layout {
    LAYOUT_SAME,            /* (out, in), or a vector */
    LAYOUT_TURNED,          /* (in, out): Conv1D */
    LAYOUT_HALVES,          /* (out, in); numbers of a head that are rotated together are half a head apart, and neighbours in ours */
};

/* A tensor of theirs, with # for the number of the layer, and those of ours that stand in it one after the other. */
struct name_row {
    const char *theirs;
    const char *ours[PARTS_MAX];
    enum layout layout;
    bool may_lack;          /* a bias that is zero where it is not there */
};

/* What config.json says in the end; 0: nothing says. */
struct model_facts {
    int64_t vocab, dim, layers, heads, kv_heads, ffn, positions;
    double rope_base, norm_eps;
    enum rope_scaling rope_scaling;
    double rope_factor, rope_low, rope_high;        /* of what is scaled */
    int64_t rope_context;
    bool tied, tied_known;
};

struct family {
    const char *title;
    const char *model_type;             /* of config.json; NULL: such files have none */
    const char *sign;                   /* a tensor that only this family has */
    enum arch arch;
    bool ours;                          /* names are ours */
    const struct name_row *rows;        /* ends with NULL */
    const char *const *passed_over;     /* ends with NULL: masks and tables, that are no weights */
    const char *note;
    const char *heads_key, *dim_key;    /* of config.json, for messages; NULL: there is none */
    enum status (*read_config)(struct model_facts *f, const json_t *j, const char *where, struct error *err);     /* NULL: there is none */
    json_t *(*write_config)(const struct config_model *m);      /* NULL: not for export */
};

extern const struct family family_gpt2, family_nanogpt, family_llama, family_meta, family_hone;
const struct family *family_of_type(const char *model_type);

/* A tensor by its name without what programs put before names. */
struct named {
    const char *name;
    const struct tensor *tensor;
};

struct weights {
    const struct family *family;
    char where[CONFIG_PATH_MAX];        /* as it was named, for messages */
    char folder[CONFIG_PATH_MAX];       /* empty: none */
    char types[64];
    struct safetensors *files;
    int n_files;
    struct named *tensors;              /* (n), sorted */
    int n;
    json_t *config;                     /* NULL: there is no config.json */
};

const struct tensor *weights_find(const struct weights *w, const char *name);
bool weights_is_passed_over(const struct weights *w, const char *name);
/* Fills tensors from the files, and the family from config.json or their names. */
enum status weights_index(struct weights *w, struct error *err);
enum status weights_choose_family(struct weights *w, struct error *err);

/* "h.#.ln_1.weight" with 3 for #. */
void name_fill(char out[NAME_MAX_BYTES], const char *pattern, int64_t layer);
/* Is the name one of the pattern? *layer: of its #, or -1. */
bool name_matches(const char *pattern, const char *name, int64_t *layer);
/* The row and part that a tensor of ours stands in, and the layer; NULL: none. */
const struct name_row *name_row_of(const struct family *f, const char *ours, int *part, int64_t *layer);

/* Values of config.json, with what would be right where they are wrong. A missing or null one leaves *out as it is. */
enum status facts_int(int64_t *out, const json_t *j, const char *key, const char *where, struct error *err);
enum status facts_real(double *out, const json_t *j, const char *key, const char *where, struct error *err);
enum status facts_bool(bool *out, const json_t *j, const char *key, const char *where, struct error *err);
/* Refused where it is missing, too. */
enum status facts_need(const json_t *j, const char *key, const char *where, struct error *err);
/* Refused unless the key is missing, null, or as wanted. */
enum status facts_want_bool(const json_t *j, const char *key, bool wanted, const char *why, const char *where, struct error *err);
enum status facts_want_word(const json_t *j, const char *key, const char *const *words, const char *where, struct error *err);

/* Has it a head with other numbers than its embeddings? */
bool weights_head_differs(const struct weights *w);

/* The row of theirs that row `row` of ours is. */
int64_t layout_row(enum layout l, const struct config_model *m, int64_t row);

/* torch_model.py, as it stands in the program. */
extern const void *const torch_model;
extern const size_t torch_model_bytes;

#endif
