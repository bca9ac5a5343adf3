#!/usr/bin/env python3
"""Makes src/report/columns_table.c: characters that take no column of a terminal, and those that take two (East Asian Width W and F), by Python's
unicodedata. Places that are not taken yet count as their neighbours on both sides do, so that the table is short; those kept for emoji have two.

usage: make-columns-table.py [FILE]
"""
import pathlib
import sys
import unicodedata

GAP = 64                # places not taken yet that a range may go over
KEPT_WIDE = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x1F6D5, 0x1F6DF), (0x1FA70, 0x1FAFF), (0x20000, 0x2FFFD), (0x30000, 0x3FFFD))
VOWELS = ((0x1160, 0x11FF), (0xD7B0, 0xD7FF))           # of Hangul, which stand in the place of the consonant before them
SHOWN = {0xAD, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x600, 0x606)}       # marks of format that are seen


def within(c, ranges):
    return any(first <= c <= last for first, last in ranges)


def columns(c):
    """None: not taken."""
    category = unicodedata.category(chr(c))
    if within(c, VOWELS) or (category in ("Mn", "Me", "Cf") and c not in SHOWN):
        return 0
    if within(c, KEPT_WIDE):
        return 2
    if category == "Cn":
        return None
    return 2 if unicodedata.east_asian_width(chr(c)) in "WF" else 1


def ranges():
    found, seen = [], 0x7F
    for c in range(0x80, 0x110000):
        n = columns(c)
        if n is None:
            continue
        if found and found[-1][1] == seen and found[-1][2] == n and c - seen <= GAP:
            found[-1][1] = c
        elif n != 1:
            found.append([c, c, n])
        seen = c
    return found


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "src/report/columns_table.c"
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    found = ranges()
    lines = [f"/* Made by scripts/make-columns-table.py of Unicode {unicodedata.unidata_version}: characters that have not one column but none or two, in order. */",
             '#include "report/report_int.h"', "", "const struct columns_range columns_ranges[] = {"]
    items = [f"{{0x{first:X}, 0x{last:X}, {n}}}," for first, last, n in found]
    lines += ["    " + " ".join(items[i : i + 6]) for i in range(0, len(items), 6)]
    path.write_text("\n".join(lines + ["};", "", "const size_t columns_ranges_n = sizeof columns_ranges / sizeof *columns_ranges;"]) + "\n")
    print(f"wrote {path}: {len(found)} ranges")


if __name__ == "__main__":
    main()
