/* Order statistics of measurements. */
#ifndef HONE_CORE_STATS_H
#define HONE_CORE_STATS_H

void stats_sort(double *values, int n);                                 /* ascending */
double stats_percentile(const double *sorted, int n, double part);      /* part 0.5 is the median; n is at least 1 */

#endif
