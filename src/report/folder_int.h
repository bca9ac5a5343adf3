/* What folder.c (may it be written?) and publish.c (writing it) share. */
#ifndef HONE_REPORT_FOLDER_INT_H
#define HONE_REPORT_FOLDER_INT_H

#include "core/owned.h"
#include "report/folder.h"

const char *report_kind_name(enum report_kind kind);
/* Refuses a file that is there and is not this kind of report's own, as it was written. */
enum status report_folder_check_file(const struct owned *o, const char *folder, enum report_kind kind, const char *name,
                                     struct error *err);

#endif
