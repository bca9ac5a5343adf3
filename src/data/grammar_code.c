/* The code domain: small Python-like functions. Worth learning: brackets that balance, indentation by depth, a return
 * at the end of every function, and accumulators that are returned under the name they were given.
 *
 * One derivation per function: operators group to the right, functions and variables have different names, a line's
 * depth is its indentation, and an empty line ends a function and stands nowhere else. */
#include "data/corpus_int.h"

/* The lines of a block at one depth, and at the depths where blocks nest, the statements that open a deeper one. */
#define LINES(depth)                                                                                                   \
    {"block" depth, 4, "{line" depth "}"}, {"block" depth, 3, "{line" depth "}{block" depth "}"},

#define SIMPLE(depth, indent)                                                                                          \
    {"line" depth, 14, indent "{variable} = {value}\n"}, {"line" depth, 6, indent "{variable} += {value}\n"},          \
    {"line" depth, 7, indent "{list}.append({value})\n"}, {"line" depth, 5, indent "print({arguments})\n"},            \
    {"line" depth, 2, indent "{variable}[{value}] = {value}\n"},

#define NESTED(depth, indent, deeper)                                                                                  \
    {"line" depth, 6, indent "for {variable} in range({value}):\n{block" deeper "}"},                                  \
    {"line" depth, 4, indent "for {variable} in {list}:\n{block" deeper "}"},                                          \
    {"line" depth, 5, indent "if {test}:\n{block" deeper "}"},                                                         \
    {"line" depth, 3, indent "if {test}:\n{block" deeper "}" indent "else:\n{block" deeper "}"},                       \
    {"line" depth, 2, indent "while {test}:\n{block" deeper "}"},

/* A function that starts an accumulator, feeds it in a loop and returns it. */
#define ACCUMULATE(weight, name, start, feed)                                                                          \
    {"function", weight,                                                                                               \
     "def {action}_{object}({parameters}):\n    " name " = " start "\n    for {variable} in {list}:\n        " feed    \
     "\n    return " name "\n\n"},

#define FOUR "    "

const struct production grammar_code[] = {
    {"function", 60, "def {action}_{object}({parameters}):\n{body}\n"},
    ACCUMULATE(12, "total", "0", "total += {value}")
    ACCUMULATE(8, "result", "[]", "result.append({value})")
    ACCUMULATE(5, "best", "None", "best = max(best, {value})")

    {"body", 7, FOUR "return {value}\n"},
    {"body", 1, FOUR "return {test}\n"},
    {"body", 14, "{line1}{body}"},

    SIMPLE("1", FOUR)
    NESTED("1", FOUR, "2")
    LINES("2")
    SIMPLE("2", FOUR FOUR)
    NESTED("2", FOUR FOUR, "3")
    LINES("3")
    SIMPLE("3", FOUR FOUR FOUR)

    {"parameters", 4, "{variable}"},
    {"parameters", 3, "{list}"},
    {"parameters", 4, "{variable}, {parameters}"},
    {"parameters", 3, "{list}, {parameters}"},

    {"arguments", 5, "{value}"},
    {"arguments", 2, "{value}, {arguments}"},

    {"value", 17, "{simple}"},
    {"value", 5, "{simple} {operator} {value}"},

    {"simple", 13, "{variable}"},
    {"simple", 5, "{number}"},
    {"simple", 4, "{list}[{value}]"},
    {"simple", 4, "len({list})"},
    {"simple", 4, "{action}_{object}({arguments})"},
    {"simple", 1, "({simple} {operator} {value})"},

    {"test", 6, "{simple} {compare} {value}"},
    {"test", 2, "{variable} in {list}"},
    {"test", 1, "not {variable}"},
    {"test", 1, "{simple} {compare} {value} and {test}"},

    {"operator", WORDS, "+|-|*|/|%"},
    {"compare", WORDS, "<|==|>|!=|<=|>="},
    {"number", WORDS, "0|1|2|10|100|3|255"},
    {"variable", WORDS, "index|value|count|width|height|name|offset|left|right|length|parent|current|first|last|key"},
    {"list", WORDS, "items|values|words|lines|nodes|rows|names|points|buffer"},
    {"action", WORDS, "get|find|make|update|read|write|check|remove|compute|parse|merge|split"},
    {"object", WORDS,
     "item|node|name|index|table|record|buffer|window|message|token|queue|matrix|header|image|graph|user|batch|path"},
};

const int grammar_code_rows = sizeof grammar_code / sizeof grammar_code[0];
