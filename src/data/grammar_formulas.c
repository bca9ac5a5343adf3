/* The formulas domain: one equation a line. Worth learning: sums and products that are true, parentheses that balance,
 * and a variable that stays the same through the whole line.
 *
 * One derivation per line: the start of a line tells its kind, + groups to the right, and the line ends at the only
 * newline. */
#include "data/corpus_int.h"

/* Everything that is said about one variable. */
#define VARIABLE(v, names)                                                                                             \
    {"line_" v, 14, "{names_" v "}(" v ") = {sum_" v "}\n"},                                                           \
    {"line_" v, 2, "the derivative of {known_" v "}\n"},                                                               \
    {"line_" v, 2, "the integral of {primitive_" v "}\n"},                                                             \
    {"line_" v, 1, "sin(" v ")^2 + cos(" v ")^2 = 1\n"},                                                               \
    {"line_" v, 1, "exp(" v ") * exp(-" v ") = 1\n"},                                                                  \
    {"line_" v, 1, "(" v " + 1)^2 = " v "^2 + 2*" v " + 1\n"},                                                         \
    {"line_" v, 1, "(" v " - 1)^2 = " v "^2 - 2*" v " + 1\n"},                                                         \
    {"names_" v, WORDS, names},                                                                                        \
    {"sum_" v, 9, "{term_" v "}"},                                                                                     \
    {"sum_" v, 7, "{term_" v "} + {sum_" v "}"},                                                                       \
    {"sum_" v, 2, "{term_" v "} - {sum_" v "}"},                                                                       \
    {"term_" v, 4, "{number}"},                                                                                        \
    {"term_" v, 7, "{factor_" v "}"},                                                                                  \
    {"term_" v, 6, "{number}*{factor_" v "}"},                                                                         \
    {"factor_" v, 9, v},                                                                                               \
    {"factor_" v, 6, v "^2"},                                                                                          \
    {"factor_" v, 2, v "^3"},                                                                                          \
    {"factor_" v, 7, "{function}({inner_" v "})"},                                                                     \
    {"factor_" v, 2, "({sum_" v "}) / ({sum_" v "})"},                                                                 \
    {"inner_" v, 8, v},                                                                                                \
    {"inner_" v, 3, "{number}*" v},                                                                                    \
    {"inner_" v, 2, "{term_" v "} + {sum_" v "}"},                                                                     \
    {"known_" v, WORDS, "sin(" v ") is cos(" v ")|" v "^2 is 2*" v "|exp(" v ") is exp(" v ")|"                        \
                        "cos(" v ") is -sin(" v ")|log(" v ") is 1 / " v "|" v "^3 is 3*" v "^2|"                      \
                        "sqrt(" v ") is 1 / (2*sqrt(" v "))"},                                                         \
    {"primitive_" v, WORDS, "cos(" v ") is sin(" v ")|2*" v " is " v "^2|exp(" v ") is exp(" v ")|"                    \
                            "1 / " v " is log(" v ")|3*" v "^2 is " v "^3"},

const struct production grammar_formulas[] = {
    {"line", 30, "{line_x}"},
    {"line", 20, "{line_t}"},
    {"line", 14, "{line_theta}"},
    {"line", 30, "{arithmetic}\n"},

    VARIABLE("x", "f|g|h|p")
    VARIABLE("t", "position|speed|energy")
    VARIABLE("theta", "area|angle|phase")

    {"function", WORDS, "sin|cos|exp|sqrt|log|tanh"},
    {"number", WORDS, "2|3|5|4|7|10|12"},

    {"arithmetic", 1, "2 + {plus_2}"}, {"arithmetic", 1, "3 + {plus_3}"}, {"arithmetic", 1, "4 + {plus_4}"},
    {"arithmetic", 1, "5 + {plus_5}"}, {"arithmetic", 1, "6 + {plus_6}"}, {"arithmetic", 1, "7 + {plus_7}"},
    {"arithmetic", 1, "8 + {plus_8}"}, {"arithmetic", 1, "9 + {plus_9}"},
    {"arithmetic", 1, "2 * {times_2}"}, {"arithmetic", 1, "3 * {times_3}"}, {"arithmetic", 1, "4 * {times_4}"},
    {"arithmetic", 1, "5 * {times_5}"}, {"arithmetic", 1, "6 * {times_6}"}, {"arithmetic", 1, "7 * {times_7}"},
    {"arithmetic", 1, "8 * {times_8}"}, {"arithmetic", 1, "9 * {times_9}"},

    {"plus_2", WORDS, "2 = 4|3 = 5|4 = 6|5 = 7|6 = 8|7 = 9|8 = 10|9 = 11"},
    {"plus_3", WORDS, "2 = 5|3 = 6|4 = 7|5 = 8|6 = 9|7 = 10|8 = 11|9 = 12"},
    {"plus_4", WORDS, "2 = 6|3 = 7|4 = 8|5 = 9|6 = 10|7 = 11|8 = 12|9 = 13"},
    {"plus_5", WORDS, "2 = 7|3 = 8|4 = 9|5 = 10|6 = 11|7 = 12|8 = 13|9 = 14"},
    {"plus_6", WORDS, "2 = 8|3 = 9|4 = 10|5 = 11|6 = 12|7 = 13|8 = 14|9 = 15"},
    {"plus_7", WORDS, "2 = 9|3 = 10|4 = 11|5 = 12|6 = 13|7 = 14|8 = 15|9 = 16"},
    {"plus_8", WORDS, "2 = 10|3 = 11|4 = 12|5 = 13|6 = 14|7 = 15|8 = 16|9 = 17"},
    {"plus_9", WORDS, "2 = 11|3 = 12|4 = 13|5 = 14|6 = 15|7 = 16|8 = 17|9 = 18"},

    {"times_2", WORDS, "2 = 4|3 = 6|4 = 8|5 = 10|6 = 12|7 = 14|8 = 16|9 = 18"},
    {"times_3", WORDS, "2 = 6|3 = 9|4 = 12|5 = 15|6 = 18|7 = 21|8 = 24|9 = 27"},
    {"times_4", WORDS, "2 = 8|3 = 12|4 = 16|5 = 20|6 = 24|7 = 28|8 = 32|9 = 36"},
    {"times_5", WORDS, "2 = 10|3 = 15|4 = 20|5 = 25|6 = 30|7 = 35|8 = 40|9 = 45"},
    {"times_6", WORDS, "2 = 12|3 = 18|4 = 24|5 = 30|6 = 36|7 = 42|8 = 48|9 = 54"},
    {"times_7", WORDS, "2 = 14|3 = 21|4 = 28|5 = 35|6 = 42|7 = 49|8 = 56|9 = 63"},
    {"times_8", WORDS, "2 = 16|3 = 24|4 = 32|5 = 40|6 = 48|7 = 56|8 = 64|9 = 72"},
    {"times_9", WORDS, "2 = 18|3 = 27|4 = 36|5 = 45|6 = 54|7 = 63|8 = 72|9 = 81"},
};

const int grammar_formulas_rows = sizeof grammar_formulas / sizeof grammar_formulas[0];
