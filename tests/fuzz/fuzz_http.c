/* Any bytes as a request of the live page: it is answered with a status that is known, or waits for more, and only GET and HEAD by the name of
 * this machine are served. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "live/live.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    require(text != NULL);
    if (size)
        memcpy(text, data, size);
    const struct live_request r = live_request_parse(text, size, 8123);
    switch (r.status) {
    case 0:
        require(size < LIVE_REQUEST_MOST && !memmem(text, size, "\r\n\r\n", 4));
        break;
    case 200:
        require(!memcmp(text, r.head ? "HEAD /" : "GET /", r.head ? 6 : 5) && memmem(text, size, ":8123", 5));
        break;
    case 431:
        require(size >= LIVE_REQUEST_MOST);
        break;
    default:
        require(r.status == 400 || r.status == 403 || r.status == 404 || r.status == 405);
    }
    free(text);
    return 0;
}
