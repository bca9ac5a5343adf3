/* What a run over data.domains knew of each of them at the end of every stage: the matrix of losses, what follows from it, and
 * OUT/forgetting.json. The rows travel in the manifests of checkpoints, so that a run that is resumed has those from before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/json_memory.h"
#include "train/train_int.h"

void forgetting_init(struct forgetting *f, const struct model_run *r)
{
    *f = (struct forgetting){.n = r->stage_steps ? dataset_domains(r->dataset) : 0, .steps_each = r->stage_steps};
    for (int i = 0; i < f->n; i++)
        f->entropy[i] = dataset_entropy(dataset_domain(r->dataset, i));
}

void forgetting_add(struct forgetting *f, const double *losses)
{
    memcpy(f->loss[f->rows++], losses, sizeof *losses * (size_t)f->n);
}

double forgetting_nats(const struct forgetting *f, int domain)
{
    const int last = f->rows - 1;           /* the stage that ended last; its domain was `last - 1` */
    return domain < last - 1 ? f->loss[last][domain] - f->loss[domain + 1][domain] : NAN;
}

double forgetting_percent(const struct forgetting *f, int domain) { return 100 * expm1(forgetting_nats(f, domain)); }

double forgetting_transfer(const struct forgetting *f)
{
    const int earlier = f->rows - 2;        /* domains that others came after */
    double sum = 0;
    for (int i = 0; i < earlier; i++)
        sum -= forgetting_nats(f, i);
    return earlier > 0 ? sum / earlier : NAN;
}

/* ---- JSON ---- */

/* Takes the item over. False: no memory; then the list is released, too. */
static bool append(json_t **list, json_t *item)
{
    if (*list && item && json_array_append_new(*list, item) == 0)
        return true;
    json_decref(*list);
    *list = NULL;
    return false;
}

static json_t *numbers(const double *x, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n && append(&list, json_number(x[i])); i++)
        continue;
    return list;
}

json_t *forgetting_rows(const struct forgetting *f)
{
    json_t *rows = json_array();
    for (int i = 0; i < f->rows && append(&rows, numbers(f->loss[i], f->n)); i++)
        continue;
    return rows;
}

static json_t *names(const struct config *c)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < c->data.domains.n && append(&list, json_text(config_name(&c->data.domains, i))); i++)
        continue;
    return list;
}

/* Of every domain that was learned; null for the last, which nothing came after. */
static json_t *of_each(const struct forgetting *f, double (*what)(const struct forgetting *, int))
{
    json_t *list = json_array();
    for (int i = 0; i + 1 < f->rows && append(&list, json_number(what(f, i))); i++)
        continue;
    return list;
}

static json_t *document(const struct forgetting *f, const struct config *c)
{
    return json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "domains", names(c), "entropy", numbers(f->entropy, f->n),
                     "steps_per_domain", (json_int_t)f->steps_each, "loss", forgetting_rows(f), "forgetting_percent",
                     of_each(f, forgetting_percent), "forgetting_nats", of_each(f, forgetting_nats), "backward_transfer",
                     json_number(forgetting_transfer(f)));
}

enum status forgetting_write(const struct forgetting *f, const struct config *c, const char *out, struct error *err)
{
    char path[CONFIG_PATH_MAX + 32], *lines = NULL;
    json_t *j = document(f, c);
    char *text = j ? json_memory_dump(j, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(j);
    snprintf(path, sizeof path, "%s/forgetting.json", out);
    const bool made = text && asprintf(&lines, "%s\n", text) >= 0;
    free(text);
    if (!made)
        return error_set(err, CANNOT, "out of memory for '%s'", path);
    const enum status st = fs_replace(path, lines, strlen(lines), err);
    free(lines);
    return st;
}

/* A row for every stage that has ended; that of a stage that ends with this step may not have been made yet. */
static bool is_right_number(const struct forgetting *f, size_t rows, int64_t step)
{
    const size_t ended = (size_t)(step / f->steps_each) + 1;
    return rows == ended || (step % f->steps_each == 0 && rows == ended - 1);
}

enum status forgetting_restore(struct forgetting *f, const json_t *rows, int64_t step, const char *where, struct error *err)
{
    const size_t n = json_array_size(rows);
    bool good = n <= (size_t)f->n + 1 && is_right_number(f, n, step);
    for (size_t i = 0; i < n && good; i++) {
        const json_t *row = json_array_get(rows, i);
        good = json_array_size(row) == (size_t)f->n;
        for (int k = 0; k < f->n && good; k++) {
            const json_t *loss = json_array_get(row, (size_t)k);
            f->loss[i][k] = json_is_number(loss) ? json_number_value(loss) : NAN;
        }
    }
    f->rows = good ? (int)n : 0;
    return good ? OK : error_set(err, BAD_INPUT, "'%s/manifest.json': the losses of the domains are missing or damaged", where);
}
