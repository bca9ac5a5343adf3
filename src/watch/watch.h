/* A PyTorch program that hone watches: what the hook in it (src/watch/hook) left in a folder, and how far its processes got.
 *
 * FOLDER/processes/PID        a word: how far this Python got
 * FOLDER/rankN/watch.json     what was measured; anew after every window
 * FOLDER/rankN/shapes.json    traces of the PyTorch profiler
 * FOLDER/rankN/stacks.json */
#ifndef HONE_WATCH_WATCH_H
#define HONE_WATCH_WATCH_H

#include "analyze/diagnosis.h"
#include "core/arena.h"
#include "core/error.h"

#define WATCH_SHAPES "shapes.json"
#define WATCH_STACKS "stacks.json"

/* Fills *out with what ranks have left so far, by rank; strings are the arena's. No rank is no error. Release with watched_release. */
enum status watched_read(struct watched *out, struct arena *a, const char *folder, struct error *err);
/* The text of a watch.json; `name` is for messages. *trial, where it is not NULL, is the caller's. */
enum status watched_parse(struct watched_rank *out, struct json_t **trial, struct arena *a, const char *name, const char *text, size_t size,
                          struct error *err);
void watched_release(struct watched *w);
/* The program is no more: a switch that was being tried was cut short. */
void watched_end_trial(struct watched *w);

/* What --try measured takes the place of what was predicted, in the diagnosis of the same program. */
void watched_take_measured(struct diagnosis *d, const struct watched *w);

/* All ranks of the job on this machine have measured what there is to measure. */
bool watched_all_finished(const struct watched *w);

/* The farthest that any process of the program got. */
enum watched_reach { REACHED_NOTHING, REACHED_PYTHON, REACHED_TORCH, REACHED_STEP };
enum watched_reach watched_reach(const char *folder);

#endif
