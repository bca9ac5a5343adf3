/* Configs of libhone. */
#include <stdlib.h>

#include "core/arena.h"
#include "lib/hone_int.h"

hone_status hone_config_open(hone_config **out, const char *path, const char *const *settings, int n_settings)
{
    struct error err;
    if (out)
        *out = NULL;
    if (!out || !path || (n_settings > 0 && !settings))
        return hone_missing(!out ? "where the config goes" : !path ? "the path of the config" : "the list of settings");
    if (hone_missing_in("setting", settings, n_settings) != HONE_OK)
        return HONE_BAD_INPUT;
    hone_config *c = xcalloc(1, sizeof *c);
    const locale_t theirs = hone_enter();
    const enum status st = config_load(&c->c, path, settings, n_settings > 0 ? n_settings : 0, &err);
    if (st == OK)
        *out = c;
    else
        free(c);
    hone_leave(theirs);
    return hone_end(st, &err);
}

static enum status write_config(const void *what, FILE *to, struct error *err)
{
    const hone_config *c = what;
    (void)err;                  /* the stream keeps what fails */
    config_print(&c->c, to);
    return OK;
}

hone_status hone_config_text(const hone_config *config, char **yaml)
{
    return config ? hone_text(yaml, write_config, config) : hone_missing("the config");
}

void hone_config_free(hone_config *config) { free(config); }
