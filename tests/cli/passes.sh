# Passes are switched in the config, said at the start, and change neither metrics nor checkpoints.
. "$(dirname "$0")/lib"
export CUDA_VISIBLE_DEVICES=''         # without a GPU, also where there is one

# metrics FILE: its lines without the times.
metrics() {
    python3 - "$1" <<'PY'
import sys
words = {"null": None, "true": True, "false": False}
for line in open(sys.argv[1]):
    j = eval(line, words)
    print([(k, j[k]) for k in sorted(j) if k in ("step", "epoch", "loss", "lr", "grad_norm", "skipped", "val_loss")])
PY
}

# ---- each of these passes gives the same bits as without it
for arch in gpt llama; do
    tiny $arch
    set -- train tiny.yaml --set model.dropout=0.1 --set train.accumulate=2 --set train.steps=23 --set log.every=7
    ok "$@" --set optimize.passes=none --out $arch-none
    grep -q '^passes  none$' out || fail "$(cat out)"
    metrics $arch-none/metrics.jsonl >wanted
    [ "$(wc -l <wanted)" -ge 6 ] || fail "few metrics: $(cat wanted)"
    for pass in async-metrics hoist-constants,fused-optimizer,async-metrics,no-zero-fill; do
        ok "$@" --set optimize.passes=$pass --out $arch-$pass
        grep -qE "^passes  $(echo $pass | sed 's/,/ ×[0-9]+, /g') ×[0-9]+$" out || fail "$pass: $(cat out)"
        same_checkpoint $arch-none $arch-$pass 23
        metrics $arch-$pass/metrics.jsonl >is
        same "the metrics with $pass" is wanted
    done
done

# ---- metrics are read at every log, evaluation, checkpoint and end, also with long logs and by epochs
tiny
for more in "--set log.every=1000 --set eval.every=0 --set checkpoint.every=0 --steps 150" "--set log.every=1 --steps 20" \
    "--set train.epochs=1 --set data.chars=1200 --set log.every=9 --set eval.every=1 --set checkpoint.every=4"; do
    rm -rf a b
    ok train tiny.yaml $more --set optimize.passes=none --out a
    grep '^epoch' out | sed 's/, .*//' >epochs || true
    ok train tiny.yaml $more --set optimize.passes=async-metrics --out b
    grep '^epoch' out | sed 's/, .*//' >epochs-b || true
    same "the epochs with $more" epochs-b epochs
    metrics a/metrics.jsonl >wanted
    metrics b/metrics.jsonl >is
    same "the metrics with $more" is wanted
done

# ---- a run goes on under other passes: parameters and states are the same
tiny llama
ok train tiny.yaml --set optimize.passes=none --steps 20 --out whole
ok train tiny.yaml --set optimize.passes=none --set train.steps=20 --out parts --set checkpoint.every=10 --set checkpoint.keep=5
rm -r parts/checkpoints/step-00000020
ok train tiny.yaml --set optimize.passes=hoist-constants,async-metrics --steps 20 --out parts --resume
same_checkpoint whole parts 20
metrics whole/metrics.jsonl >wanted
metrics parts/metrics.jsonl >is
same "the metrics after the resume" is wanted
rm -r parts/checkpoints/step-00000020
ok train tiny.yaml --set optimize.passes=all --steps 20 --out parts --resume
ok generate parts --tokens 5 && cp out text
[ -s text ] || fail "no text from a run with all passes"

# Also with sums over batches, which no-zero-fill leaves as they were after a step: checkpoints hold zeros, with it and without.
for first in none no-zero-fill; do
    second=$([ $first = none ] && echo no-zero-fill || echo none)
    ok train tiny.yaml --set train.accumulate=2 --set optimize.passes=$first --steps 20 --out sums-$first --set checkpoint.keep=5
    rm -r sums-$first/checkpoints/step-00000020
    ok train tiny.yaml --set train.accumulate=2 --set optimize.passes=$second --steps 20 --out sums-$first --resume
done
ok train tiny.yaml --set train.accumulate=2 --set optimize.passes=none --steps 20 --out sums
same_checkpoint sums sums-none 20
same_checkpoint sums sums-no-zero-fill 20

# ---- within optimize.memory, in MB, activations are computed again: the same bits
set -- train tiny.yaml --set model.layers=3 --set model.seq=64 --set model.dropout=0.1 --set train.batch_size=8 --steps 5
for passes in none all; do
    ok "$@" --set optimize.passes=$passes --set optimize.precision=f32 --set optimize.autotune=off --set optimize.recompute=off --out kept-$passes
    ok "$@" --set optimize.passes=$passes --set optimize.precision=f32 --set optimize.autotune=off --set optimize.recompute=on \
        --set optimize.memory=1 --out again-$passes
    grep -qE '^passes .*recompute ×3' out || fail "optimize.memory=1: $(cat out)"
    grep -q '^warning: optimize.memory is 1 MB, and a step is planned to take .* MB, with all computed again that can be; try a smaller' err || fail "$(cat err)"
    same_checkpoint kept-$passes again-$passes 5
    ok "$@" --set optimize.passes=$passes --set optimize.recompute=on --set optimize.memory=1000 --out enough-$passes
    grep -q recompute out && fail "optimize.memory=1000: $(cat out)"
    grep -q optimize.memory err && fail "optimize.memory=1000: $(cat err)"
done
run doctor tiny.yaml --set optimize.memory=1 --set optimize.recompute=off --set model.layers=3 --set model.seq=64 --set train.batch_size=8
[ "$code" = 1 ] || fail "a limit that is missed is a problem, and the exit code is $code"
grep -q '^  !! optimize.memory is 1 MB, and a step is planned to take .* MB; try optimize.recompute: on$' out || fail "$(cat out)"

# ---- switches
ok train tiny.yaml --set optimize.hoist-constants=off --steps 5 --out off
grep '^passes ' out | grep -q hoist-constants && fail "hoist-constants ran though it is off"
grep -q '^passes .*async-metrics ×3' out || fail "$(cat out)"
ok train tiny.yaml --set optimize.passes=none --set optimize.hoist-constants=on --steps 5 --out on
grep -q '^passes  hoist-constants ×[0-9]*$' out || fail "$(cat out)"
grep -q '^  passes: none$' on/config.yaml && grep -q '^  hoist-constants: on$' on/config.yaml || fail "$(cat on/config.yaml)"
refused 2 "hone: --set optimize.passes=hoist-constant: optimize.passes: there is no pass 'hoist-constant'; did you mean 'hoist-constants'?" \
    train tiny.yaml --set optimize.passes=hoist-constant
ok bench tiny.yaml --seconds 0.2 --json --set optimize.passes=async-metrics
json out 'j["results"][0]["passes"] == "async-metrics ×3" and j["results"][0]["ops_per_step"] > 20'
ok doctor tiny.yaml --set optimize.passes=hoist-constants
grep -q 'passes: hoist-constants ×' out || fail "$(cat out)"
