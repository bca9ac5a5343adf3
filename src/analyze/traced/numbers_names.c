/* Names of kernels, shortened to what tells one from the others: no return type, parameters and namespaces; of the template's arguments
 * those in which kernels of one name differ; of long names without a template what comes behind the part that others share. */
#include <stdlib.h>
#include <string.h>

#include "analyze/traced/numbers.h"

enum { MOST_ARGS = 24, MOST_NAMES = 1000, LONG = 40, HEAD = 12, LEAST_SHARED = 16, MOST_SHOWN = 120 };

struct piece { const char *at; int n; };

struct parsed {                              /* a name in its pieces */
    struct piece base, args[MOST_ARGS];
    int n_args, kernel;
};

static bool is_word(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

/* Behind the last "::" of what is a name by itself, without template. */
static struct piece without_namespaces(struct piece p)
{
    for (int i = p.n - 1; i > 0; i--)
        if (p.at[i] == ':' && p.at[i - 1] == ':')
            return (struct piece){p.at + i + 1, p.n - i - 1};
    return p;
}

static void add_arg(struct parsed *s, const char *from, const char *to)
{
    while (from < to && *from == ' ')
        from++;
    while (to > from && to[-1] == ' ')
        to--;
    if (s->n_args < MOST_ARGS && to > from)
        s->args[s->n_args++] = (struct piece){from, (int)(to - from)};
}

static struct parsed read_shape(const char *name, int kernel)
{
    struct parsed s = {.kernel = kernel};
    if (!strncmp(name, "void ", 5))
        name += 5;
    const char *anonymous = "(anonymous namespace)::", *open = name;
    for (; *open && *open != '<' && (*open != '(' || !strncmp(open, anonymous, strlen(anonymous))); open++)
        ;
    s.base = without_namespaces((struct piece){name, (int)(open - name)});
    if (*open != '<')
        return s;
    int depth = 0;
    const char *from = open + 1;
    for (const char *p = from; *p; p++) {
        if (*p == '>' && depth == 0) {
            add_arg(&s, from, p);
            break;
        }
        if (*p == ',' && depth == 0) {
            add_arg(&s, from, p);
            from = p + 1;
        }
        depth += *p == '<' || *p == '(' || *p == '[' || *p == '{';
        depth -= (*p == '>' && p[-1] != '-') || *p == ')' || *p == ']' || *p == '}';
        depth = depth < 0 ? 0 : depth;
    }
    return s;
}

static int compare(struct piece a, struct piece b)
{
    const int n = a.n < b.n ? a.n : b.n, c = memcmp(a.at, b.at, (size_t)n);
    return c ? c : a.n - b.n;
}

static int by_base(const void *a, const void *b)
{
    const struct parsed *x = a, *y = b;
    const int c = compare(x->base, y->base);
    return c ? c : x->kernel - y->kernel;
}

/* The last name in an argument says what it is: "at::native::CUDAFunctor_add<float>" -> "CUDAFunctor_add<float>". */
static struct piece short_arg(struct piece arg)
{
    int end = 0;
    while (end < arg.n && (is_word(arg.at[end]) || arg.at[end] == ':' || !strncmp(arg.at + end, "(anonymous namespace)", 21)))
        end += arg.at[end] == '(' ? 21 : 1;
    end = end > arg.n ? arg.n : end;
    const struct piece head = without_namespaces((struct piece){arg.at, end});
    return (struct piece){head.at, (int)(arg.at + arg.n - head.at)};
}

/* Arguments in which members of a group differ, as bits. */
static uint32_t differing(const struct parsed *first, int n)
{
    uint32_t bits = 0;
    for (int k = 1; k < n; k++)
        for (int i = 0; i < first[0].n_args || i < first[k].n_args; i++)
            if (i >= first[0].n_args || i >= first[k].n_args || compare(first[0].args[i], first[k].args[i]))
                bits |= 1u << i;
    return bits;
}

static int shared_with(struct piece a, struct piece b)
{
    int n = 0;
    while (n < a.n && n < b.n && a.at[n] == b.at[n])
        n++;
    while (n > 0 && n < a.n && is_word(a.at[n - 1]) && a.at[n - 1] != '_')
        n--;                                /* whole words */
    return n;
}

/* What all of a group have at the start of an argument, in whole words. */
static int shared_start(const struct parsed *first, int n, int i)
{
    const struct piece p = i < first->n_args ? short_arg(first->args[i]) : (struct piece){"", 0};
    int shared = p.n;
    for (int k = 1; k < n; k++)
        if (i < first[k].n_args) {
            const int more = shared_with(short_arg(first[k].args[i]), p);
            shared = more < shared ? more : shared;
        }
    return shared >= LEAST_SHARED ? shared : 0;
}

static const char *with_args(struct arena *a, const struct parsed *s, uint32_t bits, const struct parsed *group, int n)
{
    const char *text = arena_printf(a, "%.*s", s->base.n < MOST_SHOWN ? s->base.n : MOST_SHOWN, s->base.at);
    int shown = 0;
    for (int i = 0; i < s->n_args && shown < 4; i++)
        if (bits >> i & 1) {
            struct piece p = short_arg(s->args[i]);
            const int start = shared_start(group, n, i);
            p = start < p.n ? (struct piece){p.at + start, p.n - start} : p;
            text = arena_printf(a, "%s%s%s%.*s%s", text, shown++ ? ", " : "<", start ? "…" : "", p.n < LONG ? p.n : LONG, p.at, p.n > LONG ? "…" : "");
        }
    return shown ? arena_printf(a, "%s>", text) : text;
}

/* What a long name shares with its neighbours by the alphabet is told once, by its head. */
static const char *without_shared(struct arena *a, const char *text, struct piece base, int shared)
{
    if (base.n <= LONG || shared < LEAST_SHARED || shared >= base.n)
        return text;
    return arena_printf(a, "%.*s…%.*s", HEAD, base.at, base.n - shared < MOST_SHOWN ? base.n - shared : MOST_SHOWN, base.at + shared);
}

void numbers_names(struct diagnosis *d)
{
    const int n = d->n_kernels < MOST_NAMES ? d->n_kernels : MOST_NAMES;       /* the others take next to no time, and stay as they are */
    struct parsed *all = xcalloc((size_t)n + 1, sizeof *all);
    for (int i = n; i < d->n_kernels; i++)
        d->kernels[i].shown = d->kernels[i].name;
    for (int i = 0; i < n; i++)
        all[i] = read_shape(d->kernels[i].name, i);
    qsort(all, (size_t)n, sizeof *all, by_base);
    for (int i = 0, end, before = -1; i < n; before = i, i = end) {
        for (end = i + 1; end < n && !compare(all[i].base, all[end].base); end++)
            ;
        const uint32_t bits = differing(all + i, end - i);
        int shared = before >= 0 ? shared_with(all[i].base, all[before].base) : 0;
        const int next = end < n ? shared_with(all[i].base, all[end].base) : 0;
        shared = shared > next ? shared : next;
        for (int k = i; k < end; k++) {
            const char *text = with_args(&d->arena, &all[k], bits, all + i, end - i);
            d->kernels[all[k].kernel].shown = all[k].n_args ? text : without_shared(&d->arena, text, all[k].base, shared);
        }
    }
    free(all);
}
