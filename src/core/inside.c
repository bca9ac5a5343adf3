/* A mark per thread; see inside.h. */
#include "core/inside.h"

#include <stddef.h>

static _Thread_local const char *volatile mark;

void inside_enter(const char *library) { mark = library; }
void inside_leave(void) { mark = NULL; }
const char *inside_library(void) { return mark; }
