/* What the hook in a watched program leaves behind, read back: numbers of a rank, ranks of a folder, how far processes got. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "watch/watch.h"

static const char one[] =
    "{\"format\": 1, \"rank\": 0, \"world_size\": 4, \"ranks_here\": 2, \"torch\": \"2.1.0\", \"python\": \"3.9.2\", \"device\": {\"kind\": \"cuda\", \"peak_bytes\": 5e9},"
    "\"steps\": 39, \"steps_by\": \"Optimizer.step\", \"backwards_per_step\": 4, \"cycle\": 2, \"finished\": true, \"ended\": false,"
    "\"undisturbed\": {\"first\": 10, \"steps\": 20, \"step_us\": 1500.5, \"median_us\": 1400, \"fastest_us\": 1000, \"slowest_us\": 3000},"
    "\"recorded\": [{\"kind\": \"stacks\", \"first\": 36, \"steps\": 3, \"step_us\": 9000}, {\"kind\": \"shapes\", \"first\": 31, \"steps\": 4, \"step_us\": 4000}],"
    "\"notes\": [\"a\\u001b[31m note\", 7], \"trial\": {\"status\": \"done\"}}";

struct fixture {
    struct arena arena;
    char folder[64];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/hone-watched-XXXXXX");
    *state = f;
    return mkdtemp(f->folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    fs_remove_tree(f->folder, NULL);
    arena_release(&f->arena);
    free(f);
    return 0;
}

static enum status parse(struct fixture *f, struct watched_rank *r, const char *text, struct error *err)
{
    struct json_t *trial;
    const enum status st = watched_parse(r, &trial, &f->arena, "watch.json", text, strlen(text), err);
    json_decref(trial);
    return st;
}

static void test_fields(void **state)
{
    struct watched_rank r;
    struct error err;
    assert_int_equal(parse(*state, &r, one, &err), OK);
    assert_true(r.world_size == 4 && r.ranks_here == 2);
    assert_string_equal(r.device, "cuda");
    assert_string_equal(r.steps_by, "Optimizer.step");
    assert_string_equal(r.failure, "");
    assert_true(r.finished && !r.ended && !r.stopped && r.peak_bytes == 5e9);
    assert_int_equal(r.backwards, 4);
    assert_int_equal(r.calls, 2);
    assert_true(r.undisturbed.first == 10 && r.undisturbed.steps == 20 && r.undisturbed.step_us == 1500.5 && r.undisturbed.fastest_us == 1000);
    assert_true(r.shapes.steps == 4 && r.shapes.step_us == 4000 && r.stacks.steps == 3 && r.stacks.first == 36);
    assert_int_equal(r.n_notes, 1);
    assert_null(strchr(r.notes[0], '\033'));
}

/* A window that was not finished is none; what is no number is unknown. */
static void test_what_is_missing(void **state)
{
    struct watched_rank r;
    struct error err;
    assert_int_equal(parse(*state, &r, "{\"format\": 1, \"rank\": 5, \"undisturbed\": {\"steps\": 20}, \"recorded\": [{\"kind\": \"shapes\", \"step_us\": 4}]}",
                           &err), OK);
    assert_true(r.rank == 5 && !r.undisturbed.steps && !r.shapes.steps && !r.stacks.steps && !r.finished && r.steps == 0);
    assert_string_equal(r.torch, "");
}

static void test_refusals(void **state)
{
    struct watched_rank r;
    struct error err;
    assert_int_equal(parse(*state, &r, "{\"format\": 1", &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "'watch.json' line 1: not JSON"));
    assert_int_equal(parse(*state, &r, "{\"format\": 2, \"rank\": 0}", &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "format is not 1"));
    assert_int_equal(parse(*state, &r, "{\"format\": 1, \"rank\": -1}", &err), BAD_INPUT);
    assert_non_null(strstr(err.text, "no 'rank'"));
}

static void put(const struct fixture *f, const char *within, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->folder, within);
    assert_int_equal(fs_make_dirs(path, NULL), OK);
    snprintf(path, sizeof path, "%s/%s/%s", f->folder, within, name);
    assert_int_equal(fs_write_synced(path, text, strlen(text), NULL), OK);
}

static void test_ranks(void **state)
{
    struct fixture *f = *state;
    struct watched w;
    struct error err;
    assert_int_equal(watched_read(&w, &f->arena, f->folder, &err), OK);
    assert_true(w.n == 0 && !watched_all_finished(&w));
    put(f, "rank10", "watch.json", one);
    put(f, "rank2", "watch.json", one);
    put(f, "rank3", "other.json", one);         /* it has begun */
    put(f, "ranking", "watch.json", one);       /* somebody else's */
    assert_int_equal(watched_read(&w, &f->arena, f->folder, &err), OK);
    assert_true(w.n == 2 && w.ranks[0].rank == 2 && w.ranks[1].rank == 10 && w.trial && watched_all_finished(&w));
    watched_release(&w);
    put(f, "rank2", "watch.json", "{\"format\": 1, \"rank\": 2, \"world_size\": 2}");
    assert_int_equal(watched_read(&w, &f->arena, f->folder, &err), OK);
    assert_true(w.n == 2 && !watched_all_finished(&w));
    watched_release(&w);
    put(f, "rank2", "watch.json", "[]");
    assert_int_equal(watched_read(&w, &f->arena, f->folder, &err), BAD_INPUT);
}

/* Killed while a switch was tried: the file says "running" for ever. */
static void test_killed_trial(void **state)
{
    struct fixture *f = *state;
    struct watched w;
    struct error err;
    put(f, "rank0", "watch.json", "{\"format\": 1, \"rank\": 0, \"steps\": 99, \"trial\": {\"status\": \"running\", \"switches\": ["
        "{\"name\": \"a\", \"state\": \"kept\"}, 7, {\"name\": \"b\", \"state\": \"running\"}, {\"name\": \"c\"}]}}");
    assert_int_equal(watched_read(&w, &f->arena, f->folder, &err), OK);
    watched_end_trial(&w);
    char *said = json_dumps(json_object_get(w.trial, "switches"), JSON_COMPACT);
    assert_string_equal(said, "[{\"name\":\"a\",\"state\":\"kept\"},7,{\"name\":\"b\",\"state\":\"cut short\",\"why\":\"the program was gone\"},{\"name\":\"c\"}]");
    free(said);
    watched_release(&w);
    watched_end_trial(&w);                      /* none was made */
}

static void test_reach(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(watched_reach(f->folder), REACHED_NOTHING);
    put(f, "processes", "100", "python\n");
    assert_int_equal(watched_reach(f->folder), REACHED_PYTHON);
    put(f, "processes", "102", "step\n");
    put(f, "processes", "101", "torch\n");
    assert_int_equal(watched_reach(f->folder), REACHED_STEP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fields, set_up, tear_down),   cmocka_unit_test_setup_teardown(test_what_is_missing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down), cmocka_unit_test_setup_teardown(test_ranks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_trial, set_up, tear_down), cmocka_unit_test_setup_teardown(test_reach, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
