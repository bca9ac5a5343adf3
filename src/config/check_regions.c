/* Samples that are not all of one length, and the model of regions, beside other keys. */
#include "config/config_int.h"

/* One program is made for every length that a batch may have. */
enum { LENGTHS_MOST = 64 };

static enum status check_regions_data(struct config_reader *r)
{
    const struct config *c = r->c;
    const bool model = c->model.arch == ARCH_REGIONS, data = c->data.source == SOURCE_REGIONS;
    if (model && !data)
        return config_refuse(r, BLAME(r, "data.source", "model.arch"), "model.arch is regions, which reads transitions, and data.source is %s; "
                             "set data.source to regions", config_word("data.source", (int)c->data.source));
    if (data && !model)
        return config_refuse(r, BLAME(r, "data.source", "model.arch"), "data.source is regions, and model.arch %s reads tokens; set model.arch to "
                             "regions, or data.source to corpus", config_word("model.arch", (int)c->model.arch));
    return OK;
}

static enum status check_regions_sizes(struct config_reader *r)
{
    const struct config_model *m = &r->c->model;
    const long long longest = config_region_longest(r->c->data.region);
    if (m->vocab && m->vocab != REGION_IDS)
        return config_refuse(r, BLAME(r, "model.vocab"), "model.vocab is %lld, and regions have %d ids: start, end and %d cells; remove it, or make "
                             "it %d", (long long)m->vocab, REGION_IDS, REGION_CELLS, REGION_IDS);
    if (m->segments != REGION_TYPES)
        return config_refuse(r, BLAME(r, "model.segments"), "model.segments is %lld, and tokens of regions have %d types; make it %d",
                             (long long)m->segments, REGION_TYPES, REGION_TYPES);
    if (m->seq < longest)
        return config_refuse(r, BLAME(r, "model.seq", "data.region"), "model.seq is %lld, and a sample of two regions of data.region %lld has up to "
                             "%lld tokens; it must be at least that", (long long)m->seq, (long long)r->c->data.region, longest);
    return OK;
}

static enum status check_head(struct config_reader *r)
{
    if (r->c->model.head == HEAD_AUTO)
        return OK;
    return config_refuse(r, BLAME(r, "model.head", "model.arch"), "model.head is %s, and arch regions has no head of words; remove it",
                         config_word("model.head", (int)r->c->model.head));
}

static enum status check_positions(struct config_reader *r)
{
    const struct config_model *m = &r->c->model;
    if (m->positions && m->arch == ARCH_LLAMA)
        return config_refuse(r, BLAME(r, "model.positions", "model.arch"), "model.positions is %lld, and arch llama rotates instead of learning "
                             "positions; remove it", (long long)m->positions);
    if (m->positions && m->positions < m->seq)
        return config_refuse(r, BLAME(r, "model.positions", "model.seq"), "model.positions is %lld, and samples have model.seq %lld tokens; it must "
                             "be at least that, or 0", (long long)m->positions, (long long)m->seq);
    return OK;
}

static enum status check_bucket(struct config_reader *r)
{
    const struct config *c = r->c;
    const long long bucket = c->data.bucket, seq = c->model.seq, least = (seq + LENGTHS_MOST - 1) / LENGTHS_MOST;
    if (c->data.group > 1 && !bucket)
        return config_refuse(r, BLAME(r, "data.group", "data.bucket"), "data.group is %lld, and data.bucket is 0: batches are of model.seq tokens "
                             "whatever is in them; set data.bucket, or remove data.group", (long long)c->data.group);
    if (c->data.group > 1 && c->data.domains.n)
        return config_refuse(r, BLAME(r, "data.group", "data.domains"), "data.group is %lld, and samples would be sorted across the borders of "
                             "data.domains; remove data.group", (long long)c->data.group);
    if (!bucket)
        return OK;
    if (c->data.source != SOURCE_REGIONS && c->data.samples == SAMPLES_WINDOWS)
        return config_refuse(r, BLAME(r, "data.bucket", "data.samples"), "data.bucket is %lld, and data.samples is windows: all of them have "
                             "model.seq tokens; remove it, or set data.samples to lines", bucket);
    if (bucket < least)
        return config_refuse(r, BLAME(r, "data.bucket", "model.seq"), "data.bucket is %lld, and model.seq %lld would have %lld lengths, with a "
                             "program each; it must be %lld or more", bucket, seq, (seq + bucket - 1) / bucket, least);
    return OK;
}

static enum status check_pack(struct config_reader *r)
{
    const struct config *c = r->c;
    if (c->data.pack == PACK_OFF)
        return OK;
    if (c->data.source != SOURCE_REGIONS && c->data.samples == SAMPLES_WINDOWS)
        return config_refuse(r, BLAME(r, "data.pack", "data.samples"), "data.pack is on, and data.samples is windows: all of them fill their row; "
                             "remove it, or set data.samples to lines");
    if (c->data.group > 1)
        return config_refuse(r, BLAME(r, "data.pack", "data.group"), "data.pack and data.group are both given, and samples that share rows need not be "
                             "of like length; remove data.group");
    return OK;
}

enum status config_check_regions(struct config_reader *r)
{
    enum status st = check_regions_data(r);
    if (st == OK && r->c->model.arch == ARCH_REGIONS)
        st = check_regions_sizes(r);
    if (st == OK && r->c->model.arch == ARCH_REGIONS)
        st = check_head(r);
    if (st == OK)
        st = check_positions(r);
    if (st == OK)
        st = check_bucket(r);
    return st == OK ? check_pack(r) : st;
}
