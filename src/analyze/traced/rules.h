/* The rules on traces, one function each; rules.c has the table. */
#ifndef HONE_ANALYZE_TRACED_RULES_H
#define HONE_ANALYZE_TRACED_RULES_H

#include "analyze/traced/study.h"

trace_rule_fn trace_rule_host_sync, trace_rule_device_to_host_copy, trace_rule_constant_rebuilt, trace_rule_unfused_optimizer,
    trace_rule_no_mixed_precision, trace_rule_no_flash_attention, trace_rule_pageable_copies, trace_rule_tiny_host_tensors,
    trace_rule_data_stall, trace_rule_eval_share, trace_rule_small_batch, trace_rule_launch_bound, trace_rule_host_bound,
    trace_rule_per_head_attention, trace_rule_unfused_projections, trace_rule_zero_grad_fills, trace_rule_allocator_churn,
    trace_rule_misaligned_dims, trace_rule_recompute, trace_rule_exposed_comm, trace_rule_memory_limit,
    trace_rule_low_occupancy, trace_rule_no_clipping, trace_rule_layout_copies, trace_rule_small_collectives, trace_rule_threads_unused, trace_rule_cpu_oversubscribed,
    trace_rule_anomaly_mode, trace_rule_unused_gradients, trace_rule_sample_loop, trace_rule_emulated_precision;
bool cpu_small_batch(struct study *s, struct charge *c);        /* small-batch where there is no device */

#endif
