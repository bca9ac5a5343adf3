/* Teams of threads for tests. */
#ifndef HONE_TESTS_TEAMS_H
#define HONE_TESTS_TEAMS_H

#include "core/team.h"
#include "support/check.h"

static inline struct team *new_team(int members)
{
    struct team *t = NULL;
    struct error err;
    assert_ok(team_new(&t, members, &err), err);
    assert_int_equal(team_size(t), members);
    return t;
}

#endif
