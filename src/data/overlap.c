/* Files that are both trained on and validated on: a pattern or a folder takes more than who wrote it thought of. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/arena.h"
#include "data/data_int.h"
#include "data/files.h"

struct file_id { dev_t device; ino_t file; };

static int compare_ids(const void *a, const void *b)
{
    const struct file_id *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

static struct file_id id_of(const char *path)
{
    struct stat s;
    return stat(path, &s) ? (struct file_id){0} : (struct file_id){s.st_dev, s.st_ino};
}

/* One that is gone by now is in no list. */
static int count_shared(const struct file_list *train, const struct file_list *val, const char **first)
{
    struct file_id *ids = xcalloc((size_t)val->n, sizeof *ids);
    int shared = 0;
    for (int i = 0; i < val->n; i++)
        ids[i] = id_of(val->paths[i]);
    qsort(ids, (size_t)val->n, sizeof *ids, compare_ids);
    for (int i = 0; i < train->n; i++) {
        const struct file_id id = id_of(train->paths[i]);
        if (id.file && bsearch(&id, ids, (size_t)val->n, sizeof *ids, compare_ids) && !shared++)
            *first = train->paths[i];
    }
    free(ids);
    return shared;
}

void overlap_warn(struct dataset *d, const struct config *c)
{
    const struct config_data *t = &c->data;
    struct file_list train, val;
    struct error ignored;
    const char *first = "";
    if ((t->source != SOURCE_TEXT && t->source != SOURCE_BIN) || !*t->val_path || !strcmp(t->path, t->val_path))       /* one for both is meant */
        return;
    if (file_list_init(&train, t->path, "data.path", &ignored) != OK)
        return;
    if (file_list_init(&val, t->val_path, "data.val_path", &ignored) == OK) {
        const int shared = count_shared(&train, &val, &first);
        if (shared)
            dataset_warn(d, "data.path '%s' takes %d file%s of data.val_path '%s', too, as '%s': the validation loss is of text that was trained on", t->path, shared,
                         shared == 1 ? "" : "s", t->val_path, first);
        file_list_release(&val);
    }
    file_list_release(&train);
}
