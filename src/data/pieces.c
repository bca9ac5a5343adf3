/* The cuts of GPT-2, and of cl100k and Llama 3, alternative by alternative in the order of their regular expressions. See pieces.h. */
#include "data/pieces.h"

#include <string.h>

#include "data/unicode.h"
#include "data/utf8.h"

static const struct { const char *regex; struct cutting cutting; } known[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", {.digits = 0}},
    {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", {.digits = 0}},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     {.words_with_marks = true, .digits = 3}},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     {.words_with_marks = true, .digits = 1}},
    {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     {.words_with_marks = true, .digits = 3}},
};

bool cutting_of_regex(struct cutting *out, const char *regex)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].regex, regex)) {
            *out = known[i].cutting;
            return true;
        }
    return false;
}

const char *cutting_regex(const struct cutting *c)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].cutting.words_with_marks == c->words_with_marks && known[i].cutting.digits == c->digits)
            return known[i].regex;
    return NULL;
}

struct text {
    const char *bytes;
    size_t length;
};

/* The kind of the character at `at`, and how long it is; at the end OTHER and 0. */
static enum unicode_kind kind_at(const struct text *t, size_t at, size_t *step)
{
    uint32_t c;
    *step = at < t->length ? utf8_decode(t->bytes + at, t->length - at, &c) : 0;
    if (at < t->length && !*step) {
        *step = 1;                                  /* a byte that is no UTF-8 */
        return UNICODE_OTHER;
    }
    return *step ? unicode_kind_of(c) : UNICODE_OTHER;
}

/* Past all characters of one kind. */
static size_t skip(const struct text *t, size_t at, enum unicode_kind kind)
{
    size_t step;
    while (kind_at(t, at, &step) == kind && step)
        at += step;
    return at;
}

static bool is_kind(const struct text *t, size_t at, enum unicode_kind kind)
{
    size_t step;
    return kind_at(t, at, &step) == kind && step;
}

static char byte_at(const struct text *t, size_t at) { return at < t->length ? t->bytes[at] : '\0'; }
static bool is_line_end(const struct text *t, size_t at) { return at < t->length && (t->bytes[at] == '\n' || t->bytes[at] == '\r'); }
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

/* 's, 't, 're, 've, 'm, 'll, 'd: its end, or `at` where there is none. Where case does not count a long s is an s, too. */
static size_t contraction(const struct text *t, size_t at, bool any_case)
{
    if (byte_at(t, at) != '\'')
        return at;
    char a = byte_at(t, at + 1), b = byte_at(t, at + 2);
    if (any_case && a == '\xC5' && b == '\xBF')
        return at + 3;
    a = any_case ? lower(a) : a;
    b = any_case ? lower(b) : b;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return at + 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? at + 3 : at;
}

/* Spaces up to `end`, which is where they end: all of them at the end of the text, else all but the last, which belongs to what follows. */
static size_t spaces(const struct text *t, size_t at, size_t end)
{
    size_t last = at, step;
    if (end == t->length)
        return end;
    for (size_t i = at; i < end; i += step) {
        kind_at(t, i, &step);
        last = i;
    }
    return last > at ? last : end;
}

/* ` ?x+` for one kind of x; `at` where it does not match. */
static size_t run_with_space(const struct text *t, size_t at, enum unicode_kind kind)
{
    const size_t first = at + (byte_at(t, at) == ' ');
    const size_t end = skip(t, first, kind);
    return end > first ? end : at;
}

static size_t cut_gpt2(const struct text *t, size_t at)
{
    static const enum unicode_kind kinds[] = {UNICODE_LETTER, UNICODE_NUMBER, UNICODE_OTHER};
    size_t end = contraction(t, at, false);
    for (int i = 0; i < 3 && end == at; i++)
        end = run_with_space(t, at, kinds[i]);
    return end > at ? end : spaces(t, at, skip(t, at, UNICODE_SPACE));
}

/* `[^\r\n\p{L}\p{N}]?\p{L}+` */
static size_t word_with_mark(const struct text *t, size_t at)
{
    size_t step;
    const enum unicode_kind kind = kind_at(t, at, &step);
    const bool mark = kind != UNICODE_LETTER && kind != UNICODE_NUMBER && !is_line_end(t, at);
    const size_t first = mark ? at + step : at;
    return is_kind(t, first, UNICODE_LETTER) ? skip(t, first, UNICODE_LETTER) : at;
}

static size_t some_digits(const struct text *t, size_t at, int most)
{
    size_t step;
    for (int i = 0; i < most && kind_at(t, at, &step) == UNICODE_NUMBER && step; i++)
        at += step;
    return at;
}

/* ` ?[^\s\p{L}\p{N}]+[\r\n]*` */
static size_t marks_and_lines(const struct text *t, size_t at)
{
    size_t end = run_with_space(t, at, UNICODE_OTHER);
    while (end > at && is_line_end(t, end))
        end++;
    return end;
}

/* `\s*[\r\n]+`: up to the last end of a line among the spaces; then what is left of them. */
static size_t lines_or_spaces(const struct text *t, size_t at)
{
    const size_t end = skip(t, at, UNICODE_SPACE);
    for (size_t i = end; i > at; i--)
        if (is_line_end(t, i - 1))
            return i;
    return spaces(t, at, end);
}

static size_t cut_with_marks(const struct text *t, size_t at, int digits)
{
    size_t end = contraction(t, at, true);
    if (end == at)
        end = word_with_mark(t, at);
    if (end == at)
        end = some_digits(t, at, digits);
    if (end == at)
        end = marks_and_lines(t, at);
    return end > at ? end : lines_or_spaces(t, at);
}

/* The pre-tokenizer Digits knows a newer Unicode (17) than the regular expressions that the table was made of. */
static bool is_digit(const struct text *t, size_t at, size_t *step)
{
    uint32_t c = 0;
    const bool number = kind_at(t, at, step) == UNICODE_NUMBER;
    utf8_decode(t->bytes + at, t->length - at, &c);
    return number || (c >= 0x11DE0 && c <= 0x11DE9) || (c >= 0x16FF4 && c <= 0x16FF6);
}

/* Up to the next digit. */
static size_t before_digit(const struct text *t, size_t at)
{
    size_t step;
    while (at < t->length && !is_digit(t, at, &step))
        at += step;
    return at;
}

/* ` *[^ ]*`; with lines ` *[^ \n]*\n?` */
static size_t cut_spaces_first(const struct text *t, size_t at, bool lines)
{
    while (at < t->length && t->bytes[at] == ' ')
        at++;
    while (at < t->length && t->bytes[at] != ' ')
        if (t->bytes[at++] == '\n' && lines)
            break;
    return at;
}

size_t piece_end(const struct cutting *c, const char *bytes, size_t at, size_t length, size_t *digit)
{
    struct text t = {bytes, length};
    size_t step;
    if (c->each_digit && is_digit(&t, at, &step))
        return at + step;
    if (c->each_digit && *digit <= at)
        *digit = before_digit(&t, at);
    if (c->each_digit)
        t.length = *digit;
    if (c->none)
        return t.length;
    if (c->spaces_first)
        return cut_spaces_first(&t, at, c->lines);
    return c->words_with_marks ? cut_with_marks(&t, at, c->digits) : cut_gpt2(&t, at);
}
