/* gzip that comes in parts: wherever it is cut, also in the head of a member, the same text comes out; and damage is found. */
#include <isa-l/crc.h>
#include <stdint.h>
#include <string.h>

#include "core/gunzip.h"
#include "support/check.h"

enum { HAS_HEAD_SUM = 2, HAS_NAME = 8, MOST = 512 };

struct packed {
    uint8_t bytes[MOST];
    size_t n;
};

static void put(struct packed *p, const void *bytes, size_t n)
{
    assert_true(p->n + n <= MOST);
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
}

static void put_number(struct packed *p, uint32_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        put(p, &(uint8_t){(uint8_t)(x >> 8 * i)}, 1);
}

/* A member whose text is stored as it is. */
static void put_member(struct packed *p, const char *text, int flags)
{
    const size_t start = p->n, n = strlen(text);
    put(p, (const uint8_t[]){0x1f, 0x8b, 8, (uint8_t)flags, 1, 2, 3, 4, 0, 3}, 10);
    if (flags & HAS_NAME)
        put(p, "text.txt", 9);
    if (flags & HAS_HEAD_SUM)
        put_number(p, crc32_gzip_refl(0, p->bytes + start, p->n - start), 2);
    put_number(p, 1, 1);
    put_number(p, (uint32_t)n, 2);
    put_number(p, ~(uint32_t)n, 2);
    put(p, text, n);
    put_number(p, crc32_gzip_refl(0, (const unsigned char *)text, n), 4);
    put_number(p, (uint32_t)n, 4);
}

static size_t inflate_part(struct gunzip *g, const uint8_t *in, size_t n, char *out, size_t room)
{
    size_t taken = 0, made = 0, got;
    do {
        const size_t before = taken;
        size_t some;
        got = gunzip_write(g, in + taken, n - taken, &some, out + made, room - made);
        taken += some;
        made += got;
        if (taken == before && !got)
            break;
    } while (taken < n);
    assert_int_equal(taken, n);
    return made;
}

static void check_cut(const struct packed *p, size_t cut, const char *text)
{
    char out[MOST] = "", stack[4096];
    struct gunzip *g = gunzip_new();
    memset(stack, (int)cut, sizeof stack);              /* what a function leaves there is nothing to rely on */
    size_t n = inflate_part(g, p->bytes, cut, out, sizeof out);
    n += inflate_part(g, p->bytes + cut, p->n - cut, out + n, sizeof out - n);
    if (gunzip_damage(g) || !gunzip_whole(g) || n != strlen(text) || memcmp(out, text, n))
        fail_msg("cut after %zu bytes: %s, %zu bytes of text", cut, gunzip_damage(g) ? gunzip_damage(g) : "no damage", n);
    gunzip_free(g);
}

static void test_parts(void **state)
{
    (void)state;
    static const int flags[] = {0, HAS_NAME, HAS_HEAD_SUM, HAS_NAME | HAS_HEAD_SUM};
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
        struct packed p = {.n = 0};
        put_member(&p, "the first of two, ", flags[f]);
        put_member(&p, "and the second", flags[f]);
        for (size_t cut = 0; cut <= p.n; cut++)
            check_cut(&p, cut, "the first of two, and the second");
    }
}

static void test_damage(void **state)
{
    (void)state;
    struct packed p = {.n = 0};
    char out[MOST];
    size_t taken;
    put_member(&p, "a text", HAS_NAME | HAS_HEAD_SUM);
    for (size_t n = 0; n < p.n; n++) {
        struct gunzip *g = gunzip_new();
        gunzip_write(g, p.bytes, n, &taken, out, sizeof out);
        assert_null(gunzip_damage(g));
        assert_int_equal(gunzip_whole(g), n == 0);
        gunzip_free(g);
    }
    const size_t places[] = {0, 2, 12, p.n - 12, p.n - 8, p.n - 1};       /* the mark, the method, the name and its sum, the text, its sum, its length */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct packed bad = p;
        bad.bytes[places[i]] ^= 0x10;
        struct gunzip *g = gunzip_new();
        gunzip_write(g, bad.bytes, bad.n, &taken, out, sizeof out);
        if (!gunzip_damage(g))
            fail_msg("byte %zu of %zu is wrong, and nobody sees it", places[i], bad.n);
        gunzip_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
