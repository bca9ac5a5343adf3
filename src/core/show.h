/* Numbers for people, in three digits or so; a dash for what is not finite. */
#ifndef HONE_CORE_SHOW_H
#define HONE_CORE_SHOW_H

enum { NUMBER_TEXT = 32 };
typedef char number_text[NUMBER_TEXT];

/* They return `out`. */
const char *show_number(double x, number_text out);         /* "12.3" */
const char *show_us(double us, number_text out);            /* "12.3 ms" */
const char *show_bytes(double bytes, number_text out);      /* "45.1 MB" */
const char *show_count(double n, number_text out);          /* "1.25 M" */

#endif
