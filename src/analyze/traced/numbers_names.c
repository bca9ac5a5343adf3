/* Names of kernels, shortened to what tells one from the others. A name has a base (no return type, parameters and namespaces) and words: of a
 * template the names and numbers in its arguments, of a plain name what lies between its underscores. Of kernels with one base, or of plain names
 * that begin alike, the words that all have are left out. What would then be the same of two kernels is told in full. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/numbers.h"

enum { MOST_WORDS = 128, MOST_NAMES = 1000, PLAIN_FITS = 52, MOST_SHOWN = 120, FAMILY_WORDS = 3, TELLING = 5 };

struct piece { const char *at; int n; };

struct parsed {                              /* a name in its pieces */
    const char *name;
    struct piece base, words[MOST_WORDS];
    int n, kernel;
    bool template;
};

static bool is_word(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

static int compare(struct piece a, struct piece b)
{
    const int n = a.n < b.n ? a.n : b.n, c = n ? memcmp(a.at, b.at, (size_t)n) : 0;
    return c ? c : a.n - b.n;
}

static bool has_word(const struct parsed *p, struct piece word)
{
    for (int i = 0; i < p->n; i++)
        if (!compare(p->words[i], word))
            return true;
    return false;
}

/* ---- reading ---- */

static void add_word(struct parsed *p, const char *from, const char *to)
{
    const struct piece word = {from, (int)(to - from)};
    if (p->n < MOST_WORDS && word.n > 0 && (!p->template || !has_word(p, word)))
        p->words[p->n++] = word;
}

/* Behind the last "::" of what is a name by itself, without template. */
static struct piece without_namespaces(struct piece p)
{
    for (int i = p.n - 1; i > 0; i--)
        if (p.at[i] == ':' && p.at[i - 1] == ':')
            return (struct piece){p.at + i + 1, p.n - i - 1};
    return p;
}

static const char ANONYMOUS[] = "(anonymous namespace)";
static bool is_anonymous(const char *at) { return !strncmp(at, ANONYMOUS, sizeof ANONYMOUS - 1); }

/* Behind the parentheses that open here, or the end. */
static const char *skip_parameters(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        if (!depth)
            return at + 1;
    }
    return at;
}

static bool says_nothing(struct piece w)
{
    static const char *const words[] = {"const", "operator", "lambda", "unsigned", "int", "char", "long", "std", "array", NULL};
    for (const char *const *s = words; *s; s++)
        if ((int)strlen(*s) == w.n && !memcmp(*s, w.at, (size_t)w.n))
            return true;
    return false;
}

/* Names and numbers of a template's arguments, without parameters and namespaces. */
static void read_arguments(struct parsed *p, const char *at)
{
    while (*at) {
        if (*at == '(') {
            if (!is_anonymous(at) && p->n && at[-1] == '>')
                return;                     /* the kernel's own parameters */
            at = skip_parameters(at);
            continue;
        }
        const char *from = at;
        while (is_word(*at) || (at == from && *at == '#'))
            at++;
        const struct piece word = {from, (int)(at - from)};
        if (word.n && strncmp(at, "::", 2) && !says_nothing(word))
            add_word(p, from, at);
        at += at == from;
    }
}

static void read_plain(struct parsed *p)
{
    const char *end = p->base.at + p->base.n;
    for (const char *from = p->base.at, *at = from;; at++)
        if (at == end || *at == '_') {
            add_word(p, from, at);
            from = at + 1;
            if (at == end)
                return;
        }
}

static struct parsed read_name(const char *name, int kernel)
{
    struct parsed p = {.name = name, .kernel = kernel};
    if (!strncmp(name, "void ", 5))
        name += 5;
    const char *open = name;
    while (*open && *open != '<' && (*open != '(' || is_anonymous(open)))
        open += is_anonymous(open) ? (int)sizeof ANONYMOUS - 1 : 1;
    p.base = without_namespaces((struct piece){name, (int)(open - name)});
    p.template = *open == '<';
    if (p.template)
        read_arguments(&p, open + 1);
    else
        read_plain(&p);
    return p;
}

/* ---- families: kernels whose names are shortened together ---- */

/* Of a template its base; of a plain name its first words. */
static struct piece family_of(const struct parsed *p)
{
    if (p->template || p->n <= FAMILY_WORDS)
        return p->base;
    const struct piece last = p->words[FAMILY_WORDS - 1];
    return (struct piece){p->base.at, (int)(last.at + last.n - p->base.at)};
}

static int same_family(const struct parsed *a, const struct parsed *b)
{
    return a->template != b->template ? a->template - b->template : compare(family_of(a), family_of(b));
}

static int by_family(const void *a, const void *b)
{
    const struct parsed *x = a, *y = b;
    const int family = same_family(x, y), name = family ? family : strcmp(x->name, y->name);
    return name ? name : x->kernel - y->kernel;
}

struct family {
    const struct parsed *list;               /* (n) */
    int n;
    struct parsed shared;                    /* its words are those that all have */
};

static bool all_have(const struct parsed *list, int n, struct piece word)
{
    for (int k = 0; k < n; k++)
        if (!has_word(&list[k], word))
            return false;
    return true;
}

static struct family family_make(const struct parsed *list, int n)
{
    struct family f = {.list = list, .n = n};
    for (int i = 0; i < list[0].n; i++)
        if (all_have(list, n, list[0].words[i]))
            f.shared.words[f.shared.n++] = list[0].words[i];
    return f;
}

/* ---- showing ---- */

/* Long names say what a kernel does; types and numbers stand in one only where it would else be that of another. */
static bool is_telling(struct piece w) { return w.n >= TELLING && !(w.at[0] >= '0' && w.at[0] <= '9') && strncmp(w.at, "float", 5) && strncmp(w.at, "BFloat", 6); }

static const char *show_template(struct arena *a, const struct parsed *p, const struct family *f, bool all)
{
    int length = p->base.n < MOST_SHOWN ? p->base.n : MOST_SHOWN, shown = 0;
    if (f->n > 1 && length > 7 && !memcmp(p->base.at + length - 7, "_kernel", 7))
        length -= 7;
    const char *text = arena_printf(a, "%.*s", length, p->base.at);
    for (int i = 0; i < p->n && strlen(text) < MOST_SHOWN; i++)
        if ((all || is_telling(p->words[i])) && !has_word(&f->shared, p->words[i]))
            text = arena_printf(a, "%s%s%.*s", text, shown++ ? " " : "<", p->words[i].n, p->words[i].at);
    return shown ? arena_printf(a, "%s>", text) : text;
}

static const char *show_plain(struct arena *a, const struct parsed *p, const struct family *f)
{
    if (p->base.n <= PLAIN_FITS || f->n < 2)
        return arena_printf(a, "%.*s", p->base.n < MOST_SHOWN ? p->base.n : MOST_SHOWN, p->base.at);
    const struct piece head = family_of(p);
    const char *text = arena_printf(a, "%.*s", head.n, head.at);
    bool gap = false;
    for (int i = FAMILY_WORDS; i < p->n && strlen(text) < MOST_SHOWN; i++) {
        const bool shared = has_word(&f->shared, p->words[i]);
        if (!shared)
            text = arena_printf(a, "%s%s%.*s", text, gap ? "…" : "_", p->words[i].n, p->words[i].at);
        gap = shared;
    }
    return text;
}

enum detail { SHORT, WORDS, FULL };

static const char *show(struct arena *a, const struct parsed *p, const struct family *f, enum detail detail)
{
    if (detail == FULL)
        return arena_printf(a, "%.*s", MOST_SHOWN, p->name);
    return p->template ? show_template(a, p, f, detail == WORDS) : show_plain(a, p, f);
}

static bool is_doubled(const struct diagnosis *d, const struct family *f, int k)
{
    const struct trace_kernel *a = &d->kernels[f->list[k].kernel];
    for (int i = 0; i < f->n; i++) {
        const struct trace_kernel *b = &d->kernels[f->list[i].kernel];
        if (strcmp(a->name, b->name) && !strcmp(a->shown, b->shown))
            return true;
    }
    return false;
}

/* Kernels that would have the same name are told in more detail. */
static void show_family(struct diagnosis *d, const struct family *f)
{
    const char **better = xcalloc((size_t)f->n, sizeof *better);
    for (int k = 0; k < f->n; k++)
        d->kernels[f->list[k].kernel].shown = show(&d->arena, &f->list[k], f, SHORT);
    for (enum detail detail = WORDS; detail <= FULL; detail++) {
        for (int k = 0; k < f->n; k++)
            better[k] = is_doubled(d, f, k) ? show(&d->arena, &f->list[k], f, detail) : NULL;
        for (int k = 0; k < f->n; k++)
            if (better[k])
                d->kernels[f->list[k].kernel].shown = better[k];
    }
    free(better);
}

void numbers_names(struct diagnosis *d)
{
    const int n = d->n_kernels < MOST_NAMES ? d->n_kernels : MOST_NAMES;       /* the others take next to no time, and stay as they are */
    struct parsed *all = xcalloc((size_t)n + 1, sizeof *all);
    for (int i = n; i < d->n_kernels; i++)
        d->kernels[i].shown = d->kernels[i].name;
    for (int i = 0; i < n; i++)
        all[i] = read_name(d->kernels[i].name, i);
    qsort(all, (size_t)n, sizeof *all, by_family);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !same_family(&all[i], &all[end]); end++)
            ;
        const struct family f = family_make(all + i, end - i);
        show_family(d, &f);
    }
    free(all);
}
