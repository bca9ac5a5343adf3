/* What a meeting of threads costs: bench-meet [THREADS]. The least of 15 times of 1000 in a row, for teams of 2, 4, 8... up to all cores. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/system.h"
#include "core/team.h"

enum { TIMES = 15, MEETINGS = 1000 };

static void meet(void *team, int member)
{
    (void)member;
    for (int i = 0; i < MEETINGS; i++)
        team_barrier(team);
}

static void nothing(void *team, int member) { (void)team, (void)member; }

static double least_ns(struct team *t, team_fn *fn, int each, int runs)
{
    double least = 0;
    for (int i = 0; i < TIMES; i++) {
        const int64_t start = clock_ns();
        for (int k = 0; k < runs; k++)
            team_run(t, fn, t);
        const double ns = (double)(clock_ns() - start) / each;
        least = i == 0 || ns < least ? ns : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    const int cores = argc > 1 ? atoi(argv[1]) : system_cores(sched_getaffinity);
    printf("threads   ns a meeting   ns a run that does nothing\n");
    for (int n = 2; n <= cores; n = n < cores && 2 * n > cores ? cores : 2 * n) {
        struct team *t;
        struct error err;
        if (team_new(&t, n, &err) != OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        printf("%7d %14.0f %28.0f\n", n, least_ns(t, meet, MEETINGS, 1), least_ns(t, nothing, MEETINGS, MEETINGS));
        fflush(stdout);
        team_free(t);
    }
    return 0;
}
