/* The table of rules on traces. Order matters only between findings of equal gain. */
#include "analyze/traced/rules.h"

const struct trace_rule trace_rule_table[] = {
    {"data-stall", trace_rule_data_stall},
    {"eval-share", trace_rule_eval_share},
    {"per-head-attention", trace_rule_per_head_attention},
    {"no-flash-attention", trace_rule_no_flash_attention},
    {"no-mixed-precision", trace_rule_no_mixed_precision},
    {"unfused-optimizer", trace_rule_unfused_optimizer},
    {"unfused-projections", trace_rule_unfused_projections},
    {"misaligned-dims", trace_rule_misaligned_dims},
    {"recompute", trace_rule_recompute},
    {"anomaly-mode", trace_rule_anomaly_mode},       /* before host-sync, which leaves its reads alone */
    {"unused-gradients", trace_rule_unused_gradients},
    {"small-collectives", trace_rule_small_collectives},
    {"exposed-comm", trace_rule_exposed_comm},
    {"tiny-host-tensors", trace_rule_tiny_host_tensors},
    {"pageable-copies", trace_rule_pageable_copies},
    {"host-sync", trace_rule_host_sync},
    {"device-to-host-copy", trace_rule_device_to_host_copy},
    {"allocator-churn", trace_rule_allocator_churn},
    {"constant-rebuilt", trace_rule_constant_rebuilt},
    {"zero-grad-fills", trace_rule_zero_grad_fills},
    {"layout-copies", trace_rule_layout_copies},
    {"low-occupancy", trace_rule_low_occupancy},
    {"threads-unused", trace_rule_threads_unused},
    {"cpu-oversubscribed", trace_rule_cpu_oversubscribed},
    {"emulated-precision", trace_rule_emulated_precision},
    {"sample-loop", trace_rule_sample_loop},         /* before small-batch, which it would look like */
    {"small-batch", trace_rule_small_batch},
    {"launch-bound", trace_rule_launch_bound},
    {"host-bound", trace_rule_host_bound},
    {"memory-limit", trace_rule_memory_limit},
    {"no-clipping", trace_rule_no_clipping},
    {0},
};
