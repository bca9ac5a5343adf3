/* Statistics of measurements. */
#ifndef HONE_CORE_STATS_H
#define HONE_CORE_STATS_H

#include <stdbool.h>

void stats_sort(double *values, int n);                                 /* ascending */
double stats_percentile(const double *sorted, int n, double part);      /* part 0.5 is the median; n is at least 1 */

/* Student's t of so many degrees of freedom (1 at least): `part` of it lies below; part is 0.5 to 1, and below 1. */
double stats_student(int freedom, double part);

/* Times that were measured while recording them took time, too, without that: one factor for all, but what ran at its floor was not held up, and stays. */
struct timed { double us, floor_us; };
double timed_scaled(struct timed t, double factor);
/* The factor with which all of them, and `other_us` between them, take `whole_us`. *alike: floors alone are more, or all took less than that: they are
 * scaled, floors or not. */
double timed_factor(const struct timed *list, int n, double other_us, double whole_us, bool *alike);

#endif
