/* Trains a model step by step, and measures where the time of a step goes:
 *     cc train.c $(pkg-config --cflags --libs hone) -o train && ./train quickstart 100 */
#include <hone.h>
#include <stdio.h>
#include <stdlib.h>

static int on_step(void *context, const hone_step *s)
{
    const int *every = context;
    if (s->step % *every == 0)
        printf("step %lld: loss %.4f, gradient norm %.2f\n", (long long)s->step, s->loss, s->gradient_norm);
    return 0;                   /* anything else: that is enough */
}

static void need(hone_status status, const char *what)
{
    if (status == HONE_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, hone_message());
    exit(status);
}

int main(int argc, char **argv)
{
    const char *settings[] = {"train.steps=200", "data.chars=200000"};
    const int64_t steps = argc > 2 ? atoll(argv[2]) : 100;
    int every = steps < 5 ? 1 : (int)(steps / 5);
    hone_config *config;
    hone_run *run;
    double before, after;
    char *report;

    printf("hone %s\n", hone_version());
    need(hone_config_open(&config, argc > 1 ? argv[1] : "quickstart", settings, 2), "config");
    need(hone_run_open(&run, config), "run");
    need(hone_run_evaluate(run, &before), "evaluate");
    need(hone_run_train(run, steps, on_step, &every), "train");
    need(hone_run_evaluate(run, &after), "evaluate");
    printf("after %lld steps: validation loss %.4f, before %.4f\n", (long long)hone_run_steps(run), after, before);
    hone_run_free(run);

    need(hone_profile(config, 5, NULL, &report), "profile");
    printf("profile: %s\n", report[0] == '{' ? "report.json as text" : "?");
    hone_free(report);
    hone_config_free(config);
    return after < before ? 0 : 1;
}
