/* Says what bounds the steps of a trace of the PyTorch profiler:
 *     cc analyze.c $(pkg-config --cflags --libs hone) -o analyze && ./analyze trace.json.gz */
#include <hone.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    hone_analysis *a;
    char *screen = NULL;
    int severe = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: %s TRACE...\n", argv[0]);
        return HONE_BAD_INPUT;
    }
    hone_status status = hone_analyze(&a, (const char *const *)argv + 1, argc - 1, NULL);
    if (status != HONE_OK) {
        fprintf(stderr, "%s\n", hone_message());
        return status;
    }
    status = hone_analysis_screen(a, 0, &screen);
    if (status == HONE_OK)
        status = hone_analysis_count(a, "high", &severe);
    if (status == HONE_OK)
        printf("%s\nfindings of high severity or more: %d\n", screen, severe);
    hone_free(screen);
    hone_analysis_free(a);
    return status;
}
