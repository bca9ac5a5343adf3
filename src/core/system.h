/* What the system lets this process have: cores and memory, also inside a container. */
#ifndef HONE_CORE_SYSTEM_H
#define HONE_CORE_SYSTEM_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* CPUs that this process may run on; at least 1. `affinity` is sched_getaffinity, or what a test puts in its place. */
typedef int affinity_fn(pid_t pid, size_t bytes, cpu_set_t *set);
int system_cores(affinity_fn *affinity);

/* Whether a control group limits the CPU time of this process, to however much: `docker run --cpus`, a limit of Kubernetes. `root` as below. */
bool system_has_quota(const char *root);

/* Threads of the whole system that run or wait for a core, the one that asks among them; 0: unknown. `root` as below. */
int system_running(const char *root);

/* Memory that can be had now without swapping, in bytes: what the machine has free, and no more than is left below the limits of the
 * process's control group and of all groups above it. Pages of files, which the kernel takes back when it must, count as free, as
 * they do for the machine. SIZE_MAX: unknown. `root` stands before /proc and /sys: "" but for tests. */
size_t system_free_bytes(const char *root);

#endif
