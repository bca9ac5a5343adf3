# Passes are switched in the config, said at the start, and change neither metrics nor checkpoints.
. "$(dirname "$0")/lib"

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
    for pass in hoist-constants async-metrics hoist-constants,async-metrics; do
        ok "$@" --set optimize.passes=$pass --out $arch-$pass
        grep -qE "^passes  $(echo $pass | sed 's/,/ x[0-9]+, /') x[0-9]+$" out || fail "$pass: $(cat out)"
        same_checkpoint $arch-none $arch-$pass 23
        metrics $arch-$pass/metrics.jsonl >is
        same "the metrics with $pass" is wanted
    done
    set -- "$@" --set train.clip=0              # the last bits of the norm change only what is clipped
    ok "$@" --set optimize.passes=none --out $arch-none-0
    ok "$@" --set optimize.passes=fused-optimizer --out $arch-fused-0
    same_checkpoint $arch-none-0 $arch-fused-0 23
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

# ---- switches
ok train tiny.yaml --set optimize.hoist-constants=off --steps 5 --out off
grep '^passes ' out | grep -q hoist-constants && fail "hoist-constants ran though it is off"
grep -q '^passes .*async-metrics x3' out || fail "$(cat out)"
ok train tiny.yaml --set optimize.passes=none --set optimize.hoist-constants=on --steps 5 --out on
grep -q '^passes  hoist-constants x[0-9]*$' out || fail "$(cat out)"
grep -q '^  passes: none$' on/config.yaml && grep -q '^  hoist-constants: on$' on/config.yaml || fail "$(cat on/config.yaml)"
refused 2 "hone: --set optimize.passes=hoist-constant: optimize.passes: there is no pass 'hoist-constant'; did you mean 'hoist-constants'?" \
    train tiny.yaml --set optimize.passes=hoist-constant
ok bench tiny.yaml --seconds 0.2 --json --set optimize.passes=async-metrics
json out 'j["results"][0]["passes"] == "async-metrics x3" and j["results"][0]["ops_per_step"] > 20'
ok doctor tiny.yaml --set optimize.passes=hoist-constants
grep -q 'passes: hoist-constants x' out || fail "$(cat out)"
