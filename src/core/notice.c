/* See notice.h. */
#include "core/notice.h"

#include <stdarg.h>
#include <stdio.h>

static notice_fn *listener;
static void *listener_context;

void notice_listen(notice_fn *listen, void *context)
{
    listener = listen;
    listener_context = context;
}

void notice_tell(const char *format, ...)
{
    char text[1024];
    va_list args;
    if (!listener)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    listener(listener_context, text);
}
