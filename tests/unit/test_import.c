/* What the reader makes of a well-formed trace: kinds, tracks, links, args, memory, metadata. */
#include "unit/import_text.h"

struct kind_case {
    const char *category;
    int kind;
};

static void test_categories(void **state)
{
    (void)state;
    static const struct kind_case cases[] = {
        {"cpu_op", EVENT_HOST_OP},
        {"Operator", EVENT_HOST_OP},
        {"user_annotation", EVENT_ANNOTATION},
        {"python_function", EVENT_PYTHON},
        {"cuda_runtime", EVENT_RUNTIME},
        {"Runtime", EVENT_RUNTIME},
        {"cuda_driver", EVENT_RUNTIME},
        {"hip_runtime", EVENT_RUNTIME},
        {"xpu_runtime", EVENT_RUNTIME},
        {"mtia_runtime", EVENT_RUNTIME},
        {"privateuse1_runtime", EVENT_RUNTIME},
        {"xpu_driver", EVENT_RUNTIME},
        {"kernel", EVENT_KERNEL},
        {"Kernel", EVENT_KERNEL},
        {"concurrent_kernel", EVENT_KERNEL},
        {"mtia_ccp_events", EVENT_KERNEL},
        {"gpu_memcpy", EVENT_MEMCPY},
        {"Memcpy", EVENT_MEMCPY},
        {"gpu_memset", EVENT_MEMSET},
        {"Memset", EVENT_MEMSET},
        {"overhead", EVENT_OVERHEAD},
        {"cuda_sync", EVENT_STREAM_WAIT},
        {"CPU_OP", EVENT_HOST_OP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, TRACE("{'ph': 'X', 'cat': '%s', 'name': 'n', " COMMON "}"),
                 cases[i].category);
        struct trace *t = read_text(text);
        assert_int_equal(t->n, 1);
        if (t->events[0].kind != cases[i].kind)
            fail_msg("category %s became kind %d, not %d", cases[i].category, t->events[0].kind, cases[i].kind);
        assert_int_equal(t->events[0].step, -1);
        assert_int_equal(t->events[0].link, -1);
        assert_int_equal(t->events[0].args, -1);
        assert_false(t->origin.truncated);
        assert_int_equal(t->origin.n_warnings, 0);
        trace_free(t);
    }
}

static void test_dropped(void **state)
{
    (void)state;
    struct trace *t = read_text(TRACE(
        OP("aten::mm") ","
        EVENT("gpu_user_annotation", "ProfilerStep#3") ","
        EVENT("cuda_event", "e") ","
        EVENT("Trace", "PyTorch Profiler (0)") ","
        "{'ph': 'X', 'name': 'no category', " COMMON "},"
        "{'ph': 'i', 's': 'g', 'name': 'Record Window End', 'ts': 3, 'pid': '', 'tid': ''},"
        "{'ph': 's', 'id': 1, 'pid': 1, 'tid': 1, 'ts': 1, 'cat': 'fwdbwd', 'name': 'fwdbwd'},"
        "{'name': 'no ph'}"));
    assert_int_equal(t->n, 1);
    assert_int_equal(t->origin.events_read, 1);
    assert_int_equal(t->origin.other_events, 7);
    assert_int_equal(t->origin.events_skipped, 0);
    assert_false(t->origin.has_flows);
    assert_false(t->origin.has_stacks);
    assert_false(t->origin.has_shapes);
    assert_false(t->origin.has_memory);
    trace_free(t);
}

static void test_flows(void **state)
{
    (void)state;
    struct trace *t = read_text(TRACE(
        OP("a") ","
        "{'ph': 'f', 'id': 1, 'pid': 1, 'tid': 1, 'ts': 1, 'cat': 'ac2g', 'name': 'ac2g', 'bp': 'e'},"
        "{'ph': 's', 'id': 1, 'cat': 'ac2g', 'name': 'a } b', 'args': {'x': [1, {}]}},"
        OP("b")));
    assert_int_equal(t->n, 2);
    assert_int_equal(t->origin.other_events, 2);
    assert_true(t->origin.has_flows);
    trace_free(t);
    t = read_text(TRACE("{'cat': 'async', 'name': 'launch', 'ph': 's', 'id': 1}, " OP("a")));
    assert_true(t->origin.has_flows);
    trace_free(t);
}

static void test_steps(void **state)
{
    (void)state;
    struct trace *t = read_text(TRACE(
        EVENT("user_annotation", "ProfilerStep#7") ","
        EVENT("Operator", "ProfilerStep#1009") ","
        EVENT("cpu_op", "ProfilerStep") ","
        EVENT("user_annotation", "ProfilerStep#x") ","
        EVENT("kernel", "ProfilerStep#5") ","
        EVENT("strange", "ProfilerStep#6")));
    assert_int_equal(t->n, 6);
    assert_int_equal(t->events[0].kind, EVENT_STEP);
    assert_int_equal(t->events[0].step, 7);
    assert_int_equal(t->events[1].kind, EVENT_STEP);
    assert_int_equal(t->events[1].step, 1009);
    assert_int_equal(t->events[2].kind, EVENT_HOST_OP);
    assert_int_equal(t->events[3].kind, EVENT_ANNOTATION);
    assert_int_equal(t->events[3].step, -1);
    assert_int_equal(t->events[4].kind, EVENT_KERNEL);
    assert_int_equal(t->events[5].kind, EVENT_STEP);
    assert_int_equal(t->events[5].step, 6);
    trace_free(t);
}

struct time_case {
    const char *ts, *dur;
    int64_t start_ns, duration_ns;
};

static void test_times(void **state)
{
    (void)state;
    static const struct time_case cases[] = {
        {"1712195495519689.047", "0.5", INT64_C(1712195495519689047), 500},
        {"1623142623460111", "25", INT64_C(1623142623460111000), 25000},
        {"3846565156510.823", "230.868", INT64_C(3846565156510823), 230868},
        {"0", "0", 0, 0},
        {"0.001", "0.0019", 1, 1},
        {"'12.5'", "'7'", 12500, 7000},
        {"1.5e3", "2E-1", 1500000, 200},
        {"-5.25", "3", -5250, 3000},
        {"1", "1e13", 1000, INT64_C(10000000000000000)},
        {"4503599627370497.001", "null", INT64_C(4503599627370497001), 0},
        {"00000000000000000000012", "1", 12000, 1000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 TRACE("{'ph': 'X', 'cat': 'cpu_op', 'name': 'n', 'ts': %s, 'dur': %s}"), cases[i].ts,
                 cases[i].dur);
        struct trace *t = read_text(text);
        if (t->events[0].start_ns != cases[i].start_ns || t->events[0].duration_ns != cases[i].duration_ns)
            fail_msg("ts %s dur %s became %lld and %lld", cases[i].ts, cases[i].dur, (long long)t->events[0].start_ns,
                     (long long)t->events[0].duration_ns);
        trace_free(t);
    }
}

struct no_time_case {
    const char *time, *words;
};

/* A length that is no number, or below 0, and a time that cannot be: taken as 0 or as the largest one, work would be gone, or a
 * step as long as a life. Said is how many there were, and where the first. */
static void test_times_that_cannot_be(void **state)
{
    (void)state;
    static const struct no_time_case cases[] = {
        {"'ts': 1, 'dur': -3", "1 malformed event was skipped"},
        {"'ts': 1, 'dur': NaN", "1 malformed event was skipped"},
        {"'ts': 1, 'dur': -Infinity", "1 malformed event was skipped"},
        {"'ts': 1, 'dur': 'long'", "1 malformed event was skipped"},
        {"'ts': 1, 'dur': [4]", "1 malformed event was skipped"},
        {"'ts': 1, 'dur': 1e400", "1 of the skipped events is at times past the year 2116, or longer than 115 days"},
        {"'ts': 1, 'dur': 10000000000001", "longer than 115 days"},
        {"'ts': 1700000000001000000, 'dur': 1", "1 of the skipped events is at times past the year 2116"},
        {"'ts': 9007199254740993.001", "past the year 2116"},
        {"'ts': 1e400", "past the year 2116"},
        {"'ts': -1e400", "past the year 2116"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, TRACE(OP("a") ", {'ph': 'X', 'cat': 'kernel', 'name': 'k', %s}"), cases[i].time);
        struct trace *t = read_text(text);
        if (t->n != 1 || t->origin.events_skipped != 1)
            fail_msg("%s: %lld events, %lld skipped", cases[i].time, (long long)t->n, (long long)t->origin.events_skipped);
        assert_warned(t, cases[i].words);
        trace_free(t);
    }
}

/* Times in nanoseconds: no event is left, and the message says why. */
static void test_wrong_unit(void **state)
{
    (void)state;
    static const char text[] = TRACE("{'ph': 'M', 'name': 'process_name'},"
                                     "{'ph': 'X', 'cat': 'cpu_op', 'name': 'n', 'ts': 1700000000001000000, 'dur': 100000}");
    assert_refused(text, sizeof text - 1, "are they nanoseconds?");
}

/* An event without a time cannot be placed; it counts as malformed. */
static void test_no_time(void **state)
{
    (void)state;
    struct trace *t = read_text(TRACE(
        OP("a") ","
        "{'ph': 'X', 'cat': 'cpu_op', 'name': 'b'},"
        "{'ph': 'X', 'cat': 'cpu_op', 'name': 'c', 'ts': NaN}"));
    assert_int_equal(t->n, 1);
    assert_int_equal(t->origin.events_skipped, 2);
    assert_warned(t, "2 malformed events");
    trace_free(t);
}

static void test_tracks(void **state)
{
    (void)state;
    struct trace *t = read_text(TRACE(
        WITH_ARGS("kernel", "k", "'device': 2, 'stream': 7, 'correlation': 5") ","
        "{'ph': 'X', 'cat': 'Memcpy', 'name': 'm', 'pid': 2, 'tid': 'stream 7', 'ts': 1, 'dur': 1},"
        "{'ph': 'X', 'cat': 'Operator', 'name': 'o', 'pid': 2, 'tid': '25738', 'ts': 1, 'dur': 1},"
        "{'ph': 'X', 'cat': 'cpu_op', 'name': 'p', 'pid': '2', 'tid': 25738, 'ts': 1, 'args': {'stream': 9}},"
        "{'ph': 'X', 'cat': 'cuda_sync', 'name': 's', 'pid': 2, 'tid': 7, 'ts': 1, 'args': {'correlation': 8}},"
        "{'ph': 'X', 'cat': 'cpu_op', 'name': 'q', 'pid': 'main', 'tid': 'worker', 'ts': 1, 'dur': 1},"
        "{'ph': 'X', 'cat': 'cpu_op', 'name': 'r', 'pid': 'main', 'tid': 'other', 'ts': 1, 'dur': 1},"
        "{'ph': 'X', 'cat': 'gpu_memset', 'name': 'z', 'pid': 0, 'tid': 0, 'ts': 1, 'args': {'stream': '0x1f'}}"));
    assert_int_equal(t->n, 8);
    assert_int_equal(track_of(t, 0)->kind, TRACK_DEVICE_STREAM);
    assert_int_equal(track_of(t, 0)->pid, 2);
    assert_int_equal(track_of(t, 0)->tid, 7);
    assert_int_equal(t->events[1].track, t->events[0].track);
    assert_int_equal(track_of(t, 2)->kind, TRACK_HOST_THREAD);
    assert_int_equal(track_of(t, 2)->tid, 25738);
    assert_int_equal(t->events[3].track, t->events[2].track);
    assert_int_equal(track_of(t, 4)->kind, TRACK_HOST_THREAD);
    assert_int_equal(t->events[4].link, 8);
    assert_int_not_equal(t->events[5].track, t->events[6].track);
    assert_int_equal(track_of(t, 7)->tid, 31);
    trace_free(t);
}

/* Labels come after the events here, and before them in the second trace. */
static void test_labels(void **state)
{
    (void)state;
    static const char labels[] =
        "{'name': 'process_name', 'ph': 'M', 'ts': 0, 'pid': 10, 'tid': 0, 'args': {'name': 'python3'}},"
        "{'name': 'thread_name', 'ph': 'M', 'ts': 0, 'pid': 10, 'tid': '11', 'args': {'name': 'old'}},"
        "{'name': 'thread_name', 'ph': 'M', 'ts': 0, 'pid': 10, 'tid': '11', 'args': {'name': 'thread 11 (python)'}},"
        "{'name': 'thread_name', 'ph': 'M', 'ts': 0, 'pid': 0, 'tid': 'stream 7', 'args': {'name': 'stream 7'}}";
    static const char events[] =
        OP("a") ","
        "{'ph': 'X', 'cat': 'cpu_op', 'name': 'b', 'pid': 10, 'tid': 12, 'ts': 1},"
        "{'ph': 'X', 'cat': 'kernel', 'name': 'k', 'pid': 0, 'tid': 7, 'ts': 1},"
        "{'ph': 'X', 'cat': 'cpu_op', 'name': 'c', 'pid': 99, 'tid': 12, 'ts': 1}";
    for (int order = 0; order < 2; order++) {
        char text[2048];
        snprintf(text, sizeof text, "[%s, %s]", order ? labels : events, order ? events : labels);
        struct trace *t = read_text(text);
        assert_int_equal(t->n, 4);
        assert_string_equal(text_at(t, track_of(t, 0)->label), "thread 11 (python)");
        assert_string_equal(text_at(t, track_of(t, 1)->label), "python3");
        assert_string_equal(text_at(t, track_of(t, 2)->label), "stream 7");
        assert_int_equal(track_of(t, 3)->label, -1);
        trace_free(t);
    }
}

static void test_too_many_tracks(void **state)
{
    (void)state;
    enum { THREADS = 33000, ROOM = 96 };
    char *text = malloc(THREADS * ROOM + 16), *p = text;
    p += sprintf(p, "[");
    for (int i = 0; i < THREADS; i++)
        p += sprintf(p, "{'ph':'X','cat':'cpu_op','name':'a','pid':1,'tid':%d,'ts':1},", i);
    sprintf(p, "]");
    struct trace *t = read_text(text);
    assert_int_equal(t->n, THREADS);
    assert_int_equal(t->n_tracks, 32767);
    assert_int_equal(t->events[THREADS - 1].track, 32766);
    assert_warned(t, "32767 threads and streams");
    trace_free(t);
    free(text);
}

static void test_links(void **state)
{
    (void)state;
    struct trace *t = read_text(TRACE(
        WITH_ARGS("cuda_runtime", "cudaLaunchKernel", "'External id': 4, 'correlation': 9, 'Sequence number': 3") ","
        WITH_ARGS("kernel", "k", "'correlation': '9'") ","
        WITH_ARGS("gpu_memcpy", "m", "'External id': 4") ","
        WITH_ARGS("cpu_op", "aten::mm", "'Sequence number': 3, 'correlation': 8") ","
        WITH_ARGS("cuda_runtime", "r", "'correlation': 99999999999999999999999") ","
        WITH_ARGS("cuda_runtime", "r", "'correlation' : 1, 'correlation': 2")));
    static const int64_t links[] = {9, 9, -1, 3, INT64_MAX, 2};
    for (int i = 0; i < 6; i++)
        assert_int_equal(t->events[i].link, links[i]);
    trace_free(t);
}

static void test_kernel_args(void **state)
{
    (void)state;
    struct trace *t = read_text(TRACE(
        WITH_ARGS("kernel", "k", "'queued': 0, 'device': 0, 'stream': 7, 'correlation': 1, 'registers per thread': 38, "
                  "'shared memory': 400, 'blocks per SM': 0.625, 'grid': [50, 2, 1], 'block': [256, 1, 3], "
                  "'est. achieved occupancy %': 8.5") ","
        WITH_ARGS("kernel", "k", "'stream': 8, 'correlation': 2, 'registers per thread': 38, 'shared memory': 400, "
                  "'grid': [50, 2, 1], 'block': [256, 1, 3], 'est. achieved occupancy %': 8.5") ","
        WITH_ARGS("gpu_memcpy", "m", "'bytes': '2560'") ","
        WITH_ARGS("cuda_runtime", "hipMemcpy", "'size': '2560', 'stream': '0x0'") ","
        WITH_ARGS("kernel", "ncclKernel", "'Collective name': 'allreduce', 'In msg nelems': 2049000, 'Group size': 8, "
                  "'dtype': 'Float'") ","
        WITH_ARGS("kernel", "k", "'grid': 5, 'block': [1], 'occupancy': NaN, 'shared memory': 99999999999")));
    const struct event_args *a = args_of(t, 0);
    assert_int_equal(a->grid[0], 50);
    assert_int_equal(a->grid[1], 2);
    assert_int_equal(a->block[2], 3);
    assert_int_equal(a->registers, 38);
    assert_int_equal(a->shared_bytes, 400);
    assert_near(a->occupancy, 8.5, 0, "occupancy");
    assert_int_equal(a->bytes, -1);
    assert_int_equal(a->group_size, 0);
    assert_int_equal(t->events[1].args, t->events[0].args); /* kept once */
    assert_int_equal(args_of(t, 2)->bytes, 2560);
    assert_int_equal(args_of(t, 3)->bytes, 2560);
    a = args_of(t, 4);
    assert_string_equal(text_at(t, a->collective), "allreduce");
    assert_string_equal(text_at(t, a->dtype), "Float");
    assert_int_equal(a->elements, 2049000);
    assert_int_equal(a->group_size, 8);
    assert_int_equal(a->registers, -1);
    a = args_of(t, 5);
    assert_int_equal(a->grid[0], 0);
    assert_int_equal(a->block[0], 1);
    assert_int_equal(a->block[1], 0);
    assert_near(a->occupancy, -1, 0, "occupancy");
    assert_int_equal(a->shared_bytes, INT32_MAX);
    trace_free(t);
}

static void test_op_args(void **state)
{
    (void)state;
    struct trace *t = read_text(TRACE(
        WITH_ARGS("cpu_op", "aten::mm", "'Concrete Inputs': ['', '[0, 1]'], 'Input type': ['float', 'Scalar'], "
                  "'Input Strides': [[5, 1]], 'Input Dims': [[32, 256], []], 'Ev Idx': 3") ","
        WITH_ARGS("cpu_op", "aten::add", "'Input Dims': [\n  [\n    32,\n    256\n  ],\n  []\n], 'Call stack': '', "
                  "'Module Hierarchy': 'm'") ","
        WITH_ARGS("cpu_op", "aten::add", "'Call stack': 'a.py(3): f;b', 'Module Hierarchy': 'm'") ","
        WITH_ARGS("cpu_op", "aten::add", "'Call stack': '', 'Module Hierarchy': ''") ","
        "{'ph': 'X', 'cat': 'cpu_op', 'name': 'b', 'args': null, " COMMON "}"));
    const struct event_args *a = args_of(t, 0);
    assert_string_equal(text_at(t, a->dims), "[[32, 256], []]");
    assert_string_equal(text_at(t, a->types), "[\"float\", \"Scalar\"]");
    assert_string_equal(text_at(t, a->values), "[\"\", \"[0, 1]\"]");
    assert_int_equal(a->stack, -1);
    assert_int_equal(args_of(t, 1)->dims, a->dims); /* written over several lines, it is the same */
    assert_string_equal(text_at(t, args_of(t, 1)->stack), "m");
    assert_string_equal(text_at(t, args_of(t, 2)->stack), "a.py(3): f;b");
    assert_int_equal(t->events[3].args, -1);
    assert_int_equal(t->events[4].args, -1);
    assert_true(t->origin.has_shapes);
    assert_true(t->origin.has_stacks);
    trace_free(t);
}

static void test_long_texts_are_shortened(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    char *fill = malloc(LONG + 1), *text = malloc(4 * LONG);
    memset(fill, '7', LONG);
    fill[LONG] = '\0';
    fill[1020] = '\xc3';
    fill[1021] = '\xa9'; /* a letter of two bytes where the dots begin */
    snprintf(
        text, 4 * LONG,
        TRACE("{'ph': 'X', 'cat': 'cpu_op', 'name': '%s', 'ts': 1, 'args': {'Call stack': '%s', "
              "'Input Dims': [%s]}}"),
        fill, fill, fill + 2000);
    struct trace *t = read_text(text);
    assert_int_equal(strlen(name_of(t, 0)), 16384);
    assert_int_equal(strlen(text_at(t, args_of(t, 0)->stack)), 4096);
    assert_int_equal(strlen(text_at(t, args_of(t, 0)->dims)), 1024);
    assert_string_equal(text_at(t, args_of(t, 0)->dims) + 1021, "...");
    trace_free(t);
    snprintf(text, 4 * LONG,
             TRACE("{'ph': 'X', 'cat': 'cpu_op', 'name': 'a', 'ts': 1, 'args': {'dtype': '%s'}}"),
             fill);
    t = read_text(text);
    assert_int_equal(strlen(text_at(t, args_of(t, 0)->dtype)), 1023); /* not inside of the letter */
    trace_free(t);
    free(fill);
    free(text);
}

#define MEMORY(ts, args) \
    "{'ph': 'i', 's': 't', 'name': '[memory]', 'pid': 10, 'tid': 11, 'ts': " ts ", 'args': {" args "}}"

static void test_memory(void **state)
{
    (void)state;
    struct trace *t = read_text(TRACE(
        MEMORY("1", "'Total Reserved': 900, 'Total Allocated': 500, 'Bytes': 144, 'Device Id': 0, 'Device Type': 1") ","
        MEMORY("2", "'Total Reserved': 700, 'Total Allocated': 400, 'Bytes': -9, 'Device Id': 0, 'Device Type': 1") ","
        MEMORY("5", "'Bytes': -4, 'Device Id': -1, 'Device Type': 0") ","
        MEMORY("3", "'Bytes': 10, 'Device Id': -1, 'Device Type': 0") ","
        MEMORY("4", "'Bytes': 7, 'Device Id': 1, 'Device Type': 1") ","
        MEMORY("4", "'Bytes': 3, 'Device Id': 1, 'Device Type': 1")));
    static const double values[] = {500, 400, 6, 10, 7, 10};
    static const char *const names[] = {"memory device 0", "memory device 0", "memory host",
                                        "memory host",     "memory device 1", "memory device 1"};
    assert_int_equal(t->n, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(t->events[i].kind, EVENT_COUNTER);
        assert_int_equal(t->events[i].args, -1);
        assert_near(t->events[i].value, values[i], 0, "memory");
        assert_string_equal(name_of(t, i), names[i]);
        assert_int_equal(track_of(t, i)->kind, TRACK_HOST_THREAD);
    }
    assert_true(t->origin.has_memory);
    assert_int_equal(t->origin.reserved_bytes, 900);
    trace_free(t);
}

#define DEVICES \
    "'deviceProperties': [{'id': 1, 'name': 'NVIDIA H200', 'totalGlobalMem': 150109880320, 'computeMajor': 9, " \
    "'computeMinor': 1, 'maxThreadsPerMultiprocessor': 2048, 'warpSize': 32, 'numSms': 132, 'odd': [{}]}, {'id': '3'}]"
#define RANKS "'distributedInfo': {'backend': 'nccl', 'rank': 3, 'pg_config': [{'rank': 9}], 'world_size': '8'}"

static void check_metadata(const char *text)
{
    struct trace *t = read_text(text);
    assert_int_equal(t->n_devices, 2);
    assert_int_equal(t->devices[0].id, 1);
    assert_string_equal(text_at(t, t->devices[0].name), "NVIDIA H200");
    assert_int_equal(t->devices[0].memory_bytes, INT64_C(150109880320));
    assert_int_equal(t->devices[0].major, 9);
    assert_int_equal(t->devices[0].minor, 1);
    assert_int_equal(t->devices[0].multiprocessors, 132);
    assert_int_equal(t->devices[0].threads_per_multiprocessor, 2048);
    assert_int_equal(t->devices[0].warp, 32);
    assert_int_equal(t->devices[1].id, 3);
    assert_int_equal(t->devices[1].name, -1);
    assert_int_equal(t->origin.rank, 3);
    assert_int_equal(t->origin.world_size, 8);
    assert_string_equal(text_at(t, t->origin.backend), "nccl");
    trace_free(t);
}

static void test_metadata(void **state)
{
    (void)state;
    check_metadata("{" DEVICES ", " RANKS ", 'traceEvents': [" OP("a") "]}");
    check_metadata("{'traceEvents': [" OP("a") "], " DEVICES ", " RANKS "}");
    check_metadata("{'x': {'traceEvents': [1]}, " RANKS ", 'traceEvents': [" OP("a") "], " DEVICES "}");
    struct trace *t = read_text("[" OP("a") "]");
    assert_int_equal(t->n_devices, 0);
    assert_int_equal(t->origin.rank, -1);
    assert_int_equal(t->origin.world_size, 0);
    assert_int_equal(t->origin.backend, -1);
    assert_int_equal(t->origin_ns, 0);
    assert_string_equal(t->origin.path, "text");
    trace_free(t);
}

static void test_rank_in_name(void **state)
{
    (void)state;
    assert_int_equal(metadata_rank("runs/trace_rank3.json.gz"), 3);
    assert_int_equal(metadata_rank("rank_12_trace.json"), 12);
    assert_int_equal(metadata_rank("a/Rank-4.json"), 4);
    assert_int_equal(metadata_rank("rank_non_gpu_rank7.json"), 7);
    assert_int_equal(metadata_rank("rank5/trace.json"), -1);
    assert_int_equal(metadata_rank("frank3.json"), -1);
    assert_int_equal(metadata_rank("trace_3.json"), -1);
    assert_int_equal(metadata_rank("rank99999999999999999999.json"), -1);
    struct trace *t = NULL;
    struct error err;
    static const char with[] = "{" RANKS ", 'traceEvents': [" OP("a") "]}", without[] = "[" OP("a") "]";
    char *quoted = with_quotes(without, strlen(without));
    assert_ok(import_read_memory(&t, "rank5.json", quoted, strlen(without), &err), err);
    assert_int_equal(t->origin.rank, 5);
    trace_free(t);
    free(quoted);
    quoted = with_quotes(with, strlen(with));
    assert_ok(import_read_memory(&t, "rank5.json", quoted, strlen(with), &err), err);
    assert_int_equal(t->origin.rank, 3);
    free(quoted);
    trace_free(t);
}

/* ---- ranks by the names of all files ---- */

static struct trace *named(const char *path, const char *text)
{
    struct trace *t = NULL;
    struct error err;
    char *quoted = with_quotes(text, strlen(text));
    assert_ok(import_read_memory(&t, path, quoted, strlen(text), &err), err);
    free(quoted);
    return t;
}

/* The ranks that files of these names get: first to third are as wanted, or none has one. */
static void check_numbers(const char *const paths[3], const char *text, bool numbered, const int ranks[3])
{
    struct trace *traces[3];
    for (int i = 0; i < 3; i++)
        traces[i] = named(paths[i], text);
    import_number_ranks(traces, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(traces[i]->origin.rank, numbered ? ranks[i] : -1);
        trace_free(traces[i]);
    }
}

static void test_ranks_by_names_together(void **state)
{
    (void)state;
    static const char plain[] = "[" OP("a") "]", five[] = "{'distributedInfo': {'world_size': 5}, 'traceEvents': [" OP("a") "]}",
                      group[] = "[" WITH_ARGS("kernel", "ncclDevKernel_AllReduce", "'Collective name': 'allreduce', 'Group size': 16") "]";
    static const int in_order[] = {0, 1, 2}, turned[] = {2, 0, 1};
    static const struct { const char *paths[3], *text; bool numbered; const int *ranks; } cases[] = {
        {{"a/worker0_step_12.1694.pt.trace.json", "a/worker1_step_12.1701.pt.trace.json", "a/worker2_step_12.1699.pt.trace.json"}, plain, true, in_order},
        {{"gpu2.json", "gpu0.json", "gpu_1.json"}, plain, true, turned},
        {{"gpu1.json", "gpu2.json", "gpu3.json"}, plain, false, NULL},          /* which is the first? */
        {{"gpu0.json", "gpu1.json", "gpu1-b.json"}, plain, false, NULL},
        {{"gpu0.json", "gpu1.json", "two.json"}, plain, false, NULL},
        {{"workers0.json", "workers1.json", "workers2.json"}, plain, false, NULL},
        {{"trace_0.json", "trace_1.json", "trace_2.json"}, plain, false, NULL}, /* perhaps one process, recorded three times */
        {{"gpu0.json", "gpu1.json", "gpu2.json"}, five, false, NULL},           /* of one machine of several */
        {{"gpu0.json", "gpu1.json", "gpu2.json"}, group, false, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_numbers(cases[i].paths, cases[i].text, cases[i].numbered, cases[i].ranks);
}

/* What one of them says stays, and the others are not guessed beside it. */
static void test_said_ranks_stay(void **state)
{
    (void)state;
    struct trace *traces[] = {named("gpu0.json", "{" RANKS ", 'traceEvents': [" OP("a") "]}"), named("gpu1.json", "[" OP("a") "]")};
    import_number_ranks(traces, 2);
    assert_int_equal(traces[0]->origin.rank, 3);
    assert_int_equal(traces[1]->origin.rank, -1);
    trace_free(traces[0]);
    trace_free(traces[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_flows),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_times_that_cannot_be),
        cmocka_unit_test(test_wrong_unit),
        cmocka_unit_test(test_no_time),
        cmocka_unit_test(test_tracks),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_too_many_tracks),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_kernel_args),
        cmocka_unit_test(test_op_args),
        cmocka_unit_test(test_long_texts_are_shortened),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_rank_in_name),
        cmocka_unit_test(test_ranks_by_names_together),
        cmocka_unit_test(test_said_ranks_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
