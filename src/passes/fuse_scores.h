/* A part of the pass fused-optimizer: scores of groups. */
#ifndef HONE_PASSES_FUSE_SCORES_H
#define HONE_PASSES_FUSE_SCORES_H

#include "program/rewriter.h"

/* Scores that read the n sums of squares become one op that reads `all` of them, in the same order. Returns the places: 0 or 1. */
int fuse_scores(struct rewriter *r, const value_id *squares, int n, value_id all);

#endif
