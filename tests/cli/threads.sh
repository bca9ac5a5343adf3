# Whole training runs on several threads, with products large enough for the BLAS library: twice the same bits, and on every number of
# threads the losses of one. A library that is not safe to call from several threads at once fails here.
. "$(dirname "$0")/lib"
export XDG_CACHE_HOME=/dev/null         # no choice of kernels: products go by size
cat >wide.yaml <<YAML
model: {arch: gpt, dim: 96, layers: 1, heads: 3, seq: 64}
data: {chars: 200000, workers: 0}
train: {batch_size: 8, lr: 1.0e-3, warmup: 20}
eval: {every: 0}
checkpoint: {every: 0}
log: {every: 1}
YAML
losses() { sed -n 's/.*"loss": \?\([0-9.e+-]*\),.*/\1/p' "$1/metrics.jsonl"; }
steps=300
ok train wide.yaml --steps $steps --set threads=1 --out one
[ "$(losses one | wc -l)" = $steps ] || fail "one thread logged $(losses one | wc -l) losses"
for threads in 2 4; do
    ok train wide.yaml --steps $steps --set threads=$threads --out $threads-a
    ok train wide.yaml --steps $steps --set threads=$threads --out $threads-b
    same_checkpoint $threads-a $threads-b $steps
    losses $threads-a >many
    losses $threads-b | cmp - many || fail "two runs on $threads threads differ in their losses"
    losses one | paste - many | awk '{d = $1 - $2; if (d < 0) d = -d; if (d > 0.02 * $1) {print "step " NR ": " $0; bad = 1}} END {exit bad}' ||
        fail "$threads threads do not learn as one"
done

# ---- more threads than cores: said, and done
cores=$(nproc)
ok train wide.yaml --steps 2 --set train.warmup=1 --set threads=$((cores + 62)) --out too-many
echo "warning: threads is $((cores + 62)) and this process may use $cores core$([ "$cores" = 1 ] || echo s); try 0 (cpu-oversubscribed)" >wanted
same "what is said of too many threads" err wanted
ok train wide.yaml --steps 2 --set train.warmup=1 --set threads=$cores --out enough
[ ! -s err ] || fail "as many threads as cores: $(cat err)"

# ---- threads: 0: where nothing can be remembered all cores; else what was measured once is kept and followed
[ "$cores" -gt 1 ] || exit 0              # one core: there is nothing to choose
cat >tiny.yaml <<YAML
model: {arch: gpt, dim: 16, layers: 1, heads: 2, seq: 8}
data: {chars: 20000, workers: 0}
train: {batch_size: 1, steps: 20, warmup: 2}
eval: {every: 0}
checkpoint: {every: 0}
YAML
taken() { sed -n 's/^  "threads": \([0-9]*\),$/\1/p' "$1/run.json"; }
ok train tiny.yaml --out unkept
[ "$(taken unkept)" = "$cores" ] || fail "without a file of choices: $(taken unkept) threads, not $cores"
export XDG_CACHE_HOME=$WORK/cache
choices=$XDG_CACHE_HOME/hone/choices.json
is_kept() { grep -q 'threads of a step' "$choices" 2>/dev/null; }
while :; do                             # where other work has the cores, nothing may be known: until a quiet moment
    rm -rf measured
    ok train tiny.yaml --out measured
    is_kept && break
    [ $SECONDS -lt 200 ] || skip "other work has the cores: $(cat "$choices")"
    sleep 1
done
grep -q ', kernels [0-9a-f]\{16\}, .*: threads of a step' "$choices" || fail "the key of the choice: $(cat "$choices")"
ok train tiny.yaml --out measured-again
[ "$(taken measured)" = "$(taken measured-again)" ] || fail "two runs chose $(taken measured) and $(taken measured-again) threads"
same_checkpoint measured measured-again 20
# One thread is a candidate for a step as small as this one, and what the file says is what is done.
python3 - "$choices" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
at = text.index("threads of a step")
text = text[:at] + re.sub(r'"variant": "\d+ threads"', '"variant": "1 threads"', text[at:], count=1)
open(sys.argv[1], "w").write(text)
PY
ok train tiny.yaml --out told
[ "$(taken told)" = 1 ] || fail "the file says 1 thread, the run took $(taken told)"
grep -q "^threads 1 of $cores, measured: " out err || fail "nothing is said of the choice: $(cat out err)"
ok bench tiny.yaml --seconds 0.02 --json
json out 'j["results"][0]["threads"] == 1'
"$HONE" verify tiny.yaml tiny.yaml --set threads=0 --steps 3 --seconds 0.1 >out 2>err || [ $? = 1 ] || fail "verify: $(cat err)"
[ "$(grep -c "^[ab]: tiny.yaml, threads 1 of $cores, measured: " out)" = 2 ] || fail "verify does not measure what train runs: $(cat out)"
ok tune tiny.yaml --budget 0 --out predicted
grep -q "^  threads  *1 of $cores, measured: " out || fail "tune does not measure what train runs: $(cat out)"
json predicted/report.json 'j["machine"]["threads"] == 1'
ok train tiny.yaml --set threads=2 --out asked
[ "$(taken asked)" = 2 ] || fail "threads: 2 was asked for, the run took $(taken asked)"

# ---- a run that goes on has the threads that it had, unless it is told otherwise: bits hang on them
export XDG_CACHE_HOME=/dev/null
for way in kept said; do
    ok train tiny.yaml --steps 10 --set threads=1 --out $way
done
ok train tiny.yaml --resume --out kept
grep -q "^threads 1 of $cores, as the run had before; threads: $cores takes all" out err || fail "nothing is said of the threads: $(cat out err)"
[ "$(taken kept)" = 1 ] || fail "1 thread before, $(taken kept) now"
ok train tiny.yaml --resume --set threads=1 --out said
same_checkpoint kept said 20
ok train tiny.yaml --steps 30 --resume --set threads=$cores --out kept
[ "$(taken kept)" = "$cores" ] || fail "$cores threads were asked for, the run took $(taken kept)"

# ---- other work takes cores, and all wait for the thread that has none: one thread, which seems to be faster then, is not taken for that
cat >medium.yaml <<YAML
model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}
data: {chars: 20000, workers: 0}
train: {batch_size: 4, steps: 2, warmup: 1}
eval: {every: 0}
checkpoint: {every: 0}
YAML
two=$(python3 -c 'import os; print(",".join(map(str, sorted(os.sched_getaffinity(0))[:2])))')
on_one() {      # how many of eight runs that know nothing take one thread of two
    local n=0
    for try in 1 2 3 4 5 6 7 8; do
        rm -rf medium fresh
        XDG_CACHE_HOME=$WORK/fresh taskset -c "$two" "$HONE" train medium.yaml --out medium >out 2>err </dev/null || fail "medium.yaml: $(cat err)"
        [ "$(taken medium)" = 2 ] || n=$((n + 1))
    done
    echo "$n"
}
[ "$(on_one)" -le 2 ] || skip "one thread is as fast as two here, or other work has the cores already"
for i in 1 2 3; do
    taskset -c "$two" timeout 60 sh -c 'while :; do :; done' &
    busy="${busy-} $!"
done
trap 'kill $busy; rm -rf "$WORK"' EXIT
beside=$(on_one)
[ "$beside" -le 2 ] || fail "beside other work $beside of 8 runs took one thread"
