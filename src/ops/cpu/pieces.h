/* How work is cut that other threads may take pieces of (team_pieces): multiply-adds of a piece, some microseconds, and of all of it, at least. What is less than that
 * has gone by until somebody who helps has what it needs in its cache (docs/performance.md). */
#ifndef HONE_OPS_CPU_PIECES_H
#define HONE_OPS_CPU_PIECES_H

#include <stdint.h>

#include "core/team.h"

enum { PIECE_ADDS = 1 << 19, SHARED_ADDS = 1 << 21 };

/* How many units of so many multiply-adds are a piece; how many pieces they are. */
static inline int64_t piece_units(int64_t units, int64_t adds) { return units * adds < SHARED_ADDS ? (units > 1 ? units : 1) : 1 + PIECE_ADDS / (adds + 1); }
static inline int piece_count(int64_t units, int64_t each) { return (int)((units + each - 1) / each); }

#endif
