# ./quickstart: which config it trains, by what tune left; hone and cmake stand in for themselves and note what they are asked for.
. "$(dirname "$0")/lib"
mkdir -p repo/scripts repo/build/release bin
cp "$HONE_SOURCE/quickstart" repo/
printf 'build_packages() { :; }\ninstall_packages() { :; }\n' >repo/scripts/packages.sh
printf '#!/bin/sh\n' >bin/cmake
cat >repo/build/release/hone <<'SH'
#!/bin/sh
echo "$*" >>asked
case $1 in
tune)
    [ -n "$TUNED" ] || { echo "hone: cannot be tuned" >&2; exit "$TUNE_ENDS"; }
    while [ "$1" != --out ]; do shift; done
    mkdir -p "$2" && printf 'optimize:\n  passes: %s\n  fuse-qkv: auto\n' "$TUNED" >"$2/tuned.yaml" && touch "$2/report.html" ;;
esac
SH
chmod +x bin/cmake repo/build/release/hone

# trains WHAT: the script ends well, and this config was trained
trains() {
    rm -rf repo/asked repo/runs
    (cd repo && PATH=$WORK/bin:$PATH ./quickstart) >out 2>err || { cat out err >&2; fail "exit code $?"; }
    grep -qx "train $1 --out runs/quickstart" repo/asked || fail "not trained: $1: $(cat repo/asked)"
}

export TUNED='[flash-attention, fuse-qkv]' TUNE_ENDS=1
trains runs/quickstart-tuned/tuned.yaml
! grep -q 'no pass was proved' out || fail "$(cat out)"
grep -q 'and what it won: .*/runs/quickstart-tuned/report.html$' out || fail "$(cat out)"
TUNED=none
trains quickstart
[ "$(grep -c 'trains the config quickstart with all its passes' out)" = 1 ] || fail "$(cat out)"
TUNED=
trains quickstart
! grep -q 'what it won' out || fail "a report that is not there: $(cat out)"
TUNE_ENDS=3
! (cd repo && PATH=$WORK/bin:$PATH ./quickstart) >out 2>err || fail "it goes on when tune cannot run"
