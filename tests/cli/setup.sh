# Setting a run up: Ctrl-C is heard in it and leaves nothing behind; on a terminal one sees what takes long.
. "$(dirname "$0")/lib"
tiny

# begin ARGS...: starts hone on a corpus that takes far longer to make than this test, and waits until it listens to SIGINT (number 2).
begin() {
    "$HONE" "$@" --set data.chars=3000000000 >out 2>err &
    pid=$!
    until [ $(( 0x$(sed -n 's/^SigCgt:\s*//p' /proc/$pid/status) & 2 )) != 0 ]; do sleep 0.02; done
    sleep 0.2
}
# stop SIGNAL: sends it; the exit code is then in $code.
stop() {
    code=0
    kill -$1 $pid
    wait $pid || code=$?
}

for signal in INT TERM; do
    begin train tiny.yaml --out run
    [ $signal = TERM ] || sleep 1.2                     # long enough to show something, if this were a terminal
    stop $signal
    [ "$code" = 0 ] || fail "SIG$signal: exit code $code: $(cat err)"
    [ "$(cat out)" = "stopped after 0 steps: the run was still being set up, and nothing of it was written" ] || fail "$(cat out)"
    [ ! -s err ] || fail "SIG$signal: said: $(cat err)"
    [ ! -e run ] || fail "SIG$signal: left a folder: $(find run)"
done

begin train tiny.yaml --out run --json
stop INT
[ "$code" = 0 ] || fail "--json: exit code $code: $(cat err)"
json out 'j["interrupted"] is True and j["steps"] == 0 and j["checkpoint"] == "" and j["loss"] is None'

ok bench tiny.yaml --seconds 0.1                        # the peaks are known then
begin profile tiny.yaml --out report
stop INT
[ "$code" = 130 ] || fail "profile: exit code $code: $(cat err)"
grep -q '^hone: stopped before the first step, while it was set up: the corpus$' err || fail "profile: $(cat err)"
[ ! -e report ] || fail "profile: left a folder"

# Nothing is wrong with what verify was given: it has no verdict.
begin verify tiny.yaml tiny.yaml
stop INT
[ "$code" = 130 ] || fail "verify: exit code $code: $(cat err)"
grep -q '^hone: stopped before the first step, while it was set up: the corpus; there is no verdict$' err || fail "verify: $(cat err)"

ok train tiny.yaml --out whole
begin eval whole --set data.val_fraction=0.5
stop INT
[ "$code" = 130 ] && grep -q '^hone: stopped before the first step, while it was set up: the corpus$' err || fail "eval: exit code $code: $(cat err)"

# Who does not ask whether to go on ends at once, and says so; measuring peaks takes seconds.
cp cache/hone/peaks.json known.json
for command in "bench tiny.yaml --seconds 60" "doctor tiny.yaml --remeasure" "tune tiny.yaml --out none" "profile tiny.yaml --out none" "simulate tiny.yaml --net 30,10 --out none"; do
    rm -rf cache/hone/peaks.json
    python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$HONE" $command >out 2>err &     # a shell lets those behind & ignore it
    pid=$!
    until [ $(( 0x$(sed -n 's/^SigCgt:\s*//p' /proc/$pid/status) & 2 )) != 0 ]; do sleep 0.02; done
    sleep 1
    before=$(date +%s)
    stop INT
    [ "$code" = 130 ] && [ "$(cat err)" = "hone: stopped before there was a result" ] || fail "$command: exit code $code: $(cat err)"
    [ $(($(date +%s) - before)) -le 2 ] || fail "$command: it took $(($(date +%s) - before)) s to stop"
    [ ! -e none ] || fail "$command: left a folder"
done

# Steps that were measured before the stop are simulated. How long the first of them takes to come is the machine's.
cp known.json cache/hone/peaks.json
for seconds in 1 5 25; do
    "$HONE" simulate tiny.yaml --net 30,10 --steps 100000 --set optimize.autotune=off --out simulated >out 2>err &
    pid=$!
    sleep $seconds
    stop INT
    [ "$code" != 0 ] || break
done
[ "$code" = 0 ] || fail "simulate: exit code $code: $(cat err)"
json simulated/report.json 'len(j["points"]) > 3'

# What is shown after a second goes away again.
set -- train tiny.yaml --set data.chars=600000000 --set train.epochs=1 --print-program
command -v script >/dev/null || exit 0
SHELL=$(command -v bash) script -qec "$(printf '%q ' "$HONE" "$@") >out" /dev/null >screen.raw </dev/null || fail "$(cat screen.raw)"
tr '\r' '\n' <screen.raw | grep . >screen || fail "a second and more went by, and nothing was shown"
grep -q 'setting up: the corpus$' screen || fail "$(cat -v screen)"
[ "$(tail -1 screen)" = $'\033[K' ] || fail "the line is left: $(cat -v screen)"
