# A standard output that is full, closed or not read: a message and exit code 3, and no work is lost.
. "$(dirname "$0")/lib"
tiny
[ -c /dev/full ] || skip "there is no /dev/full"
said="hone: cannot write to the standard output"

# full ARGS...: with a full standard output
full() {
    code=0
    "$HONE" "$@" >/dev/full 2>err || code=$?
    [ "$code" = 3 ] || fail "hone $* >/dev/full: exit code $code"
    [ "$(tail -1 err)" = "$said" ] || fail "hone $* >/dev/full: $(cat err)"
}
full --help
full --version
full train --help
full train tiny.yaml --print-program
full train tiny.yaml --out full
full train tiny.yaml --out full-json --json
ok train tiny.yaml --out whole
same_checkpoint whole full 20
same_checkpoint whole full-json 20
full generate full --tokens 1000000000          # stops at once, as nobody reads
full bench tiny.yaml --seconds 0.1

# Closed: what is printed must not land in a file of the run, which would get the free descriptor.
code=0; "$HONE" train tiny.yaml --out closed >&- 2>err || code=$?
[ "$code" = 3 ] && [ "$(cat err)" = "$said" ] || fail "closed stdout: $code $(cat err)"
code=0; "$HONE" train tiny.yaml --out closed-all >&- 2>&- <&- || code=$?
[ "$code" = 3 ] || fail "everything closed: $code"
for d in closed closed-all; do
    same_checkpoint whole $d 20
    [ ! -s $d/.lock ] || fail "$d: something was written into the lock file"
    lines $d/metrics.jsonl '[l["step"] for l in j if "loss" in l] == [5, 10, 15, 20]'
done
code=0; "$HONE" train nosuch.yaml 2>&- || code=$?
[ "$code" = 2 ] || fail "closed stderr: $code"

# A reader that leaves ends the output and not the training.
code=0; { "$HONE" train tiny.yaml --steps 300 --set log.every=1 --out head 2>err || echo $? >code; } | head -1 >/dev/null
[ "$(cat code)" = 3 ] && [ "$(cat err)" = "$said" ] || fail "| head: $(cat code) $(cat err)"
[ -d head/checkpoints/step-00000300 ] || fail "| head ended the training"

# What it will train is told before it begins to, also to who reads a pipe: these steps would take hours.
"$HONE" train tiny.yaml --steps 100000000 --set log.every=100000000 --set eval.every=0 --set checkpoint.every=0 --out told >out 2>err &
pid=$!
for try in $(seq 600); do
    grep -q '^steps   100000000 of ' out && break
    sleep 0.1
done
kill -INT $pid
wait $pid || true
grep -q '^stopped after ' out || fail "$(cat out err)"
[ "$try" -lt 600 ] || fail "nothing was told before the end"

# Colours: on a terminal, unless NO_COLOR says something; one that is empty does not (no-color.org).
if command -v script >/dev/null; then
    coloured() {      # SETTING...: does a table of runs on a terminal have colours?
        SHELL=$(command -v bash) script -qec "$(printf '%q ' env "$@" TERM=xterm "$HONE" runs whole)" /dev/null </dev/null | grep -q $'\033\['
    }
    coloured -u NO_COLOR || fail "no colours on a terminal"
    coloured NO_COLOR= || fail "an empty NO_COLOR took the colours away"
    ! coloured NO_COLOR=1 || fail "colours with NO_COLOR=1"
fi
