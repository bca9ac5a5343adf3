/* Texts to tokens: from files or from the built-in corpus, by byte or by character, all with one vocabulary. By character that is
 * the characters of all texts, or a vocabulary that is given, which must have them. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/arena.h"
#include "core/setup.h"
#include "core/system.h"
#include "data/corpus.h"
#include "data/data_int.h"
#include "data/utf8.h"

enum { CORPUS_SEED = 20260101 };
enum { CHECKED_CHARS = 1 << 20, READ_BYTES = 4 << 20 };        /* between two looks at whether to go on */

/* ---- getting them ---- */

/* Behind what is there already; `most` 0: all. */
static enum status append(struct text *t, struct text_input *in, uint64_t most, struct error *err)
{
    for (size_t room = t->size, n = 1; n;) {
        size_t want = t->size ? READ_BYTES : text_input_size(in) + 1;
        want = most && most - t->size < want ? (size_t)(most - t->size) : want;
        if (t->size + want > room) {
            room = t->size + want > 2 * room ? t->size + want : 2 * room;
            char *bytes = realloc(t->bytes, room ? room : 1);
            if (!bytes)
                return error_set(err, CANNOT, "out of memory: '%s' has more than %.1f MB; set data.max_chars", t->name, (double)t->size / 1e6);
            t->bytes = bytes;
        }
        enum status st = setup_check("text", err);
        if (st == OK)
            st = text_input_read(in, t->bytes + t->size, want, &n, err);
        if (st != OK)
            return st;
        t->size += n;
    }
    return OK;
}

/* Also where what comes next cannot be read: it is not wanted. */
static bool has_more(struct text_input *in)
{
    struct error unsaid;
    char next;
    size_t n;
    return text_input_read(in, &next, 1, &n, &unsaid) != OK || n > 0;
}

static enum status append_file(struct text *t, const char *path, uint64_t most, struct error *err)
{
    struct text_input *in;
    enum status st = text_input_open(&in, path, err);
    if (st != OK)
        return st;
    st = append(t, in, most, err);
    t->file_bytes += (double)text_input_size(in);
    t->cut |= st == OK && most && t->size >= most && has_more(in);
    text_input_free(in);
    return st;
}

static double size_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (double)s.st_size : 0;
}

/* Lines of one file and of the next are two, also where the first has no end. */
static void end_line(struct text *t, const struct config_data *c)
{
    char *bytes = t->size && c->samples == SAMPLES_LINES && t->bytes[t->size - 1] != '\n' ? realloc(t->bytes, t->size + 1) : NULL;
    if (!bytes)
        return;
    t->bytes = bytes;
    t->bytes[t->size++] = '\n';
}

enum status text_read(struct text *t, const char *path, const struct config_data *c, bool bytes, struct error *err)
{
    const uint64_t limit = (uint64_t)(c->max_chars > 0 ? c->max_chars : 0);
    const uint64_t most = bytes ? limit : limit > UINT64_MAX / 4 ? 0 : limit * 4;
    *t = (struct text){.name = path};
    enum status st = file_list_init(&t->files, path, "text", err);
    if (st != OK)
        return st;
    t->starts = xcalloc((size_t)t->files.n, sizeof *t->starts);
    int i = 0;
    for (; i < t->files.n && st == OK && (!most || t->size < most); i++) {
        end_line(t, c);
        t->starts[i] = t->size;
        if (!most || t->size < most)
            st = append_file(t, t->files.paths[i], most, err);
    }
    for (; i < t->files.n && st == OK; i++) {
        t->cut = true;
        t->starts[i] = t->size;
        t->file_bytes += size_of(t->files.paths[i]);
    }
    if (st == OK && !t->size)
        st = error_set(err, BAD_INPUT, "'%s' is empty; it should hold text", path);
    return st;
}

void text_release(struct text *t)
{
    free(t->bytes);
    free(t->starts);
    file_list_release(&t->files);
    *t = (struct text){.name = NULL};
}

enum status text_generate(struct text *t, enum data_domain domain, const struct config_data *c, struct error *err)
{
    *t = (struct text){.name = "the built-in corpus", .is_corpus = true, .domain = domain};
    if (c->chars <= 0)
        return error_set(err, BAD_INPUT, "data.chars is %lld; the built-in corpus needs at least model.seq + 1", (long long)c->chars);
    t->size = (size_t)(t->chars = c->chars);
    t->bytes = corpus_generate(domain, CORPUS_SEED, t->size);
    if (!t->bytes)
        return error_set(err, CANNOT, "out of memory: data.chars %lld need %.1f MB; set it smaller", (long long)c->chars,
                         (double)c->chars / 1e6);
    return setup_check("the corpus", err);
}

/* ---- which characters there are ---- */

/* Of the corpus: all that its grammar can print, so that a model fits a corpus of any length. */
static void mark_alphabet(enum data_domain domain, int32_t *seen)
{
    bool used[128];
    corpus_alphabet(domain, used);
    for (int c = 0; c < 128; c++)
        seen[c] |= used[c];
}

static void cut_at(struct text *t, size_t at)
{
    t->cut |= at < t->size;
    t->size = at;
}

/* A byte of a text, by the file that it comes from and its place there. */
static enum status refuse_byte(const struct text *t, size_t at, bool given, struct error *err)
{
    int i = t->files.n - 1;
    while (i > 0 && t->starts[i] > at)
        i--;
    return error_set(err, BAD_INPUT, "'%s' is not UTF-8 text at byte %zu (0x%02X); %s", i < 0 ? t->name : t->files.paths[i], i < 0 ? at : at - t->starts[i],
                     (unsigned char)t->bytes[at], given ? "convert the file: the model reads characters" : "set data.tokens: byte, or convert the file");
}

/* Counts the characters up to max_chars, cuts the text there and marks in seen[] which characters there are. `given`: those of a model that is there already. */
static enum status survey(struct text *t, int64_t max_chars, int32_t *seen, bool given, struct error *err)
{
    size_t at = 0;
    for (t->chars = 0; at < t->size && (max_chars <= 0 || t->chars < max_chars); t->chars++) {
        uint32_t c;
        if (t->chars % CHECKED_CHARS == 0 && setup_check("text", err) != OK)
            return err->status;
        const size_t step = utf8_decode(t->bytes + at, t->size - at, &c);
        if (step == 0)
            return refuse_byte(t, at, given, err);
        seen[c] = 1;
        at += step;
    }
    cut_at(t, at);
    return OK;
}

/* The same for tokens that may hold any bytes: one that is not of UTF-8 counts as a character. */
static enum status cut_to_chars(struct text *t, int64_t max_chars, struct error *err)
{
    size_t at = 0;
    if (max_chars <= 0 || t->is_corpus)
        return OK;
    for (int64_t n = 0; at < t->size && n < max_chars; n++) {
        uint32_t c;
        if (n % CHECKED_CHARS == 0 && setup_check("text", err) != OK)
            return err->status;
        const size_t step = utf8_decode(t->bytes + at, t->size - at, &c);
        at += step ? step : 1;
    }
    cut_at(t, at);
    return OK;
}

static enum status mark(struct text *t, int64_t max_chars, int32_t *seen, bool given, struct error *err)
{
    if (!t->is_corpus)
        return survey(t, max_chars, seen, given, err);
    mark_alphabet(t->domain, seen);
    return OK;
}

/* ---- the vocabulary ---- */

/* Makes one of the characters that are marked. */
static enum status collect(struct tokenizer *out, const int32_t *seen, struct error *err)
{
    uint32_t *points = xcalloc(UTF8_CODE_POINTS, sizeof *points);
    int32_t n = 0;
    for (uint32_t c = 0; c < UTF8_CODE_POINTS; c++)
        if (seen[c])
            points[n++] = c;
    const enum status st = tokenizer_init(out, TOKENIZER_CHAR, points, n, err);
    free(points);
    return st;
}

static bool has(const struct tokenizer *v, uint32_t code_point, int32_t *from)
{
    while (*from < v->n && v->code_points[*from] < code_point)
        ++*from;
    return *from < v->n && v->code_points[*from] == code_point;
}

/* Files are the user's; of the corpus, only which domain it is. */
static const char *advice(const struct text *t, int missing)
{
    if (t->is_corpus)
        return "set data.domain to one that it was trained on, or train with this one";
    return missing == 1 ? "take it out, or train with it" : "take them out, or train with them";
}

/* Refuses marks that the vocabulary does not have, by their names. */
static enum status check_known(const struct text *t, const struct tokenizer *v, const int32_t *seen, struct error *err)
{
    enum { NAMED = 5 };
    char names[NAMED * 24] = "", shown[5];
    size_t used = 0;
    int missing = 0;
    int32_t from = 0;
    for (uint32_t c = 0; c < UTF8_CODE_POINTS; c++) {
        if (!seen[c] || has(v, c, &from) || ++missing > NAMED)
            continue;
        utf8_encode(c, shown);
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s' (U+%04X)", used ? ", " : "", c < ' ' ? "?" : shown, c);
    }
    if (!missing)
        return OK;
    return error_set(err, BAD_INPUT, "'%s' holds %d character%s that the vocabulary of %d does not have: %s%s; %s", t->name, missing,
                     missing == 1 ? "" : "s", v->n, names, missing > NAMED ? ", ..." : "", advice(t, missing));
}

/* ---- stores ---- */

static enum status convert(struct text *t, const int32_t *id_of, int64_t vocab, struct store *s, struct error *err)
{
    enum status st = store_init_memory(s, t->name, t->chars, vocab, err);
    size_t at = 0;
    for (int64_t i = 0; i < t->chars && st == OK; i++) {
        uint32_t c = 0;
        if (i % CHECKED_CHARS == 0)
            st = setup_check("text", err);
        at += utf8_decode(t->bytes + at, t->size - at, &c);
        store_set(s, i, id_of[c]);
    }
    if (st != OK)
        store_release(s);
    return st;
}

/* A byte each, before and after: what is read is written over. */
static void convert_in_place(struct text *t, const int32_t *id_of)
{
    for (size_t i = 0; i < t->size; i++)
        t->bytes[i] = (char)id_of[(unsigned char)t->bytes[i]];
}

/* id_of NULL: bytes are ids. */
static enum status add_store(struct text *t, const int32_t *id_of, const struct tokenizer *v, struct error *err)
{
    struct store s = {.name = NULL};
    enum status st = OK;
    if (id_of && ((size_t)t->chars != t->size || v->n > 256))
        st = convert(t, id_of, v->n, &s, err);
    else {
        if (id_of)
            convert_in_place(t, id_of);
        s = (struct store){.name = xstrdup(t->name), .memory = t->bytes, .width = 1, .count = (int64_t)t->size};
        t->bytes = NULL;            /* handed over */
    }
    if (st != OK)
        return st;
    s.val = t->val;
    *dataset_add_store(t->to) = s;
    return OK;
}

/* A dataset that has a text already has the vocabulary already. */
static enum status give_vocabulary(struct dataset *d, const struct tokenizer *v, struct error *err)
{
    d->vocab = v->n;
    return d->tokenizer.n ? OK : tokenizer_copy(&d->tokenizer, v, err);
}

static enum status by_char(struct text *texts, int n, const struct config_data *c, struct tokenizer *v, struct error *err)
{
    int32_t *id_of = xcalloc(UTF8_CODE_POINTS, sizeof *id_of);      /* marks at first */
    enum status st = OK;
    for (int i = 0; i < n && st == OK; i++) {
        st = mark(&texts[i], c->max_chars, id_of, v->n > 0, err);
        if (st == OK && v->n)           /* those of the texts before are known */
            st = check_known(&texts[i], v, id_of, err);
    }
    if (st == OK && !v->n)
        st = collect(v, id_of, err);
    for (int32_t i = 0; i < v->n && st == OK; i++)
        id_of[v->code_points[i]] = i;
    for (int i = 0; i < n && st == OK; i++)
        st = add_store(&texts[i], id_of, v, err);
    free(id_of);
    return st;
}

/* Byte pairs; on all cores, as ids do not depend on how many there are. */
static enum status by_pairs(struct text *t, const struct config_data *c, const struct tokenizer *v, struct error *err)
{
    struct id_list ids = {0};
    struct store s;
    if (c->samples == SAMPLES_LINES)
        return error_set(err, BAD_INPUT, "data.samples is lines, and tokens of byte pairs may go on from one line to the next; set it to windows");
    enum status st = cut_to_chars(t, c->max_chars, err);
    if (st == OK)
        st = bpe_encode_threads(v->bpe, t->bytes, t->size, true, system_cores(sched_getaffinity), &ids, err);
    if (st == OK)
        st = store_init_memory(&s, t->name, (int64_t)ids.n, v->n, err);
    for (size_t i = 0; st == OK && i < ids.n; i++)
        store_set(&s, (int64_t)i, ids.ids[i]);
    id_list_release(&ids);
    if (st != OK)
        return st;
    s.val = t->val;
    *dataset_add_store(t->to) = s;
    return OK;
}

enum status texts_tokenize(struct text *texts, int n, const struct config_data *c, const struct tokenizer *given, struct error *err)
{
    struct tokenizer v = {.kind = TOKENIZER_NONE};
    const bool bytes = !given && c->tokens == TOKENS_BYTE;
    enum status st = OK;
    if (given || bytes)
        st = given ? tokenizer_copy(&v, given, err) : tokenizer_init(&v, TOKENIZER_BYTE, NULL, 0, err);
    if (st == OK && (v.kind == TOKENIZER_CHAR || v.kind == TOKENIZER_NONE))
        st = by_char(texts, n, c, &v, err);
    for (int i = 0; i < n && st == OK; i++) {
        if (v.kind == TOKENIZER_BYTE)
            st = add_store(&texts[i], NULL, &v, err);
        else if (v.kind == TOKENIZER_BPE)
            st = by_pairs(&texts[i], c, &v, err);
        texts[i].to->cut |= texts[i].cut;
        texts[i].to->text_bytes += texts[i].file_bytes;
        if (st == OK)
            st = give_vocabulary(texts[i].to, &v, err);
    }
    tokenizer_release(&v);
    return st;
}

bool text_is_bytes(const struct config_data *c, const struct tokenizer *given)
{
    return given ? given->kind == TOKENIZER_BYTE : c->tokens == TOKENS_BYTE;
}
