#!/usr/bin/env python3
"""Makes src/data/unicode_table.c: which characters are letters, numbers and spaces, as \\p{L}, \\p{N} and \\s of the regular expressions in
Hugging Face's tokenizers have it (needs tokenizers, which is asked; Python's unicodedata is of an older Unicode and has them as far as it goes).

usage: make-unicode-table.py [FILE]
"""
import pathlib
import sys
import unicodedata

from tokenizers import Regex, pre_tokenizers

BLOCK = 256
LETTER, NUMBER, SPACE = 1, 2, 3


def members(pattern):
    """All characters that the pattern takes out of a text of all characters."""
    split, found = pre_tokenizers.Split(Regex(pattern), "removed"), set()
    for first in range(0, 0x110000, 0x1000):
        points = [c for c in range(first, first + 0x1000) if not 0xD800 <= c < 0xE000]
        if points:
            left = {ord(c) for piece, _ in split.pre_tokenize_str("".join(map(chr, points))) for c in piece}
            found |= set(points) - left
    return found


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "src/data/unicode_table.c"
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    kinds = bytearray(0x110000)
    for pattern, kind, category in ((r"\p{L}", LETTER, "L"), (r"\p{N}", NUMBER, "N"), (r"\s", SPACE, None)):
        found = members(pattern)
        for c in found:
            assert not kinds[c]
            kinds[c] = kind
        for c in range(0x110000) if category else ():
            if unicodedata.category(chr(c))[0] == category:
                assert c in found, f"U+{c:04X} is of category {category} and does not match {pattern}"
    blocks, index = [], []
    for first in range(0, 0x110000, BLOCK):
        block = bytes(kinds[first : first + BLOCK])
        if block not in blocks:
            blocks.append(block)
        index.append(blocks.index(block))
    packed = [sum(block[i + j] << 2 * j for j in range(4)) for block in blocks for i in range(0, BLOCK, 4)]
    lines = ["/* Made by scripts/make-unicode-table.py. Of every character two bits: none, letter, number or space; four to a byte, in blocks of 256. */",
             '#include "data/unicode.h"', "", "const uint8_t unicode_blocks[] = {"]
    lines += ["    " + ", ".join(map(str, index[i : i + 32])) + "," for i in range(0, len(index), 32)]
    lines += ["};", "", "const uint8_t unicode_kinds[] = {"]
    lines += ["    " + ", ".join(map(str, packed[i : i + 32])) + "," for i in range(0, len(packed), 32)]
    assert len(blocks) <= 256
    path.write_text("\n".join(lines + ["};"]) + "\n")
    print(f"wrote {path}: {len(blocks)} blocks, {len(packed) + len(index)} bytes")


if __name__ == "__main__":
    main()
