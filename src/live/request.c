/* What a client asks for. Nothing in a request is used but these few words, each of which must be exactly as expected. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "live/live.h"

enum { HTTP_PORT = 80 };

struct span { const char *at; size_t n; };

static bool is_word(struct span s, const char *word) { return s.n == strlen(word) && !strncasecmp(s.at, word, s.n); }
static bool is_exactly(struct span s, const char *word) { return s.n == strlen(word) && !memcmp(s.at, word, s.n); }

/* The part of *rest before the byte; *rest is then what is behind it. False: there is no such byte. */
static bool cut(struct span *rest, char byte, struct span *part)
{
    const char *end = memchr(rest->at, byte, rest->n);
    if (!end)
        return false;
    *part = (struct span){rest->at, (size_t)(end - rest->at)};
    rest->n -= part->n + 1;
    rest->at = end + 1;
    return true;
}

static struct span trimmed(struct span s)
{
    for (; s.n && (*s.at == ' ' || *s.at == '\t'); s.n--)
        s.at++;
    while (s.n && (s.at[s.n - 1] == ' ' || s.at[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* "seen=123" */
static bool read_seen(struct span query, uint64_t *seen)
{
    static const char key[] = "seen=";
    if (query.n < sizeof key || query.n > sizeof key + 17 || memcmp(query.at, key, sizeof key - 1))
        return false;
    *seen = 0;
    for (size_t i = sizeof key - 1; i < query.n; i++) {
        if (query.at[i] < '0' || query.at[i] > '9')
            return false;
        *seen = *seen * 10 + (uint64_t)(query.at[i] - '0');
    }
    return true;
}

static int read_target(struct span target, struct live_request *r)
{
    struct span path = target, query = {target.at + target.n, 0};
    if (cut(&target, '?', &path))
        query = target;
    if (is_exactly(path, "/"))
        return 200;
    if (!is_exactly(path, "/data"))
        return 404;
    r->data = true;
    return query.n && !read_seen(query, &r->seen) ? 400 : 200;
}

/* METHOD SP TARGET SP HTTP/1.x */
static int read_first(struct span line, struct live_request *r)
{
    struct span method, target;
    if (!cut(&line, ' ', &method) || !cut(&line, ' ', &target) || !method.n || (!is_exactly(line, "HTTP/1.1") && !is_exactly(line, "HTTP/1.0")))
        return 400;
    r->head = is_exactly(method, "HEAD");
    if (!r->head && !is_exactly(method, "GET"))
        return 405;
    return read_target(target, r);
}

/* Clients leave out the port of http. */
static bool is_here(struct span host, int port)
{
    char a[64], b[64];
    snprintf(a, sizeof a, "127.0.0.1:%d", port);
    snprintf(b, sizeof b, "localhost:%d", port);
    return is_word(host, a) || is_word(host, b) || (port == HTTP_PORT && (is_word(host, "127.0.0.1") || is_word(host, "localhost")));
}

/* Exactly one Host, and that is this place. */
static int read_fields(struct span rest, int port)
{
    struct span line, name;
    int hosts = 0, status = 200;
    while (cut(&rest, '\n', &line) && line.n > 1) {
        line.n--;                               /* the \r, as was checked */
        if (!cut(&line, ':', &name) || !name.n || strchr(" \t", name.at[0]) || strchr(" \t", name.at[name.n - 1]))
            return 400;
        if (!is_word(name, "host"))
            continue;
        hosts++;
        if (!is_here(trimmed(line), port))
            status = 403;
    }
    return hosts == 1 ? status : 400;
}

/* Every line ends with \r\n, and there is no other byte that steers. */
static bool is_plain(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\r' ? i + 1 == size || text[i + 1] != '\n' : c == '\n' ? !i || text[i - 1] != '\r' : (c < ' ' && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

struct live_request live_request_parse(const char *text, size_t size, int port)
{
    struct live_request r = {0};
    const char *end = memmem(text, size, "\r\n\r\n", 4);
    if (!end) {
        r.status = size >= LIVE_REQUEST_MOST ? 431 : 0;
        return r;
    }
    struct span rest = {text, (size_t)(end - text) + 4}, line;
    if (!is_plain(text, rest.n) || !cut(&rest, '\n', &line)) {
        r.status = 400;
        return r;
    }
    line.n--;
    const int first = read_first(line, &r), fields = read_fields(rest, port);
    r.status = first == 400 ? 400 : fields != 200 ? fields : first;     /* who asks by a wrong name learns nothing else */
    return r;
}
