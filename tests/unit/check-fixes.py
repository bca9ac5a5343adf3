#!/usr/bin/env python3
"""Parses every fix of a file as Python: names and texts, each ended by a NUL (tests/unit/test_fixes.c writes it)."""
import ast, sys


def main():
    parts = open(sys.argv[1], "rb").read().decode().split("\0")[:-1]
    texts = {(rule, fix) for rule, fix in zip(parts[::2], parts[1::2])}
    wrong = 0
    for rule, fix in sorted(texts):
        try:
            ast.parse(fix)
        except SyntaxError as e:
            wrong += 1
            print(f"{rule}: {e}\n{fix}\n", file=sys.stderr)
    if not texts or wrong:
        sys.exit(f"{wrong} of {len(texts)} fixes are no Python")


main()
