/* One scalar of the file or of --set: its text into the field of its key, and the field into text again. The grammar of
 * numbers is narrower than strtod's: no hexadecimal, no leading zeros, no nan, no infinity. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_int.h"

static void *field_of(struct config *c, int key) { return (char *)c + config_key(key).offset; }
static const void *field_in(const struct config *c, int key) { return (const char *)c + config_key(key).offset; }

bool config_text_is_null(const char *text) { return !*text || !strcmp(text, "~") || !strcmp(text, "null"); }

void config_real_format(double value, char out[40])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, 40, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    if (strchr(out, '+') && value < 1e15) /* 10000, not 1e+04 */
        snprintf(out, 40, "%.0f", value);
    char *e = strchr(out, 'e');
    if (e && !strchr(out, '.')) { /* other YAML readers want a point in a number with an exponent */
        memmove(e + 2, e, strlen(e) + 1);
        memcpy(e, ".0", 2);
    }
}

static int list_choices(const struct config_choice *choices, const char **words)
{
    int n = 0;
    for (; choices[n].word; n++)
        words[n] = choices[n].word;
    return n;
}

void config_value_wanted(int key, char *out, size_t size)
{
    const char *words[CONFIG_KEYS_MAX];
    char list[256];
    switch (config_key(key).type) {
    case KEY_INT: snprintf(out, size, "a whole number"); break;
    case KEY_REAL: snprintf(out, size, "a number"); break;
    case KEY_PATH: snprintf(out, size, "a file name"); break;
    case KEY_INTERVAL: snprintf(out, size, "a number of steps, or of epochs as in '2 epochs',"); break;
    case KEY_PASSES: snprintf(out, size, "all, none or a list of passes"); break;
    case KEY_INTS: snprintf(out, size, "a list of whole numbers"); break;
    case KEY_WORD:
        config_join(list, sizeof list, words, list_choices(config_key(key).choices, words), ", ", " or ");
        snprintf(out, size, "%s", list);
        break;
    case KEY_NAMES:
        config_join(list, sizeof list, words, list_choices(config_key(key).choices, words), ", ", ", ");
        snprintf(out, size, "a list of %s or text files", list);
        break;
    }
}

enum status config_value_wrong_kind(struct config_reader *r, int key, struct config_place at, const char *kind)
{
    char wanted[256];
    config_value_wanted(key, wanted, sizeof wanted);
    return config_refuse(r, at, "%s %s; %s is wanted", config_key(key).name, kind, wanted);
}

/* A key is its value; a list holds it. */
static const char *says(int key) { return config_key_is_list(key) ? "holds" : "is"; }

static enum status wrong_text(struct config_reader *r, int key, struct config_place at, const char *text, bool quoted)
{
    char shown[CONFIG_SHOWN_MAX], kind[CONFIG_SHOWN_MAX + 16];
    if (!quoted && config_text_is_null(text) && !config_key_is_list(key))
        return config_value_wrong_kind(r, key, at, "has no value");
    snprintf(kind, sizeof kind, "%s '%s'", says(key), config_shown(shown, text));
    return config_value_wrong_kind(r, key, at, kind);
}

static enum status out_of_range(struct config_reader *r, int key, struct config_place at, const char *text)
{
    const struct config_key row = config_key(key), *k = &row;
    char shown[CONFIG_SHOWN_MAX], low[40], high[40];
    if (k->type == KEY_REAL) {
        config_real_format(k->min, low);
        config_real_format(k->max, high);
    } else {
        snprintf(low, sizeof low, "%.0f", k->min);
        snprintf(high, sizeof high, "%.0f", k->max);
    }
    return config_refuse(
        r, at, k->below_max ? "%s %s %s; it must be at least %s and below %s" : "%s %s %s; it must be from %s to %s",
        k->name, says(key), config_shown(shown, text), low, high);
}

static const char *skip_digits(const char *s)
{
    while (isdigit((unsigned char)*s))
        s++;
    return s;
}

/* The end of a whole number at the start of `s`, or NULL. */
static const char *end_of_int(const char *s)
{
    s += *s == '-' || *s == '+';
    const char *end = skip_digits(s);
    return end == s || (*s == '0' && end > s + 1) ? NULL : end;
}

static bool is_real(const char *s)
{
    s += *s == '-' || *s == '+';
    const char *point = skip_digits(s);
    const char *end = *point == '.' ? skip_digits(point + 1) : point;
    if (end - s - (*point == '.') == 0)
        return false;
    if (*end == 'e' || *end == 'E') {
        s = end + 1;
        s += *s == '-' || *s == '+';
        end = skip_digits(s);
        if (end == s)
            return false;
    }
    return !*end;
}

static bool in_range(int key, double value)
{
    const struct config_key k = config_key(key);
    return value >= k.min && (k.below_max ? (float)value < k.max : value <= k.max);      /* steps have it as a float */
}

/* All whole ranges end at or below 2^53, so that a double holds their ends exactly. */
static bool int_in_range(int key, const char *text, int64_t *out)
{
    const struct config_key k = config_key(key);
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return !errno && *out >= (int64_t)k.min && *out <= (int64_t)k.max;
}

enum status config_int_read(struct config_reader *r, int key, struct config_place at, const char *text, int64_t *out)
{
    const char *end = end_of_int(text);
    int64_t value;
    if (!end || *end)
        return wrong_text(r, key, at, text, false);
    if (!int_in_range(key, text, &value))
        return out_of_range(r, key, at, text);
    *out = value;
    return OK;
}

static enum status read_real(struct config_reader *r, int key, struct config_place at, const char *text)
{
    if (!is_real(text))
        return wrong_text(r, key, at, text, false);
    const double value = strtod(text, NULL);
    if (!in_range(key, value))
        return out_of_range(r, key, at, text);
    *(double *)field_of(r->c, key) = value + 0.0; /* no negative zero */
    return OK;
}

/* "200", "200 steps", "2 epochs". */
static enum status read_interval(struct config_reader *r, int key, struct config_place at, const char *text)
{
    struct interval value = {0};
    const char *end = end_of_int(text);
    if (!end)
        return wrong_text(r, key, at, text, true);
    const char *unit = end + (*end == ' ');
    value.epochs = !strcmp(unit, "epochs") || !strcmp(unit, "epoch");
    if (*end && !value.epochs && strcmp(unit, "steps") && strcmp(unit, "step"))
        return wrong_text(r, key, at, text, true);
    if (!int_in_range(key, text, &value.n))
        return out_of_range(r, key, at, text);
    value.epochs &= value.n != 0; /* never is never */
    *(struct interval *)field_of(r->c, key) = value;
    return OK;
}

enum status config_choice_read(struct config_reader *r, int key, struct config_place at, const char *text, int *out)
{
    const struct config_key row = config_key(key), *k = &row;
    const char *words[CONFIG_KEYS_MAX];
    char list[256], shown[CONFIG_SHOWN_MAX];
    const int n = list_choices(k->choices, words);
    for (int i = 0; i < n; i++)
        if (!strcmp(words[i], text)) {
            *out = k->choices[i].value;
            return OK;
        }
    const char *near = suggest_nearest(text, words, n);
    config_join(list, sizeof list, words, n, ", ", " or ");
    config_shown(shown, text);
    if (near)
        return config_refuse(r, at, "%s %s '%s'; choose %s; did you mean '%s'?", k->name, says(key), shown, list, near);
    return config_refuse(r, at, "%s %s '%s'; choose %s", k->name, says(key), shown, list);
}

/* The length of the UTF-8 character at `s`, 0 for bytes that are none and for control characters and line breaks of any
 * kind: a path must be printable as one YAML scalar. */
static size_t printable_length(const unsigned char *s)
{
    const size_t n = s[0] < 0x80                   ? 1
                     : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                     : (s[0] & 0xF0) == 0xE0       ? 3
                     : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                   : 0;
    unsigned code = n < 2 ? s[0] : s[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3F);
    }
    const bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000) || code > 0x10FFFF;
    const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029;
    const bool no_character = (code >= 0xD800 && code < 0xE000) || code == 0xFEFF || code == 0xFFFE || code == 0xFFFF;
    return overlong || control || no_character ? 0 : n;
}

enum status config_path_check(struct config_reader *r, int key, struct config_place at, const char *text)
{
    const char *name = config_key(key).name;
    const size_t length = strlen(text);
    char shown[CONFIG_SHOWN_MAX];
    if (length >= CONFIG_PATH_MAX)
        return config_refuse(r, at, "%s has %zu bytes; a path has at most %d", name, length, CONFIG_PATH_MAX - 1);
    for (size_t i = 0, n; i < length; i += n)
        if (!(n = printable_length((const unsigned char *)text + i)))
            return config_refuse(r, at,
                                 "%s %s '%s', with a control character or a byte that is not UTF-8 at position %zu",
                                 name, says(key), config_shown(shown, text), i + 1);
    return OK;
}

static enum status read_path(struct config_reader *r, int key, struct config_place at, const char *text)
{
    const enum status st = config_path_check(r, key, at, text);
    if (st != OK)
        return st;
    char *field = field_of(r->c, key);
    memset(field, 0, CONFIG_PATH_MAX);
    memcpy(field, text, strlen(text));
    return OK;
}

static enum status read_by_type(struct config_reader *r, int key, struct config_place at, const char *text, bool quoted)
{
    const enum key_type type = config_key(key).type;
    const bool null = !quoted && config_text_is_null(text);
    char shown[CONFIG_SHOWN_MAX];
    if (type == KEY_PATH)
        return read_path(r, key, at, null ? "" : text);
    if (null)
        return config_value_wrong_kind(r, key, at, "has no value");
    if (quoted && (type == KEY_INT || type == KEY_REAL || type == KEY_INTS))
        return config_refuse(r, at, "%s is the text \"%s\"; write a %s, without quotes", config_key(key).name,
                             config_shown(shown, text), type == KEY_INTS ? "list of whole numbers" : "number");
    if (config_key_is_list(key))
        return config_list_read(r, key, at, text, quoted);
    switch (type) {
    case KEY_INT: return config_int_read(r, key, at, text, field_of(r->c, key));
    case KEY_REAL: return read_real(r, key, at, text);
    case KEY_INTERVAL: return read_interval(r, key, at, text);
    default: return config_choice_read(r, key, at, text, field_of(r->c, key));
    }
}

enum status config_value_read(struct config_reader *r, int key, struct config_place at, const char *text, bool quoted)
{
    const enum status st = read_by_type(r, key, at, text, quoted);
    if (st == OK)
        r->places[key] = at;
    return st;
}

void config_path_print(const char *text, FILE *to)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        putc(*text, to);
    }
    putc('"', to);
}

void config_value_print(const struct config *c, int key, FILE *to)
{
    const void *field = field_in(c, key);
    const struct interval *every = field;
    char real[40];
    switch (config_key(key).type) {
    case KEY_INT: fprintf(to, "%lld", (long long)*(const int64_t *)field); break;
    case KEY_REAL:
        config_real_format(*(const double *)field, real);
        fputs(real, to);
        break;
    case KEY_WORD: fputs(config_word(config_key(key).name, *(const int *)field), to); break;
    case KEY_PATH: config_path_print(field, to); break;
    case KEY_PASSES: config_passes_print(field, to); break;
    case KEY_INTS: config_list_print(c, key, to); break;
    case KEY_NAMES: config_names_print(field, to); break;
    case KEY_INTERVAL:
        fprintf(to, "%lld%s", (long long)every->n, !every->epochs ? "" : every->n == 1 ? " epoch" : " epochs");
        break;
    }
}
