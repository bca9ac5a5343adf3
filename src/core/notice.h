/* What the user should know although nothing failed, said by rooms that do not print: one line, to whoever listens. */
#ifndef HONE_CORE_NOTICE_H
#define HONE_CORE_NOTICE_H

/* One listener for the process, set before any work is done; NULL: nobody. */
typedef void notice_fn(void *context, const char *text);
void notice_listen(notice_fn *listen, void *context);

void notice_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
