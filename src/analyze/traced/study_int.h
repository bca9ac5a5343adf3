/* Between the files of a study. */
#ifndef HONE_ANALYZE_TRACED_STUDY_INT_H
#define HONE_ANALYZE_TRACED_STUDY_INT_H

#include "analyze/traced/study.h"

enum task task_of(const char *name);
struct dims dims_read(const char *text, int input);     /* of the input-th entry of "[[2, 3], []]"; n is -1 where there is none */

#endif
