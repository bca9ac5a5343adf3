/* Folders of reports. A report replaces only the files that a report of its kind wrote there (core/owned.h); whatever else is
 * in the folder stays: a user's files, a run, reports of other kinds. Where a file of one of its names is not its own, it is
 * refused, before anything is measured and again before anything is written.
 *
 * Files are made in FOLDER/.hone-new-PID and renamed into their places one by one, report.json last: a kill at any moment
 * leaves each file as it was or as it becomes, whole. What a killed process left is swept by the next report. */
#ifndef HONE_REPORT_FOLDER_H
#define HONE_REPORT_FOLDER_H

#include <stddef.h>

#include "core/error.h"

enum { REPORT_FOLDER_MAX = 1024 };
enum report_kind { REPORT_PROFILE, REPORT_TRACE, REPORT_TUNE, REPORT_VERIFY, REPORT_FORGET, REPORT_SIMULATE, REPORT_WATCH, REPORT_COMPARE };

/* The folder that --out names, without slashes at its end. */
enum status report_folder_name(char folder[REPORT_FOLDER_MAX], const char *out, struct error *err);
/* May a report of this kind be written there? Changes nothing, and makes no folder. */
enum status report_folder_check(const char *folder, enum report_kind kind, struct error *err);

/* Writes the files of a report into a folder that is there and empty. */
typedef enum status report_folder_write(const void *what, const char *folder, struct error *err);
/* One of them; text NULL: there was no memory to make it. */
enum status report_folder_add(const char *folder, const char *name, const char *text, struct error *err);
/* Makes the folder where it is missing and puts the report into it, under the folder's lock. */
enum status report_folder_publish(const char *folder, enum report_kind kind, report_folder_write *write, const void *what,
                                  struct error *err);

#endif
