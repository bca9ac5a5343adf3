/* How a GPU is: from a management library, over several looks, and where there is none. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/gpu.h"
#include "support/check.h"

static const char ADDRESS[] = "0000:1b:00.0";

static void test_no_library(void **state)
{
    (void)state;
    struct nvml *n = NULL;
    struct error err;
    assert_int_equal(nvml_open(&n, "/no/such/libnvidia-ml.so.1", &err), CANNOT);
    assert_string_equal(err.text, "NVIDIA's management library '/no/such/libnvidia-ml.so.1' is not there");
    assert_null(n);
    assert_int_equal(nvml_open(&n, HONE_NOT_NVML, &err), CANNOT);      /* a library, and another one */
    assert_non_null(strstr(err.text, "cannot be used"));
    nvml_close(NULL);
}

/* Also on a machine with a GPU: none is at this address. */
static void test_no_gpu(void **state)
{
    (void)state;
    struct gpu_state s;
    struct error err;
    assert_int_equal(gpu_look(&s, "no address", &err), CANNOT);
    assert_non_null(strstr(err.text, "management library"));
    struct gpu_watch w;
    char words[WATCH_WORDS];
    gpu_watch_begin(&w, "no address");
    assert_false(gpu_watch_look(&w, NULL));
    assert_false(gpu_watch_look(&w, NULL));
    assert_true(w.looks == 0 && !w.address);
    assert_false(gpu_watch_warning(&w, words));
    assert_true(isnan(gpu_watch_busy_percent(&w)) && isnan(gpu_watch_watts(&w)));
    gpu_watch_begin(&w, NULL);
    assert_false(gpu_watch_look(&w, NULL));
    assert_int_equal(w.looks, 0);
}

static void test_looks(void **state)
{
    (void)state;
    struct nvml *n;
    struct gpu_state s;
    struct gpu_watch w;
    struct error err;
    char words[WATCH_WORDS];
    assert_int_equal(nvml_open(&n, HONE_FAKE_NVML, &err), OK);
    assert_int_equal(nvml_look(n, &s, "0000:ff:00.0", &err), CANNOT);
    assert_non_null(strstr(err.text, "knows no GPU at '0000:ff:00.0'"));
    assert_int_equal(nvml_look(n, &s, ADDRESS, &err), OK);
    assert_true(s.sm_mhz == 1980 && s.sm_most_mhz == 1980 && s.watts == 698.5 && s.watts_most == 700 && s.celsius == 83);
    assert_true(isnan(s.busy_percent) && s.used_bytes == 1e9 && s.total_bytes == 150e9);
    assert_int_equal(s.slowed, SLOWED_BY_POWER | SLOWED_BY_HEAT);
    gpu_watch_begin(&w, ADDRESS);
    gpu_watch_add(&w, &s);
    assert_int_equal(nvml_look(n, &s, ADDRESS, &err), OK);
    gpu_watch_add(&w, &s);
    assert_true(gpu_watch_warning(&w, words));
    assert_string_equal(words, "The clock of the GPU fell from 1980 to 1680 MHz while this was measured at up to 83 °C, held down by its "
                               "power limit and heat");
    assert_true(gpu_watch_watts(&w) == 698.5 && isnan(gpu_watch_busy_percent(&w)));
    nvml_close(n);
}

static void test_listed(void **state)
{
    (void)state;
    char folder[] = "/tmp/hone-gpus-XXXXXX", path[128], name[GPU_NAME];
    assert_non_null(mkdtemp(folder));
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_false(gpu_listed(folder, name));                 /* a driver without a GPU */
    assert_false(gpu_listed("/no/such/folder", name));
    snprintf(path, sizeof path, "%s/0000:1b:00.0", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(gpu_listed(folder, name));
    strcat(path, "/information");
    FILE *f = fopen(path, "w");
    fputs("IRQ: 12\nModel: \t\t NVIDIA H200\nVideo BIOS: 1\n", f);
    fclose(f);
    assert_true(gpu_listed(folder, name));
    assert_string_equal(name, "NVIDIA H200");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);                  /* hidden */
    assert_false(gpu_listed(folder, name));
    unsetenv("CUDA_VISIBLE_DEVICES");
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    rmdir(folder);
}

static struct gpu_watch watched(double first, double second, unsigned slowed)
{
    struct gpu_watch w;
    gpu_watch_begin(&w, ADDRESS);
    gpu_watch_add(&w, &(struct gpu_state){.sm_mhz = first, .celsius = NAN, .watts = NAN, .busy_percent = 40, .used_bytes = 5});
    gpu_watch_add(&w, &(struct gpu_state){.sm_mhz = second, .celsius = NAN, .watts = 100, .busy_percent = 60, .used_bytes = 3,
                                          .slowed = slowed});
    return w;
}

static void test_warnings(void **state)
{
    (void)state;
    char words[WATCH_WORDS];
    struct gpu_watch w = watched(1980, 1965, 0);
    assert_false(gpu_watch_warning(&w, words));             /* a step of the clock */
    assert_true(gpu_watch_busy_percent(&w) == 50 && gpu_watch_watts(&w) == 100 && w.used_most_bytes == 5);
    w = watched(1980, 1500, 0);
    assert_true(gpu_watch_warning(&w, words));
    assert_string_equal(words, "The clock of the GPU fell from 1980 to 1500 MHz while this was measured");
    w = watched(1980, 1980, SLOWED_BY_HARDWARE);
    assert_true(gpu_watch_warning(&w, words));
    assert_string_equal(words, "The clock of the GPU was held down by its hardware while this was measured (1980 MHz at the least)");
    w = watched(1500, 1980, 0);                             /* it rose: it had been idle */
    assert_false(gpu_watch_warning(&w, words));
    w = watched(NAN, NAN, 0);
    assert_false(gpu_watch_warning(&w, words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_library), cmocka_unit_test(test_no_gpu), cmocka_unit_test(test_looks),
                                       cmocka_unit_test(test_warnings), cmocka_unit_test(test_listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
