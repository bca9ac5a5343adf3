/* What tests ask of the NCCL in fake_nccl.cu, beside what hone does. */
#ifndef HONE_TESTS_FAKE_NCCL_H
#define HONE_TESTS_FAKE_NCCL_H

#ifdef __cplusplus
extern "C" {
#endif

void fake_nccl_lose(void);          /* the other ranks: sums end no more */
int fake_nccl_graphs(void);         /* with sums in them, that are still there */

#ifdef __cplusplus
}
#endif

#endif
