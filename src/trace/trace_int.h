/* What the trace's sinks share: text that is UTF-8, and records of an event file. */
#ifndef HONE_TRACE_TRACE_INT_H
#define HONE_TRACE_TRACE_INT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A copy of the text for free() in which every byte that is not part of valid UTF-8 has become U+FFFD. JSON and
 * protobuf take nothing else, and names come from configs, files and imported traces. */
char *trace_text_repair(const char *text);

/* CRC-32C (Castagnoli), as in RFC 3720. */
uint32_t crc32c(const void *data, size_t size);
/* Writes one TFRecord and flushes it. Returns 0, or the errno of the failure. */
int tfrecord_write(FILE *file, const void *data, size_t size);

#endif
