/* Which library a thread is inside of. Some abort where they find no memory; who handles that can say then whose words those were. */
#ifndef HONE_CORE_INSIDE_H
#define HONE_CORE_INSIDE_H

void inside_enter(const char *library);     /* the text must stay */
void inside_leave(void);
const char *inside_library(void);           /* of this thread, NULL: none; may be asked in a signal handler */

#endif
