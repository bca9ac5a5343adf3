/* The server of the live page: what it answers, to whom, and that clients which are slow, silent, greedy or many hold up nobody. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "live/live.h"
#include "support/check.h"

enum { PAGE = 4 << 20 };
static char *page;

static char *data(void *context, uint64_t seen)
{
    const uint64_t *version = context;
    char *text = NULL;
    return seen == *version || asprintf(&text, "{\"version\":%llu}", (unsigned long long)*version) < 0 ? NULL : text;
}

static uint64_t version = 7;

static struct live *opened(void)
{
    struct live *l;
    struct error err;
    assert_ok(live_open(&l, 0, page, PAGE, data, &version, &err), err);
    assert_true(live_port(l) > 0);
    return l;
}

static int connected(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

/* All that comes until the other side closes; owned by the caller. */
static char *rest_of(int fd, size_t *size)
{
    char *text = calloc(1, PAGE + 65536);
    assert_non_null(text);
    *size = 0;
    for (ssize_t n; (n = recv(fd, text + *size, PAGE + 65535 - *size, 0)) > 0;)
        *size += (size_t)n;
    close(fd);
    return text;
}

static char *asked(const struct live *l, const char *request, size_t *size)
{
    char text[1024];
    const int fd = connected(live_port(l));
    const int n = snprintf(text, sizeof text, request, live_port(l));
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    return rest_of(fd, size);
}

static int status_of(const char *answer) { return strncmp(answer, "HTTP/1.1 ", 9) ? 0 : atoi(answer + 9); }

static void test_answers(void **state)
{
    (void)state;
    static const struct { const char *request; int status; } cases[] = {
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 200},
        {"GET / HTTP/1.0\r\nhost: LocalHost:%d\r\nCookie: a=b\r\n\r\n", 200},
        {"HEAD / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 200},
        {"GET /data HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 200},
        {"GET /data?seen=7 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 204},
        {"GET /data?seen=6 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 200},
        {"GET /data?seen=-6 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 400},
        {"GET /data?seen= HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 400},
        {"GET /../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 404},
        {"GET /metrics.jsonl HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 404},
        {"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 3\r\n\r\nabc", 405},
        {"DELETE /data HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 405},
        {"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 405},
        {"get / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 405},
        /* names that others may have made to point here */
        {"GET / HTTP/1.1\r\nHost: evil.example:%d\r\n\r\n", 403},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example:%d\r\n\r\n", 403},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: %d\r\n\r\n", 403},
        {"POST / HTTP/1.1\r\nHost: evil.example:%d\r\n\r\n", 403},
        {"GET / HTTP/1.1\r\nX: %d\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nHost: evil.example\r\n\r\n", 400},
        {"GET http://127.0.0.1:%1$d/ HTTP/1.1\r\nHost: 127.0.0.1:%1$d\r\n\r\n", 404},
        {"GET / HTTP/2\r\nHost: 127.0.0.1:%d\r\n\r\n", 400},
        {"GET /\r\nHost: 127.0.0.1:%d\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : 127.0.0.1:%d\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n folded\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX: a\nY: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX: \001\r\n\r\n", 400},
        {" / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", 400},
    };
    struct live *l = opened();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        char *answer = asked(l, cases[i].request, &size);
        if (status_of(answer) != cases[i].status)
            fail_msg("%s: %d, expected %d", cases[i].request, status_of(answer), cases[i].status);
        assert_non_null(strstr(answer, "\r\nConnection: close\r\n"));
        assert_true(cases[i].status != 405 || strstr(answer, "\r\nAllow: GET, HEAD\r\n"));
        free(answer);
    }
    live_close(l);
}

/* Clients name the port that is http's own, or leave it out; that of another place they do not. */
static void test_port_of_http(void **state)
{
    (void)state;
    static const struct { const char *host; int port, status; } cases[] = {
        {"127.0.0.1", 80, 200}, {"LocalHost", 80, 200}, {"127.0.0.1:80", 80, 200}, {"evil.example", 80, 403}, {"127.0.0.1:8080", 80, 403}, {"127.0.0.1", 8080, 403}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        const int n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", cases[i].host);
        assert_int_equal(live_request_parse(text, (size_t)n, cases[i].port).status, cases[i].status);
    }
}

static void test_bodies(void **state)
{
    (void)state;
    struct live *l = opened();
    size_t size;
    char *answer = asked(l, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", &size), *body = strstr(answer, "\r\n\r\n") + 4;
    assert_int_equal(size - (size_t)(body - answer), PAGE);
    assert_memory_equal(body, page, PAGE);
    assert_non_null(strstr(answer, "\r\nContent-Length: 4194304\r\n"));
    assert_non_null(strstr(answer, "\r\nX-Content-Type-Options: nosniff\r\n"));
    free(answer);
    answer = asked(l, "HEAD / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", &size);
    assert_non_null(strstr(answer, "\r\nContent-Length: 4194304\r\n"));
    assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    free(answer);
    answer = asked(l, "GET /data?seen=3 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", &size);
    assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n{\"version\":7}");
    free(answer);
    live_close(l);
}

/* More clients than there are places, who send a byte or nothing, or ask for the page and do not read it; and one that sends without end. */
static void test_hostile_clients(void **state)
{
    (void)state;
    enum { MANY = 3 * LIVE_CLIENTS };
    struct live *l = opened();
    int fd[MANY];
    char request[256], *much = malloc(LIVE_REQUEST_MOST + 4096);
    assert_non_null(much);
    const int n = snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", live_port(l));
    for (int i = 0; i < MANY; i++) {
        fd[i] = connected(live_port(l));
        if (i % 3)
            assert_true(send(fd[i], request, (size_t)(i % 3 == 1 ? 1 : n), MSG_NOSIGNAL) > 0);
    }
    for (int i = 0; i < 3; i++) {
        size_t size;
        const double start = clock_s();
        char *answer = asked(l, "GET /data HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", &size);
        assert_int_equal(status_of(answer), 200);
        assert_true(clock_s() - start < 20);
        free(answer);
    }
    memset(much, 'a', LIVE_REQUEST_MOST + 4096);
    const int greedy = connected(live_port(l));
    send(greedy, much, LIVE_REQUEST_MOST + 4096, MSG_NOSIGNAL);
    size_t size;
    char *answer = rest_of(greedy, &size);
    assert_int_equal(status_of(answer), 431);
    free(answer);
    free(much);
    const double start = clock_s();
    live_close(l);
    assert_true(clock_s() - start < 20);
    for (int i = 0; i < MANY; i++)
        close(fd[i]);
}

/* Who sends a part and then nothing is cut off. */
static void test_silent_client(void **state)
{
    (void)state;
    struct live *l = opened();
    const int fd = connected(live_port(l));
    size_t size;
    const double start = clock_s();
    assert_int_equal(send(fd, "GET / HT", 8, MSG_NOSIGNAL), 8);
    char *answer = rest_of(fd, &size);
    assert_int_equal(size, 0);
    assert_true(clock_s() - start < 30);
    free(answer);
    live_close(l);
}

static void test_port(void **state)
{
    (void)state;
    struct live *l = opened(), *second;
    struct error err;
    char wanted[128];
    assert_int_equal(live_open(&second, live_port(l), page, 10, data, &version, &err), BAD_INPUT);
    snprintf(wanted, sizeof wanted, "--live: port %d of 127.0.0.1 is taken; give another, or --live alone for one that is free", live_port(l));
    assert_string_equal(err.text, wanted);
    const int port = live_port(l);
    live_close(l);
    assert_ok(live_open(&second, port, page, 10, data, &version, &err), err);        /* it is free again at once */
    live_close(second);
    live_close(NULL);
}

int main(void)
{
    page = malloc(PAGE);
    for (int i = 0; page && i < PAGE; i++)
        page[i] = (char)('a' + i % 23);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_port_of_http), cmocka_unit_test(test_bodies), cmocka_unit_test(test_hostile_clients),
        cmocka_unit_test(test_silent_client), cmocka_unit_test(test_port),
    };
    const int failed = page ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    free(page);
    return failed;
}
