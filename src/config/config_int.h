/* The inside of the config room: the schema table, the place a value came from, and what the files share. */
#ifndef HONE_CONFIG_CONFIG_INT_H
#define HONE_CONFIG_CONFIG_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "config/config.h"
#include "core/suggest.h"

enum key_type { KEY_INT, KEY_REAL, KEY_WORD, KEY_PATH, KEY_INTERVAL, KEY_PASSES, KEY_INTS, KEY_NAMES };

struct config_choice {
    const char *word;       /* NULL ends a list */
    int value;
};

/* One key of the file. */
struct config_key {
    const char *name;       /* "model.heads" */
    enum key_type type;
    size_t offset;          /* of the field in struct config */
    const char *initial;    /* the default as it would stand in the file; NULL: the key is required */
    double min, max;        /* of KEY_INT, KEY_REAL and KEY_INTERVAL; of each number in KEY_INTS */
    bool below_max;         /* max itself is not allowed */
    const struct config_choice *choices;    /* of KEY_WORD; of KEY_NAMES beside names of files */
    const char *help;       /* one line */
};

struct config_section {
    const char *name;       /* "" holds the keys that stand outside of any section */
    const char *help;
};

enum { CONFIG_KEYS_MAX = 128, CONFIG_SECTIONS_MAX = 16, CONFIG_TEXT_MAX = 1 << 20, CONFIG_SHOWN_MAX = 64 };

struct config_key config_key(int i);                            /* 0 .. config_key_count(); passes have theirs from pass_table */
int config_key_count(void);
extern const struct config_section config_sections[];
extern const int config_section_count;

int config_key_find(const char *name);                          /* index of a key, -1: none */
int config_section_find(const char *name, size_t length);       /* index in config_sections, -1: none */
int config_key_section(int key);                                /* the section that the key stands in */
const char *config_key_leaf(int key);                           /* "heads" of "model.heads" */

/* Where a value came from: a line of the file, a --set (the later one has the higher rank), or else a default. */
struct config_place {
    int line;
    int rank;
    const char *set;
};

/* A configuration while it is read. */
struct config_reader {
    struct config *c;
    const char *file;
    bool saved;                         /* by a run of any version: what is not known may be left out; see config_parse_saved */
    struct config_place places[CONFIG_KEYS_MAX];
    int section_lines[CONFIG_SECTIONS_MAX];
    struct error *err;
};

/* Fills the error with the place before the message; returns BAD_INPUT. */
enum status config_refuse(struct config_reader *r, struct config_place at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Text of the user as it may be shown in a message: cut to a few words, control characters as '?'. */
const char *config_shown(char shown[CONFIG_SHOWN_MAX], const char *text);

/* Reads a scalar into the key's field and remembers the place. `quoted`: it stood in quotes, so it is no number. */
enum status config_value_read(struct config_reader *r, int key, struct config_place at, const char *text, bool quoted);
enum status config_value_wrong_kind(struct config_reader *r, int key, struct config_place at, const char *kind);
bool config_text_is_null(const char *text);                     /* "", "~", "null" without quotes */
void config_value_print(const struct config *c, int key, FILE *to);
void config_value_wanted(int key, char *out, size_t size);      /* "a whole number", "one of a, b or c" */
void config_real_format(double value, char out[40]);            /* the shortest text that reads back equal */

enum status config_int_read(struct config_reader *r, int key, struct config_place at, const char *text, int64_t *out);
enum status config_choice_read(struct config_reader *r, int key, struct config_place at, const char *text, int *out);
/* Refuses what is no text that a path can be: too long, control characters, no UTF-8. */
enum status config_path_check(struct config_reader *r, int key, struct config_place at, const char *text);
void config_path_print(const char *text, FILE *to);             /* in quotes */

/* Lists (list.c), those of passes as well: read item by item, `first` starts one; or from a text as --set has it, "[a, b]" or "a,b". */
bool config_key_is_list(int key);
const char *config_list_items(int key);                         /* "whole numbers" */
enum status config_list_add(struct config_reader *r, int key, struct config_place at, const char *item, bool quoted, bool first);
enum status config_list_read(struct config_reader *r, int key, struct config_place at, const char *text, bool quoted);
enum status config_list_clear(struct config_reader *r, int key, struct config_place at);
void config_list_print(const struct config *c, int key, FILE *to);

/* Lists of words and files (names.c). */
enum status config_names_add(struct config_reader *r, int key, struct config_place at, const char *name, bool first);
void config_names_print(const struct config_names *names, FILE *to);

/* The passes of optimize.passes (passes.c). A list is read name by name: `first` starts it. */
bool config_passes_read_word(struct config_reader *r, int key, const char *text);   /* all or none; false: neither */
enum status config_passes_add(struct config_reader *r, int key, struct config_place at, const char *name, bool first);
void config_passes_print(const struct pass_list *list, FILE *to);

enum status config_read_yaml(struct config_reader *r, const char *text, size_t length);
enum status config_read_set(struct config_reader *r, const char *set, int rank);
enum status config_check(struct config_reader *r);              /* derived defaults, then what keys mean together */
/* data.domains beside other keys of the data (check_domains.c): a --set takes the place of what the file says, as elsewhere. */
void config_settle_domains(struct config_reader *r);
enum status config_check_domains(struct config_reader *r);

/* Lengths of samples, and the model of regions with its data (check_regions.c). */
enum status config_check_regions(struct config_reader *r);

/* The place to blame when these keys disagree: the last --set among them, else the first that stands in the file. */
struct config_place config_blame(const struct config_reader *r, const char *const *names, int n);
#define BLAME(r, ...)                                                                                                  \
    config_blame(r, (const char *const[]){__VA_ARGS__}, sizeof(const char *const[]){__VA_ARGS__} / sizeof(char *))

/* The file of `asked`, a path or the name of a shipped config. */
enum status config_find_file(const char *asked, char path[CONFIG_PATH_MAX], struct error *err);

/* "a, b or c", with the given separators. */
void config_join(char *out, size_t size, const char *const *items, int n, const char *comma, const char *last);
enum status config_refuse_unknown(struct config_reader *r, struct config_place at, const char *name);

#endif
