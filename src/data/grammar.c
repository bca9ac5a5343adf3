/* Compiles, measures and prints stochastic grammars; see grammar.h.
 *
 * Expected length L and entropy H of a symbol obey linear equations: L(A) is the mean over the choices of A of their
 * characters plus the L of their symbols, H(A) the entropy of the choice itself plus the mean of the H of the symbols
 * in it. Both are solved by sweeping until nothing changes, which converges exactly when the recursion is
 * subcritical. */
#include "data/grammar.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"

enum { MAX_SWEEPS = 10000, MAX_TOTAL = 60000, ZIPF_SCALE = 2000 };

/* ---- compiling ---- */

static int symbol_find(const struct grammar *g, const char *name, size_t length)
{
    for (int i = 0; i < g->n_symbols; i++)
        if (strlen(g->symbols[i].name) == length && memcmp(g->symbols[i].name, name, length) == 0)
            return i;
    return -1;
}

static int count_of(const char *text, size_t length, char what)
{
    int n = 0;
    for (size_t i = 0; i < length; i++)
        n += text[i] == what;
    return n;
}

/* Cuts text[0..length) into terminals and {symbols}. */
static enum status choice_parse(struct grammar *g, struct grammar_choice *choice, const char *text, size_t length,
                                struct error *err)
{
    struct grammar_part *parts = arena_alloc(&g->arena, sizeof *parts * (2 * (size_t)count_of(text, length, '{') + 1));
    const char *end = text + length;
    choice->parts = parts;
    while (text < end) {
        struct grammar_part *part = &parts[choice->n_parts++];
        const char *open = memchr(text, '{', (size_t)(end - text));
        *part = (struct grammar_part){.text = text, .length = (uint32_t)((open ? open : end) - text), .symbol = -1};
        if (open != text) {
            text += part->length;
            continue;
        }
        const char *close = memchr(text, '}', (size_t)(end - text));
        const size_t name = close ? (size_t)(close - text) - 1 : 0;
        part->symbol = symbol_find(g, text + 1, name);
        if (!close || part->symbol < 0)
            return error_set(err, BAD_INPUT, "grammar: '%.*s' names no symbol", (int)(end - text), text);
        text = close + 1;
    }
    return OK;
}

static enum status words_parse(struct grammar *g, struct grammar_symbol *s, struct grammar_choice *choices,
                               const char *text, struct error *err)
{
    enum status st = OK;
    for (int rank = 0; text && st == OK; rank++) {
        const char *bar = strchr(text, '|');
        choices[rank].weight = ZIPF_SCALE / (rank + 4);
        st = choice_parse(g, &choices[rank], text, bar ? (size_t)(bar - text) : strlen(text), err);
        text = bar ? bar + 1 : NULL;
        s->n_choices = rank + 1;
    }
    return st;
}

/* Fills the probabilities and the table that turns a random number into a choice. */
static enum status symbol_weigh(struct grammar *g, struct grammar_symbol *s, struct grammar_choice *choices,
                                struct error *err)
{
    for (int i = 0; i < s->n_choices; i++) {
        const int weight = choices[i].weight;
        if (weight <= 0 || weight > MAX_TOTAL - (int)s->total)
            return error_set(err, BAD_INPUT, "grammar: a choice of '%s' has the weight %d; weights are positive and at "
                             "most %d together", s->name, weight, MAX_TOTAL);
        s->total += (uint32_t)weight;
    }
    uint16_t *pick = arena_alloc(&g->arena, sizeof *pick * s->total);
    s->pick = pick;
    for (int i = 0; i < s->n_choices; i++) {
        choices[i].log_p = log((double)choices[i].weight / s->total);
        for (int k = 0; k < choices[i].weight; k++)
            *pick++ = (uint16_t)i;
    }
    return OK;
}

static enum status symbol_compile(struct grammar *g, struct grammar_symbol *s, const struct production *rows,
                                  int n_rows, struct error *err)
{
    const int most = rows->weight == WORDS ? count_of(rows->text, strlen(rows->text), '|') + 1 : n_rows;
    struct grammar_choice *choices = arena_alloc(&g->arena, sizeof *choices * (size_t)most);
    enum status st = OK;
    s->choices = choices;
    if (rows->weight == WORDS)
        st = words_parse(g, s, choices, rows->text, err);
    for (int i = 0; rows->weight != WORDS && i < n_rows && st == OK; i++) {
        choices[i].weight = rows[i].weight;
        st = choice_parse(g, &choices[i], rows[i].text, strlen(rows[i].text), err);
        s->n_choices = n_rows;
    }
    return st == OK ? symbol_weigh(g, s, choices, err) : st;
}

static int rows_of_symbol(const struct production *rows, int n_rows)
{
    int n = 1;
    while (n < n_rows && strcmp(rows[n].symbol, rows[0].symbol) == 0)
        n++;
    return n;
}

/* ---- measuring ---- */

struct moments { double length, entropy; };

static struct moments symbol_moments(const struct grammar_symbol *s, const struct moments *of)
{
    struct moments mean = {0, 0};
    for (int i = 0; i < s->n_choices; i++) {
        const struct grammar_choice *c = &s->choices[i];
        const double p = (double)c->weight / s->total;
        mean.entropy -= p * c->log_p;
        for (int k = 0; k < c->n_parts; k++) {
            const struct grammar_part *part = &c->parts[k];
            mean.length += p * (part->symbol < 0 ? part->length : of[part->symbol].length);
            mean.entropy += part->symbol < 0 ? 0 : p * of[part->symbol].entropy;
        }
    }
    return mean;
}

static enum status measure(struct grammar *g, struct error *err)
{
    struct moments *of = arena_alloc(&g->arena, sizeof *of * (size_t)g->n_symbols);
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        double change = 0;
        for (int i = g->n_symbols - 1; i >= 0; i--) {
            const struct moments now = symbol_moments(&g->symbols[i], of);
            change = fmax(change, fabs(now.length - of[i].length) / (1 + now.length));
            change = fmax(change, fabs(now.entropy - of[i].entropy) / (1 + now.entropy));
            of[i] = now;
        }
        if (change < 1e-15) {
            g->length = of[0].length;
            g->entropy = of[0].entropy;
            return OK;
        }
    }
    return error_set(err, BAD_INPUT, "grammar: '%s' has no finite expected length; recursion needs smaller weights",
                     g->symbols[0].name);
}

enum status grammar_init(struct grammar *g, const struct production *rows, int n_rows, struct error *err)
{
    enum status st = OK;
    *g = (struct grammar){.n_symbols = 0};
    g->symbols = arena_alloc(&g->arena, sizeof *g->symbols * (size_t)n_rows);
    for (int i = 0; i < n_rows; i += rows_of_symbol(rows + i, n_rows - i))
        g->symbols[g->n_symbols++].name = rows[i].symbol;
    for (int i = 0, s = 0; i < n_rows && st == OK; s++) {
        const int n = rows_of_symbol(rows + i, n_rows - i);
        st = symbol_compile(g, &g->symbols[s], rows + i, n, err);
        i += n;
    }
    if (st == OK)
        st = measure(g, err);
    if (st != OK)
        grammar_release(g);
    return st;
}

void grammar_release(struct grammar *g)
{
    arena_release(&g->arena);
    *g = (struct grammar){.n_symbols = 0};
}

/* ---- printing ---- */

struct printer {
    const struct grammar *g;
    uint64_t key, index;
    uint64_t counter;           /* of the next random block: stream << 32 | how many of this text */
    struct rng_block block;
    int left;                   /* unused numbers in the block */
    char *out;
    size_t room, length;
    double log_p;
};

static uint32_t draw(struct printer *p)
{
    if (p->left == 0) {
        p->block = rng_block(p->key, p->index, p->counter++);
        p->left = 4;
    }
    return p->block.x[--p->left];
}

static void emit(struct printer *p, const char *text, size_t length)
{
    if (p->length < p->room)
        memcpy(p->out + p->length, text, length < p->room - p->length ? length : p->room - p->length);
    p->length += length;
}

static void expand(struct printer *p, const struct grammar_symbol *s)
{
    /* Multiply and shift maps 32 random bits onto [0, total) with a relative error below total / 2^32 (1.4e-5). */
    const struct grammar_choice *c = &s->choices[s->pick[(uint64_t)draw(p) * s->total >> 32]];
    p->log_p += c->log_p;
    for (const struct grammar_part *part = c->parts, *end = part + c->n_parts; part < end; part++) {
        if (part->symbol < 0)
            emit(p, part->text, part->length);
        else
            expand(p, &p->g->symbols[part->symbol]);
    }
}

size_t grammar_print(const struct grammar *g, uint64_t key, uint32_t stream, uint64_t index, char *out, size_t room,
                     double *log_p)
{
    struct printer p = {.g = g, .key = key, .index = index, .out = out, .room = room};
    p.counter = (uint64_t)stream << 32;
    expand(&p, &g->symbols[0]);
    if (log_p)
        *log_p += p.log_p;
    return p.length;
}
