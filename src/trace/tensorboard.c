/* TensorBoard's event files: scalars and text. Each event is flushed as it is written, so that a running TensorBoard
 * shows it. After a failed write nothing more is written, since readers stop at a broken record. */
#include <errno.h>
#include <events.pb-c.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/fs.h"
#include "trace/trace.h"
#include "trace/trace_int.h"

struct tensorboard {
    FILE *file;
    char path[PATH_MAX];
    int code;                           /* errno of the first failure */
};

static double wall_time_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void write_event(struct tensorboard *t, Tensorboard__Event *e)
{
    if (t->code)
        return;
    e->wall_time = wall_time_s();
    const size_t size = tensorboard__event__get_packed_size(e);
    uint8_t *data = xcalloc(size, 1);
    tensorboard__event__pack(e, data);
    t->code = tfrecord_write(t->file, data, size);
    free(data);
}

static void write_value(struct tensorboard *t, int64_t step, Tensorboard__Summary__Value *value)
{
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    Tensorboard__Event e = TENSORBOARD__EVENT__INIT;
    summary.n_value = 1;
    summary.value = &value;
    e.step = step;
    e.what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
    e.summary = &summary;
    write_event(t, &e);
}

static void write_version(struct tensorboard *t)
{
    Tensorboard__Event e = TENSORBOARD__EVENT__INIT;
    e.what_case = TENSORBOARD__EVENT__WHAT_FILE_VERSION;
    e.file_version = (char *)"brain.Event:2";
    write_event(t, &e);
}

/* The host's name, as part of a file name. */
static void host_name(char host[65])
{
    if (gethostname(host, 65) || !host[0])
        strcpy(host, "localhost");
    host[64] = '\0';
    for (char *c = host; *c; c++)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9') && *c != '.')
            *c = '-';
}

/* A file of its own: a run that starts in the same second as another gets a number after its name. */
static enum status create(struct tensorboard *t, const char *folder, struct error *err)
{
    char host[65], again[16] = "";
    const long long now_s = (long long)time(NULL);
    host_name(host);
    for (int i = 1; !t->file && i < 1000; i++) {
        const int n = snprintf(t->path, sizeof t->path, "%s/events.out.tfevents.%010lld.%s%s", folder, now_s, host,
                               again);
        if (n >= (int)sizeof t->path)
            return error_set(err, BAD_INPUT, "the path of the folder '%.80s...' has %zu bytes; event files need a "
                             "shorter one", folder, strlen(folder));
        t->file = fopen(t->path, "wxe");
        if (!t->file && errno != EEXIST)
            break;
        snprintf(again, sizeof again, ".%d", i);
    }
    return t->file ? OK : error_errno(err, "cannot create '%s'", t->path);
}

enum status tensorboard_open(struct tensorboard **out, const char *folder, struct error *err)
{
    struct tensorboard *t = xcalloc(1, sizeof *t);
    enum status st = fs_make_dirs(folder, err);
    if (st == OK)
        st = create(t, folder, err);
    if (st != OK) {
        free(t);
        return st;
    }
    write_version(t);
    if (t->code) {
        unlink(t->path);
        return tensorboard_close(t, err);
    }
    *out = t;
    return OK;
}

void tensorboard_scalar(struct tensorboard *t, const char *tag, int64_t step, double value)
{
    Tensorboard__Summary__Value v = TENSORBOARD__SUMMARY__VALUE__INIT;
    char *name = trace_text_repair(tag);
    v.tag = name;
    v.value_case = TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    v.simple_value = (float)value;
    write_value(t, step, &v);
    free(name);
}

void tensorboard_text(struct tensorboard *t, const char *tag, int64_t step, const char *markdown)
{
    Tensorboard__SummaryMetadata__PluginData plugin = TENSORBOARD__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    Tensorboard__SummaryMetadata metadata = TENSORBOARD__SUMMARY_METADATA__INIT;
    Tensorboard__Shape shape = TENSORBOARD__SHAPE__INIT;
    Tensorboard__Tensor tensor = TENSORBOARD__TENSOR__INIT;
    Tensorboard__Summary__Value v = TENSORBOARD__SUMMARY__VALUE__INIT;
    char *name = trace_text_repair(tag), *text = trace_text_repair(markdown);
    ProtobufCBinaryData bytes = {.len = strlen(text), .data = (uint8_t *)text};

    plugin.plugin_name = (char *)"text";
    metadata.plugin_data = &plugin;
    metadata.data_class = TENSORBOARD__DATA_CLASS__DATA_CLASS_TENSOR;
    tensor.dtype = TENSORBOARD__DATA_TYPE__DT_STRING;
    tensor.shape = &shape;
    tensor.n_string_val = 1;
    tensor.string_val = &bytes;
    v.tag = name;
    v.metadata = &metadata;
    v.value_case = TENSORBOARD__SUMMARY__VALUE__VALUE_TENSOR;
    v.tensor = &tensor;
    write_value(t, step, &v);
    free(name);
    free(text);
}

enum status tensorboard_close(struct tensorboard *t, struct error *err)
{
    if (!t)
        return OK;
    if (fclose(t->file) && !t->code)
        t->code = errno;
    errno = t->code;
    const enum status st = t->code ? error_errno(err, "cannot write '%s'", t->path) : OK;
    free(t);
    return st;
}
