/* Configurations from text, and that they are the same when they are printed and parsed again. */
#ifndef HONE_TESTS_CONFIG_PARSED_H
#define HONE_TESTS_CONFIG_PARSED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config_int.h"

static inline enum status parse(struct config *c, const char *text, struct error *err)
{
    return config_parse(c, "t.yaml", text, strlen(text), NULL, 0, err);
}

static inline struct config parse_ok(const char *text)
{
    struct config c;
    struct error err = {0};
    if (parse(&c, text, &err) != OK)
        fail_msg("%s: %s", text, err.text);
    return c;
}

#define GPT "model: {arch: gpt}\n"

static inline void check_round_trip(const struct config *c)
{
    char *text;
    size_t length;
    struct config again;
    struct error err = {0};
    FILE *f = open_memstream(&text, &length);
    config_print(c, f);
    fclose(f);
    if (config_parse(&again, c->file, text, length, NULL, 0, &err) != OK)
        fail_msg("%s\n%s", err.text, text);
    assert_memory_equal(&again, c, sizeof again);
    free(text);
}

#endif
