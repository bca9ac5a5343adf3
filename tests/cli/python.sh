# The analyzer as a Python package, on the library of this build: python -m hone analyze, hone.analyze. (tests/python/wheel.sh makes the real wheel.)
. "$(dirname "$0")/lib"
build=$(dirname "$HONE")
[ -e "$build/libhone_analyzer.so" ] || skip "there is no analyzer library beside $HONE"
python3 -c 'import argparse, ctypes, json, pathlib' 2>/dev/null || skip "no Python with ctypes"
mkdir package
cp -r "$HONE_SOURCE/python/hone" package/hone
cp "$build/libhone_analyzer.so" package/hone/
export PYTHONPATH=$WORK/package PYTHONDONTWRITEBYTECODE=1
. "$HONE_SOURCE/tests/python/checks"
