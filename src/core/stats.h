/* Statistics of measurements. */
#ifndef HONE_CORE_STATS_H
#define HONE_CORE_STATS_H

void stats_sort(double *values, int n);                                 /* ascending */
double stats_percentile(const double *sorted, int n, double part);      /* part 0.5 is the median; n is at least 1 */

/* Student's t of so many degrees of freedom (1 at least): `part` of it lies below; part is 0.5 to 1, and below 1. */
double stats_student(int freedom, double part);

#endif
