/* TFRecord framing: length, masked CRC of the length, data, masked CRC of the data; little-endian throughout. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "trace/trace_int.h"

/* Four bits at a time: records are small and few. */
uint32_t crc32c(const void *data, size_t size)
{
    static const uint32_t nibbles[16] = {       /* polynomial 0x1EDC6F41, reflected */
        0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
        0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
    };
    const unsigned char *bytes = data;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ nibbles[crc & 15];
        crc = crc >> 4 ^ nibbles[crc & 15];
    }
    return ~crc;
}

/* A CRC over data that holds CRCs is weak; the format's mask hides them. */
static uint32_t masked(const void *data, size_t size)
{
    const uint32_t crc = crc32c(data, size);
    return htole32((crc >> 15 | crc << 17) + 0xA282EAD8u);
}

int tfrecord_write(FILE *file, const void *data, size_t size)
{
    unsigned char head[12];
    const uint64_t length = htole64(size);
    const uint32_t length_crc = masked(&length, sizeof length), data_crc = masked(data, size);
    memcpy(head, &length, sizeof length);
    memcpy(head + sizeof length, &length_crc, sizeof length_crc);
    const int failed = fwrite(head, sizeof head, 1, file) != 1 || (size && fwrite(data, size, 1, file) != 1) ||
                       fwrite(&data_crc, sizeof data_crc, 1, file) != 1 || fflush(file);
    return failed ? errno : 0;
}
