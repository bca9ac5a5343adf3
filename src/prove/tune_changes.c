/* What tuning wrote: the keys in which two configs differ. */
#include "prove/tune_report_int.h"

json_t *tune_changes(const struct config *before, const struct config *after)
{
    struct config_difference d;
    json_t *list = json_array();
    for (int at = 0; config_differ(&d, before, after, &at);)
        json_array_append_new(list, json_pack("{s:o,s:o,s:o}", "key", tune_text(d.key), "before", tune_text(d.a), "after",
                                              tune_text(d.b)));
    return list;
}
