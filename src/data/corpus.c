/* Texts from the grammars of the domains; see corpus.h. */
#include "data/corpus.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/setup.h"
#include "data/corpus_int.h"

enum { DOMAINS = DOMAIN_FORMULAS + 1 };

static struct grammar compiled[DOMAINS];
static pthread_once_t compile_once = PTHREAD_ONCE_INIT;

/* The tables are part of the program, so a table that does not compile is our own mistake. */
static void compile_one(enum data_domain domain, const struct production *rows, int n_rows)
{
    if (grammar_init(&compiled[domain], rows, n_rows, NULL) != OK)
        abort();
}

static void compile_all(void)
{
    compile_one(DOMAIN_PROSE, grammar_prose, grammar_prose_rows);
    compile_one(DOMAIN_CODE, grammar_code, grammar_code_rows);
    compile_one(DOMAIN_FORMULAS, grammar_formulas, grammar_formulas_rows);
}

const struct grammar *corpus_grammar(enum data_domain domain)
{
    pthread_once(&compile_once, compile_all);
    return &compiled[domain];
}

size_t corpus_unit(enum data_domain domain, uint64_t seed, uint64_t index, char *out, size_t room, double *log_p)
{
    return grammar_print(corpus_grammar(domain), seed, (uint32_t)domain, index, out, room, log_p);
}

char *corpus_generate(enum data_domain domain, uint64_t seed, size_t chars)
{
    char *text = chars < SIZE_MAX ? malloc(chars + 1) : NULL;
    if (!text)
        return NULL;
    size_t length = 0;
    for (uint64_t unit = 0; length < chars && (unit % 4096 || setup_goes_on("the corpus")); unit++)
        length += corpus_unit(domain, seed, unit, text + length, chars - length, NULL);
    text[chars] = '\0';
    return text;
}

double corpus_entropy(enum data_domain domain)
{
    const struct grammar *g = corpus_grammar(domain);
    return g->entropy / g->length;
}

static void mark(const struct grammar_choice *choice, bool used[128])
{
    for (int i = 0; i < choice->n_parts; i++)
        for (uint32_t k = 0; choice->parts[i].symbol < 0 && k < choice->parts[i].length; k++)
            used[choice->parts[i].text[k] & 127] = true;
}

void corpus_alphabet(enum data_domain domain, bool used[128])
{
    const struct grammar *g = corpus_grammar(domain);
    for (int i = 0; i < 128; i++)
        used[i] = false;
    for (int s = 0; s < g->n_symbols; s++)
        for (int c = 0; c < g->symbols[s].n_choices; c++)
            mark(&g->symbols[s].choices[c], used);
}
