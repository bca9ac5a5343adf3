/* Reads one event into spans: its own members and those of its args that are of use. */
#include "import/import_int.h"

enum { LONGEST_FLOW = 1024 };   /* events without args are short; a longer one has lost a quote */

enum { NOTHING = -1, ARGS = N_FIELDS };

/* Four letters as they lie in memory. */
#define FOUR(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

static inline uint32_t first_four(const char *p)
{
    return FOUR((uint8_t)p[0], (uint8_t)p[1], (uint8_t)p[2], (uint8_t)p[3]);
}

/* Keys are compared as a whole, with the quote and the colon behind: a branch that is guessed well is faster than a
 * search for the end of the key. On success *p is behind the colon and the result is what the key means. */
#define KEY(text, meaning)                                                                                            \
    if (!memcmp(*p, text "\":", sizeof text + 1)) {                                                                   \
        *p += sizeof text + 1;                                                                                        \
        return meaning;                                                                                               \
    }

enum { UNKNOWN_KEY = -2 };

static inline int own_key(const char **p)
{
    switch (first_four(*p)) {
    case FOUR('p', 'h', '"', ':'): *p += 4; return FIELD_PH;
    case FOUR('t', 's', '"', ':'): *p += 4; return FIELD_TS;
    case FOUR('c', 'a', 't', '"'): KEY("cat", FIELD_CAT) break;
    case FOUR('p', 'i', 'd', '"'): KEY("pid", FIELD_PID) break;
    case FOUR('t', 'i', 'd', '"'): KEY("tid", FIELD_TID) break;
    case FOUR('d', 'u', 'r', '"'): KEY("dur", FIELD_DUR) break;
    case FOUR('n', 'a', 'm', 'e'): KEY("name", FIELD_NAME) break;
    case FOUR('a', 'r', 'g', 's'): KEY("args", ARGS) break;
    default: break;
    }
    return UNKNOWN_KEY;
}

/* Those of use, several names where versions of the profiler differ, and some that are frequent. */
static inline int arg_key(const char **p)
{
    switch (first_four(*p)) {
    case FOUR('E', 'x', 't', 'e'): KEY("External id", NOTHING) break;
    case FOUR('R', 'e', 'c', 'o'): KEY("Record function id", NOTHING) break;
    case FOUR('E', 'v', ' ', 'I'): KEY("Ev Idx", NOTHING) break;
    case FOUR('S', 'e', 'q', 'u'): KEY("Sequence number", FIELD_SEQUENCE) break;
    case FOUR('C', 'o', 'n', 'c'): KEY("Concrete Inputs", FIELD_VALUES) break;
    case FOUR('I', 'n', 'p', 'u'): KEY("Input Dims", FIELD_DIMS) KEY("Input type", FIELD_TYPES)
        KEY("Input Strides", NOTHING) break;
    case FOUR('c', 'o', 'r', 'r'): KEY("correlation", FIELD_CORRELATION) break;
    case FOUR('F', 'w', 'd', ' '): KEY("Fwd thread id", NOTHING) break;
    case FOUR('c', 'b', 'i', 'd'): KEY("cbid", NOTHING) break;
    case FOUR('d', 'e', 'v', 'i'): KEY("device", FIELD_DEVICE) break;
    case FOUR('s', 't', 'r', 'e'): KEY("stream", FIELD_STREAM) break;
    case FOUR('g', 'r', 'i', 'd'): KEY("grid", FIELD_GRID) break;
    case FOUR('b', 'l', 'o', 'c'): KEY("block", FIELD_BLOCK) KEY("blocks per SM", NOTHING) break;
    case FOUR('w', 'a', 'r', 'p'): KEY("warps per SM", NOTHING) break;
    case FOUR('c', 'o', 'n', 't'): KEY("context", NOTHING) break;
    case FOUR('q', 'u', 'e', 'u'): KEY("queued", NOTHING) break;
    case FOUR('r', 'e', 'g', 'i'): KEY("registers per thread", FIELD_REGISTERS) break;
    case FOUR('s', 'h', 'a', 'r'): KEY("shared memory", FIELD_SHARED) break;
    case FOUR('e', 's', 't', '.'): KEY("est. achieved occupancy %", FIELD_OCCUPANCY) break;
    case FOUR('o', 'c', 'c', 'u'): KEY("occupancy", FIELD_OCCUPANCY) break;
    case FOUR('b', 'y', 't', 'e'): KEY("bytes", FIELD_BYTES) break;
    case FOUR('s', 'i', 'z', 'e'): KEY("size", FIELD_BYTES) break;
    case FOUR('C', 'a', 'l', 'l'): KEY("Call stack", FIELD_STACK) break;
    case FOUR('M', 'o', 'd', 'u'): KEY("Module Hierarchy", FIELD_MODULES) break;
    case FOUR('C', 'o', 'l', 'l'): KEY("Collective name", FIELD_COLLECTIVE) break;
    case FOUR('I', 'n', ' ', 'm'): KEY("In msg nelems", FIELD_ELEMENTS) break;
    case FOUR('G', 'r', 'o', 'u'): KEY("Group size", FIELD_GROUP_SIZE) break;
    case FOUR('d', 't', 'y', 'p'): KEY("dtype", FIELD_DTYPE) break;
    case FOUR('n', 'a', 'm', 'e'): KEY("name", FIELD_LABEL) break;
    case FOUR('D', 'e', 'v', 'i'): KEY("Device Type", FIELD_DEVICE_TYPE) KEY("Device Id", FIELD_DEVICE_ID)
        KEY("Device", NOTHING) break;
    case FOUR('T', 'r', 'a', 'c'): KEY("Trace name", NOTHING) KEY("Trace iteration", NOTHING) break;
    case FOUR('e', 'x', 't', 'e'): KEY("external id", NOTHING) break;
    case FOUR('B', 'y', 't', 'e'): KEY("Bytes", FIELD_CHANGE) break;
    case FOUR('T', 'o', 't', 'a'): KEY("Total Allocated", FIELD_ALLOCATED) KEY("Total Reserved", FIELD_RESERVED) break;
    default: break;
    }
    return UNKNOWN_KEY;
}

/* A key that was not among those: written with a space before its colon, or of no use. The same tables say which. */
static int other_key(struct scan *s, int (*table)(const char **p), enum scan_result *r)
{
    enum { LONGEST = 32 };
    struct span key;
    char tidy[LONGEST + 3] = "";
    const char *p = tidy;
    *r = scan_key(s, &key);
    if (*r != SCAN_DONE || key.size > LONGEST)
        return NOTHING;
    memcpy(tidy, key.at, key.size);
    memcpy(tidy + key.size, "\":", 2);
    const int meaning = table(&p);
    return meaning == UNKNOWN_KEY ? NOTHING : meaning;
}

static int own_key_slowly(const char **p) { return own_key(p); }
static int arg_key_slowly(const char **p) { return arg_key(p); }

/* The meaning of the next key, with s->p at its value. */
static inline int next_own_key(struct scan *s, enum scan_result *r)
{
    const char *p = scan_next(s->p);
    const char *behind = p + 1;
    const int meaning = *p == '"' && !s->careful ? own_key(&behind) : UNKNOWN_KEY;
    *r = SCAN_DONE;
    s->p = meaning == UNKNOWN_KEY ? p : scan_space(behind);
    return meaning == UNKNOWN_KEY ? other_key(s, own_key_slowly, r) : meaning;
}

static inline int next_arg_key(struct scan *s, enum scan_result *r)
{
    const char *p = scan_next(s->p);
    const char *behind = p + 1;
    const int meaning = *p == '"' && !s->careful ? arg_key(&behind) : UNKNOWN_KEY;
    *r = SCAN_DONE;
    s->p = meaning == UNKNOWN_KEY ? p : scan_space(behind);
    return meaning == UNKNOWN_KEY ? other_key(s, arg_key_slowly, r) : meaning;
}

/* Empty texts and null are as good as absent. */
static inline void store(struct raw_event *e, int field, const struct span *value)
{
    if (field < 0 || value->size == 0 || (value->type == SPAN_SCALAR && span_is(value, "null", 4)))
        return;
    e->field[field] = *value;
    e->seen |= UINT64_C(1) << field;
}

static enum scan_result scan_args(struct scan *s, struct raw_event *e)
{
    struct span value;
    enum scan_result r;
    if (*s->p != '{')
        return scan_value(s, &value, SCAN_IN_OBJECT);
    s->p++;
    for (;;) {
        const int field = next_arg_key(s, &r);
        if (r != SCAN_DONE || (r = scan_value(s, &value, SCAN_IN_OBJECT)) != SCAN_DONE)
            return r == SCAN_CLOSED ? SCAN_DONE : r;
        store(e, field, &value);
    }
}

static inline bool is_flow(const struct span *ph)
{
    return ph->size == 1 && (*ph->at == 's' || *ph->at == 'f' || *ph->at == 't');
}

enum scan_result event_scan(struct scan *s, struct raw_event *e, bool need_flows)
{
    struct span value;
    enum scan_result r;
    e->seen = 0;
    for (;;) {
        const int field = next_own_key(s, &r);
        if (r == SCAN_DONE && field == ARGS) {
            if ((r = scan_args(s, e)) != SCAN_DONE)
                return r;
            continue;
        }
        if (r != SCAN_DONE || (r = scan_value(s, &value, SCAN_IN_OBJECT)) != SCAN_DONE)
            return r == SCAN_CLOSED ? SCAN_DONE : r;
        store(e, field, &value);
        if (field == FIELD_PH && !need_flows && !s->careful && is_flow(&value))
            return scan_close(s, 1, LONGEST_FLOW);
    }
}
