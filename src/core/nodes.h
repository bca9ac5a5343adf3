/* NUMA nodes: which CPUs have which memory near. Read from /sys; a machine without that has one. */
#ifndef HONE_CORE_NODES_H
#define HONE_CORE_NODES_H

#include <stdbool.h>
#include <stddef.h>

enum { NODES_CPUS = 4096, NODES_MOST = 64 };

/* CPUs, a bit each, as sched_setaffinity takes them. */
struct cpus { unsigned long bits[NODES_CPUS / (8 * sizeof(unsigned long))]; };

struct nodes {
    int n;                              /* with CPUs that this thread may run on; 1 where nothing is known */
    int cpus;                           /* of all of them */
    int first[NODES_MOST + 1];          /* how many CPUs the nodes before have; behind the last: all */
    struct cpus of[NODES_MOST];
};

/* `root` stands before /sys: "" but for tests. */
void nodes_read(struct nodes *out, const char *root);
/* The node of one of so many threads as there are CPUs: the first node has as many as it has CPUs, then the next. */
int nodes_of_thread(const struct nodes *n, int thread);
/* This thread runs on the CPUs of a node from now on; where the system does not let it, it stays as it was. */
void nodes_bind(const struct nodes *n, int node);

/* A list as the kernel writes it, "0-3,8,10-11": sets its bits. False: it is none. */
bool cpus_parse(struct cpus *out, const char *text);
bool cpus_has(const struct cpus *c, int cpu);

#endif
