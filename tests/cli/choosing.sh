# That kernels are timed is seen on a terminal, in a line that is removed; nothing is said elsewhere, or when all are known.
. "$(dirname "$0")/lib"
command -v script >/dev/null || skip "there is no script(1) to make a terminal with"
tiny
sed -i 's/dim: 32/dim: 256/; s/seq: 16/seq: 32/; s/batch_size: 2/batch_size: 32/' tiny.yaml       # small products are timed too quickly to be seen
ok doctor --json
! grep -q '"blas": *"own kernels"' out || skip "there is no BLAS, and so nothing to choose among"

# shown ARGS...: runs hone with stderr on a terminal and stdout in the file out. The file screen gets one line for every time that
# the terminal's line was drawn.
shown() {
    code=0
    SHELL=$(command -v bash) script -qec "$(printf '%q ' "$HONE" "$@") >out" /dev/null >screen.raw </dev/null || code=$?
    tr '\r' '\n' <screen.raw | grep . >screen || true
    [ "$code" = 0 ] || fail "hone $*: exit code $code: $(cat screen)"
}

# chose ARGS...: the same with a machine that knows nothing; the line must have been drawn.
chose() {
    rm -f cache/hone/choices.json
    shown "$@"
    grep -q '% choosing kernels, once: [0-9]* of [1-9]' screen ||
        fail "hone $*: it chose kernels and did not show it: $(cat screen)"
    ! grep -q choosing out || fail "hone $*: it is in the output: $(cat out)"
}
removed() { [ "$(grep -A 1 choosing screen | tail -1)" = $'\033[K' ] || fail "the line is left: $(cat -v screen)"; }

ok bench tiny.yaml --seconds 0.1                        # peaks and choices
! grep -q choosing err || fail "without a terminal it said: $(cat err)"
shown bench tiny.yaml --seconds 0.1
! grep -q choosing screen || fail "all was known, and it said: $(cat -v screen)"

chose bench tiny.yaml --seconds 0.1 --json
removed
json out 'len(j["results"]) == 1'
chose train tiny.yaml --out run
removed

# A bar that is there shows it, and goes on with what it showed before.
chose tune tiny.yaml --budget 0 --out tuned
grep -A 1 choosing screen | tail -1 | grep -q '% profiling' || fail "tune: $(cat screen)"
[ "$(tail -1 screen)" = $'\033[K' ] || fail "tune: the bar is left: $(cat -v screen)"
