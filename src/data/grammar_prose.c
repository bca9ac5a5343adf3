/* The prose domain: short stories about people and things. Worth learning: capitals after a full stop, subject and verb
 * that agree across what stands between them, he and she that follow the name, and quotes that close.
 *
 * One derivation per sentence: what follows a noun (a place or a relative clause) belongs to the nearest noun, and a
 * noun has at most one; a full stop, an exclamation or a question mark stands at the end of a sentence only. */
#include "data/corpus_int.h"

const struct production grammar_prose[] = {
    {"unit", 81, "{sentence} "},
    {"unit", 19, "{sentence}\n"},

    {"sentence", 34, "{Statement}{stop}"},
    {"sentence", 12, "{time}, {clause}{stop}"},
    {"sentence", 8, "When {clause}, {clause}."},
    {"sentence", 7, "When {woman} {does}, she {does}."},
    {"sentence", 7, "When {man} {does}, he {does}."},
    {"sentence", 10, "\"{Statement},\" says {person}."},
    {"sentence", 5, "\"{Question}?\" asks {person}."},
    {"sentence", 5, "{Question}?"},
    {"sentence", 4, "{woman} and {man} {do}, but {clause}."},

    {"stop", 12, "."},
    {"stop", 1, "!"},

    {"Statement", 7, "{One} {does}"},
    {"Statement", 4, "{Many} {do}"},

    {"Question", 4, "Does {one} {act}"},
    {"Question", 3, "Do {many} {act}"},
    {"Question", 2, "Where is {one}"},
    {"Question", 1, "Where are {many}"},

    {"clause", 7, "{one} {does}"},
    {"clause", 4, "{many} {do}"},

    {"One", 5, "{person}"},
    {"One", 5, "The {quality}{thing}{about_one}"},
    {"One", 2, "A {quality}{thing}{about_one}"},
    {"One", 1, "Every {thing}"},

    {"one", 5, "{person}"},
    {"one", 6, "the {quality}{thing}{about_one}"},
    {"one", 3, "a {quality}{thing}{about_one}"},
    {"one", 1, "an old {thing}"},

    {"Many", 5, "The {quality}{thing}s{about_many}"},
    {"Many", 2, "{count_word} {thing}s"},
    {"Many", 1, "All the {thing}s"},

    {"many", 6, "the {quality}{thing}s{about_many}"},
    {"many", 2, "{count} {thing}s"},

    {"count_word", WORDS, "Two|Three|Many|Some|Seven"},
    {"count", WORDS, "two|three|many|some|seven"},

    {"about_one", 22, ""},
    {"about_one", 5, " {place} {spot}"},
    {"about_one", 3, " that {does}"},

    {"about_many", 22, ""},
    {"about_many", 5, " {place} {spot}"},
    {"about_many", 3, " that {do}"},

    {"quality", 14, ""},
    {"quality", 8, "{adjective} "},

    {"any", 6, "{one}"},
    {"any", 2, "{many}"},

    {"does", 8, "{verb}s {any}"},
    {"does", 7, "{move}s {way} {spot}"},
    {"does", 4, "is {state}"},
    {"does", 2, "wants to {act}"},
    {"does", 1, "knows that {clause}"},

    {"do", 8, "{verb} {any}"},
    {"do", 7, "{move} {way} {spot}"},
    {"do", 4, "are {state}"},
    {"do", 2, "want to {act}"},
    {"do", 1, "know that {clause}"},

    {"act", 5, "{verb} {any}"},
    {"act", 4, "{move} {way} {spot}"},

    {"state", 5, "{mood}"},
    {"state", 1, "very {mood}"},
    {"state", 2, "not {mood}"},

    {"time", WORDS,
     "In the morning|At night|Every evening|After the storm|In the summer|Before the winter|On the way home|At noon"},
    {"place", WORDS, "near|behind|under|beside|from"},
    {"way", WORDS, "to|towards|around|across|through|along"},
    {"spot", WORDS,
     "the river|the mountain|the village|the garden|the market|the old bridge|the forest|the harbour|the station|"
     "the lake|the quiet valley|the northern road|the school|the island|the white tower|the library|the mill|"
     "the southern gate"},

    {"person", 1, "{woman}"},
    {"person", 1, "{man}"},
    {"woman", WORDS, "Anna|Maria|Clara|Elena|Sophie|Ruth|Helen|Nora|Isabel|Vera"},
    {"man", WORDS, "Peter|Thomas|Daniel|Martin|Oliver|Simon|Victor|Hugo|Edmund|Felix"},

    {"thing", WORDS,
     "traveller|river|friend|horse|garden|letter|teacher|bird|song|farmer|window|stranger|picture|neighbour|lantern|"
     "sailor|doctor|painter|whale|boat|brother|sister|merchant|soldier|baker|gardener|dancer|writer|"
     "shepherd|singer|captain|cousin|visitor|hunter|miller|tailor|carpenter|shadow|dream|candle|mirror|basket|"
     "blanket|ribbon|hammer|trumpet|feather|planet|puzzle"},
    {"adjective", WORDS,
     "little|young|quiet|golden|strange|brave|gentle|clever|lonely|silver|hungry|curious|patient|proud|careful|wooden|"
     "famous|foolish|nervous|tired|faithful|crooked|bright|secret"},
    {"verb", WORDS,
     "see|remember|follow|love|find|hear|paint|forget|greet|visit|admire|describe|believe|imagine|protect|choose|draw|"
     "collect|repair|borrow|welcome|mistrust|recognise|surround"},
    {"move", WORDS, "walk|travel|run|wander|return|climb|sail|stroll|look|drift|crawl|gallop"},
    {"mood", WORDS,
     "happy|tired|afraid|beautiful|ready|silent|alone|grateful|angry|wonderful|surprised|forgotten|dangerous|"
     "expensive|important|sleepy"},
};

const int grammar_prose_rows = sizeof grammar_prose / sizeof grammar_prose[0];
