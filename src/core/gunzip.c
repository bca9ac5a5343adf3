/* gzip with several members, as `cat a.gz b.gz` makes them, by ISA-L. Zeros after the last member are padding. */
#include <isa-l/igzip_lib.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/gunzip.h"

struct gunzip {
    struct inflate_state state;
    struct isal_gzip_header head;       /* of a member: it may come in parts, between which isal_inflate would forget it */
    bool in_head, between, ended;       /* in such a head; between members; padding or damage was met */
    const char *damage;
};

struct gunzip *gunzip_new(void)
{
    struct gunzip *g = malloc(sizeof *g);
    if (!g)
        return NULL;
    isal_inflate_init(&g->state);
    g->between = true;
    g->in_head = g->ended = false;
    g->damage = NULL;
    return g;
}

void gunzip_free(struct gunzip *g) { free(g); }
bool gunzip_whole(const struct gunzip *g) { return g->between; }
const char *gunzip_damage(const struct gunzip *g) { return g->damage; }

static void start_member(struct gunzip *g)
{
    isal_inflate_reset(&g->state);
    isal_gzip_header_init(&g->head);
    g->state.crc_flag = ISAL_GZIP_NO_HDR_VER;
    g->between = false;
    g->in_head = true;
}

/* Returns false when what comes is no member. */
static bool next_member(struct gunzip *g)
{
    if (*g->state.next_in != 0x1f) {
        g->ended = true;
        g->damage = *g->state.next_in ? "what follows the compressed data is no gzip" : NULL;
        return false;
    }
    start_member(g);
    return true;
}

static int go_on(struct gunzip *g)
{
    if (!g->in_head)
        return isal_inflate(&g->state);
    const int r = isal_read_gzip_header(&g->state, &g->head);
    g->in_head = r == ISAL_END_INPUT;
    return r;
}

size_t gunzip_write(struct gunzip *g, const void *in, size_t size, size_t *taken, void *out, size_t room)
{
    struct inflate_state *z = &g->state;
    z->next_in = (uint8_t *)(uintptr_t)in;
    z->avail_in = (uint32_t)size;
    z->next_out = out;
    z->avail_out = (uint32_t)room;
    while (!g->ended && z->avail_out > 0) {
        if (g->between && (z->avail_in == 0 || !next_member(g)))
            break;
        const uint32_t had_in = z->avail_in, had_out = z->avail_out;
        const int r = go_on(g);
        if (r != ISAL_DECOMP_OK && r != ISAL_END_INPUT) {
            g->ended = true;
            g->damage = r == ISAL_INCORRECT_CHECKSUM ? "its checksum is wrong" : "it is damaged";
        }
        g->between = !g->in_head && z->block_state == ISAL_BLOCK_FINISH;
        if (!g->between && had_in == z->avail_in && had_out == z->avail_out)
            break;                      /* all taken */
    }
    *taken = g->ended ? size : size - z->avail_in;
    return room - z->avail_out;
}
