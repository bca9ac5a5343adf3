/* Call paths, taken and counted without an allocation. */
#ifndef HONE_FAULT_PATH_H
#define HONE_FAULT_PATH_H

#include "fault.h"

uint64_t path_from(const void *caller);                     /* of a call that came from there; never 0 */
int path_begins_at(uint64_t path, const void *caller);      /* cheap: false where `path` is surely not that of a call from there */
void path_note(struct fault_path *table, uint64_t path);

#endif
