/* The table of rules. Order matters only between findings of equal gain. */
#include "analyze/rules.h"

const struct rule rule_table[] = {
    {"data-stall", rule_data_stall},
    {"eval-share", rule_eval_share},
    {"padding-waste", rule_padding_waste},
    {"no-flash-attention", rule_no_flash_attention},
    {"unfused-optimizer", rule_unfused_optimizer},
    {"unfused-projections", rule_unfused_projections},
    {"constant-rebuilt", rule_constant_rebuilt},
    {"recompute", rule_recompute},
    {"host-sync", rule_host_sync},
    {"zero-grad-fills", rule_zero_grad_fills},
    {"layout-copies", rule_layout_copies},
    {"host-bound", rule_host_bound},
    {"small-batch", rule_small_batch},
    {"cpu-oversubscribed", rule_cpu_oversubscribed},
    {"launch-bound", rule_launch_bound},
    {"low-occupancy", rule_low_occupancy},
    {"no-mixed-precision", rule_no_mixed_precision},
    {"misaligned-dims", rule_misaligned_dims},
    {"device-to-host-copy", rule_device_to_host_copy},
    {"exposed-comm", rule_exposed_comm},
    {"straggler", rule_straggler},
    {"memory-limit", rule_memory_limit},
    {"no-clipping", rule_no_clipping},
    {NULL, NULL},
};
