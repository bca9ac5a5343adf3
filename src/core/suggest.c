/* Edit distance and the nearest word; see suggest.h. */
#include "core/suggest.h"

#include <stddef.h>
#include <string.h>

enum { LONGEST = 63, FAR = 1000 };

static int min_int(int a, int b) { return a < b ? a : b; }

/* Optimal string alignment, three rows of the table at a time. */
int suggest_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    int rows[3][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return FAR;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = min_int(min_int(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_int(row[j], above2[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

bool suggest_is_near(const char *asked, int distance)
{
    const int third = (int)(strlen(asked) / 3);
    return distance <= (third < 1 ? 1 : third > 3 ? 3 : third);
}

/* What people call it elsewhere may be one letter from another word: "gpu" from "cpu". */
static const char *other_name(const char *asked, const char *const *words, int n)
{
    for (int i = 0; i < n && !strcmp(asked, "gpu"); i++)
        if (!strcmp(words[i], "cuda"))
            return words[i];
    return NULL;
}

const char *suggest_nearest(const char *asked, const char *const *words, int n)
{
    const char *meant = other_name(asked, words, n), *best = meant;
    int least = FAR;
    for (int i = 0; i < n && !meant; i++) {
        const int d = suggest_distance(asked, words[i]);
        if (d < least && suggest_is_near(asked, d))
            best = words[i], least = d;
    }
    return best;
}
