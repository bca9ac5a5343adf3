# The wheel of the analyzer, made by pip as a user makes it, in an environment that has nothing else. Needs PyPI, or a pip that has scikit-build-core.
. "$(dirname "$0")/../cli/lib"
python3 -m venv environment >log 2>&1 || skip "no Python with venv and pip: $(tail -1 log)"
unset PYTHONPATH
environment/bin/pip wheel -q --no-deps -w wheels "$HONE_SOURCE/python" >log 2>&1 || {
    ! grep -qE 'No matching distribution found for scikit|Could not find a version.*scikit|Temporary failure|Failed to establish' log || skip "scikit-build-core cannot be had"
    cat log >&2
    fail "pip wheel"
}
version=$("$HONE" --version | cut -d' ' -f2)
[ -e wheels/hone_analyzer-"$version"-py3-none-linux_"$(uname -m)".whl ] || fail "the wheel is $(ls wheels)"
environment/bin/pip install -q --no-index wheels/*.whl >log 2>&1 || { cat log >&2; fail "pip install"; }

# It stands alone: the libraries that it needs are its own, but for those of every system.
library=$(echo "$WORK"/environment/lib/python*/site-packages/hone/libhone_analyzer.so)
ldd "$library" | awk '$2 == "=>" {print $3}' | grep -vE "^$WORK|/(libc|libm|libpthread|libdl)\.so" >outside || true
[ ! -s outside ] || fail "the wheel needs $(cat outside)"
python=$WORK/environment/bin/python
. "$HONE_SOURCE/tests/python/checks"
