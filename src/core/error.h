/* Status and errors. A function that can fail returns a status and fills an error that says what failed, where, and
 * what would be right. Only src/cli prints them. The values of the enum are the exit codes of the program, and
 * STOPPED_CODE that of what was stopped. */
#ifndef HONE_CORE_ERROR_H
#define HONE_CORE_ERROR_H

#include <stdbool.h>

enum status {
    OK = 0,
    ANSWER_NO = 1,  /* the question was understood and the answer is no: a gate failed */
    BAD_INPUT = 2,  /* wrong usage, config, data or file */
    CANNOT = 3,     /* the machine cannot: no device, no memory, disk full */
};

enum { STOPPED_CODE = 130 };        /* Ctrl-C before there was a result: as shells have it */

struct error {
    enum status status;
    bool stopped;               /* nothing was wrong: somebody stopped it. The status is BAD_INPUT */
    bool no_memory;             /* it was memory that lacked: a caller that knows settings which would fit adds them */
    int code;                   /* errno where a call to the system failed; 0: it is about what was read or given */
    char text[1024];
};

/* Fills the error and returns its status, so that a caller can write `return error_set(err, BAD_INPUT, ...)`.
 * err may be NULL. The text is one line that is safe to show, whatever it quotes (clean.h). */
enum status error_set(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, with ": <strerror(errno)>" appended. errno decides between BAD_INPUT (missing, not allowed) and CANNOT. */
enum status error_errno(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "out of memory: WHAT needs 12.3 MB", without advice: what would fit is known to the caller that chose the sizes, if to anyone. */
enum status error_no_memory(struct error *err, const char *what, unsigned long long bytes);

/* Somebody stopped it before there was a result. */
enum status error_stopped(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts more text behind what the error says, and returns its status: "; try fewer threads". */
enum status error_add(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __clang_analyzer__       /* it looks at one file at a time, and would think that these may return OK */
#define error_set(err, status, ...)         ((error_set)(err, status, __VA_ARGS__), (status))
#define error_errno(err, ...)               ((error_errno)(err, __VA_ARGS__), CANNOT)
#define error_stopped(err, ...)             ((error_stopped)(err, __VA_ARGS__), BAD_INPUT)
#define error_no_memory(err, what, bytes)   ((error_no_memory)(err, what, bytes), CANNOT)
#endif

#endif
