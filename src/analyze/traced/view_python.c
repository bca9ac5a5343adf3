/* Python frames around a moment. Frames nest; each holds the frame around it in its event.step (view_nest_python). */
#include <string.h>

#include "analyze/traced/view_int.h"

/* The profiler cuts the folders of sys.path from the names, so that a library's file starts with its package. */
static const char *const library_starts[] = {
    "<", "torch/", "torchvision/", "torchaudio/", "torchtext/", "triton/", "numpy/", "apex/", "deepspeed/", "xformers/",
    "flash_attn/", "transformers/", "accelerate/", "lightning/", "pytorch_lightning/", "lightning_fabric/", "datasets/",
    "tqdm/", "PIL/", "scipy/", "pandas/", "nn.Module: ", "multiprocessing/", "concurrent/", "asyncio/", "logging/",
    "importlib/", "collections/", "json/", "encodings/", "threading.py(", "contextlib.py(", "functools.py(", "runpy.py(",
    "queue.py(", "random.py(", "copy.py(", "os.py(", "re.py(", "enum.py(", "abc.py(", "typing.py(", "inspect.py(",
    "warnings.py(", "weakref.py(", "selectors.py(", "socket.py(", "subprocess.py(", "tempfile.py(", "posixpath.py(",
    "dataclasses.py(", "traceback.py(", "linecache.py(", "tokenize.py(", "pickle.py(", "copyreg.py(", "operator.py(",
    "ast.py(", "codecs.py(", "types.py(", "string.py(", "struct.py(", "heapq.py(", "bisect.py(", "statistics.py(",
};
static const char *const library_parts[] = {"site-packages/", "dist-packages/", "/lib/python", "<frozen ", "/torch/", "hone_hook/"};

bool frame_is_users(const char *frame)
{
    if (!strstr(frame, ".py(") && strncmp(frame, "/", 1) && !strstr(frame, "ipython-input"))
        return false;
    for (size_t i = 0; i < sizeof library_starts / sizeof *library_starts; i++)
        if (!strncmp(frame, library_starts[i], strlen(library_starts[i])))
            return false;
    for (size_t i = 0; i < sizeof library_parts / sizeof *library_parts; i++)
        if (strstr(frame, library_parts[i]))
            return false;
    return true;
}

bool frame_is_hones(const char *frame) { return strstr(frame, "hone_hook/") != NULL; }

/* The profiler's own code is nobody's place. */
static bool is_profilers(const char *frame)
{
    return strstr(frame, "torch/profiler/") || strstr(frame, "torch/autograd/profiler") || frame_is_hones(frame);
}

/* The last frame of the track that starts no later; -1: none. */
static int32_t last_started(const struct view *v, int track, int64_t at_ns)
{
    int32_t from = v->python;
    for (int32_t to = v->python + v->n_python; from < to;) {
        const int32_t middle = from + (to - from) / 2;
        const struct event *e = view_event(v, middle);
        if (e->track < track || (e->track == track && e->start_ns <= at_ns))
            from = middle + 1;
        else
            to = middle;
    }
    return from > v->python && view_event(v, from - 1)->track == track ? from - 1 : -1;
}

int32_t view_python_at(const struct view *v, int track, int64_t at_ns, bool any)
{
    int32_t frame = last_started(v, track, at_ns);
    while (frame >= 0 && (event_end(view_event(v, frame)) <= at_ns || is_profilers(view_name(v, frame)) ||
                          (!any && !frame_is_users(view_name(v, frame)))))
        frame = view_event(v, frame)->step;
    return frame;
}
