/* Our own names: of a checkpoint, or saved by a PyTorch model that has them. */
#include "weights/weights_int.h"

static const struct name_row rows[] = {{NULL, {NULL}, LAYOUT_SAME, false}};

const struct family family_hone = {.title = "hone", .sign = "blocks.0.attn.q.weight", .ours = true, .rows = rows};
