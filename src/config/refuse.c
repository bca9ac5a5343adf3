/* Messages of the config room: the place first, then what is wrong with it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/config_int.h"

enum { SHOWN_PATH = 400 };

const char *config_shown(char shown[CONFIG_SHOWN_MAX], const char *text)
{
    size_t n = 0;
    while (text[n] && n < CONFIG_SHOWN_MAX - 4) {
        shown[n] = text[n];
        n++;
    }
    if (text[n]) {
        while (n && ((unsigned char)text[n] & 0xC0) == 0x80) /* not in the middle of a UTF-8 character */
            n--;
        memcpy(shown + n, "...", 3);
        n += 3;
    }
    shown[n] = '\0';
    return shown;
}

/* "'file' line 7: " or "--set a.b=c: ". A very long path is shown by its end, so that the message itself fits. */
static void format_place(const struct config_reader *r, struct config_place at, char *out, size_t size)
{
    char shown[CONFIG_SHOWN_MAX];
    const size_t length = strlen(r->file);
    const size_t hidden = length > SHOWN_PATH ? length - SHOWN_PATH : 0;
    const char *cut = hidden ? "..." : "", *path = r->file + hidden;
    if (at.set)
        snprintf(out, size, "--set %s", config_shown(shown, at.set));
    else if (at.line)
        snprintf(out, size, "'%s%s' line %d", cut, path, at.line);
    else
        snprintf(out, size, "'%s%s'", cut, path);
}

enum status config_refuse(struct config_reader *r, struct config_place at, const char *format, ...)
{
    char place[SHOWN_PATH + 64], message[sizeof r->err->text - sizeof place - 2];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    format_place(r, at, place, sizeof place);
    return error_set(r->err, BAD_INPUT, "%s: %s", place, message);
}
