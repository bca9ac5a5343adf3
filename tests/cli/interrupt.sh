# Ctrl-C, SIGTERM and a terminal that goes away save and exit 0, also in the middle of an accumulated step; the run then continues as if nothing
# had happened.
. "$(dirname "$0")/lib"
tiny
N=1000
set -- train tiny.yaml --steps $N --set log.every=1 --set eval.every=0 --set checkpoint.every=0 --set model.dropout=0.1 \
    --set train.accumulate=2
ok "$@" --out whole

for signal in INT TERM HUP; do
    start "$@" --out $signal
    until_step 30
    kill -$signal $pid
    finish
    [ "$code" = 0 ] || fail "SIG$signal: exit code $code: $(cat err)"
    [ ! -s err ] || fail "SIG$signal: said: $(cat err)"
    at=$(sed -n 's/^stopped after \([0-9]*\) steps, loss .*; continue with --resume$/\1/p' rest)
    [ -n "$at" ] && [ "$at" -ge 30 ] && [ "$at" -lt $N ] || fail "SIG$signal: no word about where it stopped: $(tail -3 rest)"
    [ "$(ls $signal/checkpoints)" = "$(printf 'step-%08d' "$at")" ] || fail "SIG$signal: checkpoints: $(ls $signal/checkpoints)"
    json $signal/run.json "j['state'] == 'stopped' and j['step'] == $at and j['steps'] == $N"
    ok "$@" --out $signal --resume
    json $signal/run.json "j['state'] == 'finished' and j['step'] == $N"
    same_checkpoint whole $signal $N
    lines $signal/metrics.jsonl "[l['step'] for l in j if 'loss' in l] == list(range(1, $N + 1))"
done

# An evaluation that was due is made when the run goes on.
set -- train tiny.yaml --steps 300 --set log.every=1 --set eval.every=1 --set checkpoint.every=0
start "$@" --out owed
until_step 30
kill -INT $pid
finish
ok "$@" --out owed --resume
lines owed/metrics.jsonl "[l['step'] for l in j if 'val_loss' in l] == list(range(1, 301))"

# So is the last one, in which a run that has taken its steps is not finished: what it says of itself is of all its weights.
set -- train tiny.yaml --steps 30 --set data.chars=3000000 --set eval.every=20 --set eval.batches=100000 --set eval.batch_size=1 --set log.every=1 --set checkpoint.every=0
start "$@" --out last
until_step 30
kill -INT $pid
finish
[ "$code" = 0 ] && grep -q '^stopped after 30 steps, .*; continue with --resume$' rest || fail "stopped in the last evaluation: $code $(tail -3 rest)"
json last/run.json "j['state'] == 'stopped' and j['step'] == 30"
ok "$@" --out last --resume
json last/run.json "j['state'] == 'finished' and j['step'] == 30"
lines last/metrics.jsonl "[l['step'] for l in j if 'val_loss' in l] == [20, 30]"
set -- train tiny.yaml --steps $N --set log.every=1 --set eval.every=0 --set checkpoint.every=0 --set model.dropout=0.1 \
    --set train.accumulate=2

# A terminal that closes sends SIGHUP more than once; a run that was started with nohup hears none.
start "$@" --out twice
until_step 30
kill -HUP $pid
kill -HUP $pid
finish
[ "$code" = 0 ] || fail "SIGHUP twice: exit code $code: $(cat err)"
mkfifo pipe
nohup "$HONE" "$@" --out nohup >pipe 2>err </dev/null &
pid=$!
exec 5<pipe
rm pipe
until_step 30
kill -HUP $pid
finish
[ "$code" = 0 ] && [ -d "nohup/checkpoints/step-0000$N" ] || fail "nohup: exit code $code: $(tail -3 rest)"

# Somebody's SIGABRT is no library's: it ends the process as ever.
start "$@" --out abort
until_step 30
kill -ABRT $pid
finish
[ "$code" = 134 ] && [ ! -s err ] || fail "SIGABRT: exit code $code: $(cat err)"

# A file at the limit of the process is a full disk: a warning, exit code 3 at the end, and what was saved before is whole.
ok train tiny.yaml --steps 10 --out limit
(ulimit -f 40; exec "$HONE" train tiny.yaml --steps 40 --out limit --resume >out 2>err) && fail "the limit: exit code 0" || code=$?
[ "$code" = 3 ] || fail "the limit: exit code $code: $(cat err)"
grep -q "^hone: cannot write 'limit/.*: File too large$" err || fail "the limit: $(cat err)"
[ "$(ls -A limit/checkpoints)" = step-00000010 ] || fail "the limit: checkpoints: $(ls -A limit/checkpoints)"
ok train tiny.yaml --steps 40 --out limit --resume

# A step of a million batches is not waited for: what it has done so far is undone.
start train tiny.yaml --steps 3 --set train.warmup=1 --set train.accumulate=1000000 --set log.every=1 --set model.dropout=0.1 --out long
while [ ! -e long/metrics.jsonl ]; do sleep 0.05; done
sleep 0.3
kill -INT $pid
finish
[ "$code" = 0 ] || fail "a long step: exit code $code: $(cat err)"
grep -q '^stopped after 0 steps; continue with --resume$' rest || fail "a long step: $(cat rest)"
# The checkpoint of step 0 holds no trace of the unfinished step: zeroed accumulators, moments and counters.
python3 - long/checkpoints/step-00000000/state.safetensors <<'PY' || fail "the state after 0 steps is not zero"
import sys, struct
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
sys.exit(any(data[8 + size:]))
PY

# --json says that it was interrupted.
"$HONE" train tiny.yaml --set train.steps=1000000 --set eval.every=0 --out json --json >out 2>err &
pid=$!
while ! grep -q '^\[5\] loss' err; do sleep 0.05; done
kill -INT $pid
wait $pid || fail "--json: exit code $?"
json out 'j["interrupted"] is True and j["steps"] >= 5 and j["checkpoint"].endswith("/step-%08d" % j["steps"])'

# A profile that is stopped has the steps that there are, and all that follows from them: what passes that are off would do is in it.
ok bench tiny.yaml --seconds 0.1                        # the peaks are known then
"$HONE" profile tiny.yaml --steps 100000 --set optimize.passes=none --out profile >out 2>err &
pid=$!
until [ $(( 0x$(sed -n 's/^SigCgt:\s*//p' /proc/$pid/status) & 2 )) != 0 ]; do sleep 0.02; done
sleep 2
kill -INT $pid
wait $pid || fail "profile: exit code $?: $(cat err)"
json profile/report.json 'j["step"]["steps"] < 100000 and any(f["pass"] for f in j["findings"])'
