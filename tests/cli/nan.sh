# A loss or gradient that is not finite: the run stops with advice, or skips the step, and no checkpoint holds it.
. "$(dirname "$0")/lib"
finite() {
    python3 - "$1"/checkpoints/step-*/*.safetensors <<'PY' || fail "$1: a checkpoint holds a NaN or an infinity"
import sys, struct
for path in sys.argv[1:]:
    data = open(path, "rb").read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for (word,) in struct.iter_unpack("<I", data[start:]):
        if word & 0x7F800000 == 0x7F800000:
            sys.exit(path)
PY
}

# ---- a learning rate that no model bears
tiny
set -- train tiny.yaml --steps 400 --set train.lr=10 --set train.clip=0 --set train.weight_decay=10 --set train.schedule=constant --set train.decay=all \
    --set eval.every=0
run "$@" --set optimize.passes=none --out stop
[ "$code" = 2 ] || fail "exit code $code, expected 2: $(cat err)"
step=$(sed -n 's/^hone: step \([0-9]*\): loss is .*/\1/p' err)
grep -qE '^hone: step [0-9]+: loss is -?(nan|inf) and the gradient norm -?(nan|inf|[0-9.e+]+); the weights are kept as they were before it\. Try a lower train\.lr \(now 10\), a longer train\.warmup, train\.clip: 1\.0, or train\.on_nan: skip$' err ||
    fail "$(cat err)"
[ "$(ls stop/checkpoints)" = "$(printf 'step-%08d' "$step")" ] || fail "checkpoints: $(ls stop/checkpoints), stopped at step $step"
finite stop
json stop/run.json 'j["state"] == "nan" and j["reason"][:5] == "step " and j["step"] < j["steps"] == 400'
# It loads, and from these weights, as finite as they are, no number follows: the loss above was not one either.
no_number() {
    run generate "$1" --tokens 5
    [ "$code" = 2 ] && [ ! -s out ] || fail "$1: exit code $code, expected 2 and no text: $(od -c out)"
    sed 's/ is -*nan, / is nan, /' err >said
    echo "hone: '$1/checkpoints/$(printf 'step-%08d' "$2")': the model's output for token 0 is nan, so its weights are not those of a model that trained well" >wanted
    same "what is said of $1" said wanted
}
no_number stop "$step"

# With async-metrics the host sees it when it reads next, here every 7 steps: the same step is named, its update is left out,
# and the run ends there.
run "$@" --set optimize.passes=async-metrics --set log.every=7 --set checkpoint.every=0 --out late
[ "$code" = 2 ] || fail "exit code $code, expected 2: $(cat err)"
end=$(((step + 6) / 7 * 7))
said=$(sed -n "s/^hone: step $step: loss is [^;]*; \(.*\)\. Try a lower train\.lr .*/\1/p" err)
if [ "$step" = "$end" ]; then
    [ "$said" = "the weights are kept as they were before it" ] || fail "$(cat err)"
else
    [ "$said" = "its update was left out, and the run ends after step $end, where this was read" ] || fail "$(cat err)"
fi
[ "$(ls late/checkpoints)" = "$(printf 'step-%08d' "$end")" ] || fail "checkpoints: $(ls late/checkpoints), read at step $end"
cmp stop/checkpoints/*/weights.safetensors late/checkpoints/*/weights.safetensors || fail "steps after the bad one changed the weights"
finite late
no_number late "$end"

# ---- no end of bad steps: skipping gives up
run train tiny.yaml --steps 400 --set train.lr=10 --set train.clip=0 --set train.weight_decay=10 --set train.decay=all \
    --set train.schedule=constant --set train.on_nan=skip --set eval.every=0 --set log.every=20 --set optimize.passes=async-metrics --out give-up
[ "$code" = 2 ] || fail "exit code $code, expected 2"
[ "$(sed -n 's/^hone: step \([0-9]*\): loss is .*/\1/p' err)" = $((step + 99)) ] || fail "gave up elsewhere: $(cat err)"
grep -q '; 100 steps in a row were left out, and that is the most; ' err || fail "not a word on why it gave up: $(cat err)"
json give-up/run.json 'j["state"] == "nan" and "100 steps in a row were left out" in j["reason"]'
! grep -q 'in a row' stop/run.json || fail "a run that skips nothing: $(cat stop/run.json)"
grep -q '^\[40\] loss nan | .* | [0-9]* skipped$' out || fail "no log line with the skipped steps: $(cat out)"
lines give-up/metrics.jsonl 'any(l["loss"] is null and l["skipped"] > 0 for l in j)'
finite give-up

# ---- a bad batch now and then: one character whose embedding overflows. Skipping goes on and counts.
tiny postln
ok train tiny.yaml --set train.lr=0 --steps 5 --out init
python3 - init/checkpoints/step-00000005/weights.safetensors bad.safetensors <<'PY'
import sys, struct
data = bytearray(open(sys.argv[1], "rb").read())
size = struct.unpack("<Q", data[:8])[0]
header = eval(data[8:8 + size].decode(), {})
row, dim = 14, 32                                       # the 15th character, a rare one
at = 8 + size + header["emb.weight"]["data_offsets"][0] + row * dim * 4
data[at:at + dim * 4] = struct.pack("<32f", *([3e38, -3e38] * 16))
open(sys.argv[2], "wb").write(data)
PY
set -- train tiny.yaml --steps 300 --set train.init=bad.safetensors --set train.weight_decay=0 --set log.every=10
run "$@" --out rare-stop
[ "$code" = 2 ] || fail "on_nan: stop: exit code $code, expected 2: $(cat err)"
finite rare-stop
ok "$@" --set train.on_nan=skip --set eval.every=0 --out rare --json
json out 'j["steps"] == 300 and 1 < j["loss"] < 4'
lines rare/metrics.jsonl '0 < j[-1]["skipped"] < 200 and [l["step"] for l in j] == list(range(10, 301, 10))'
finite rare

# ---- weights from which no number follows: the checkpoint is named, and nothing is made up
python3 - init/checkpoints/step-00000005/weights.safetensors huge.safetensors <<'PY'
import sys, struct
data = bytearray(open(sys.argv[1], "rb").read())
size = struct.unpack("<Q", data[:8])[0]
header = eval(data[8:8 + size].decode(), {})
at, end = header["emb.weight"]["data_offsets"]
data[8 + size + at:8 + size + end] = struct.pack("<2f", 3e38, -3e38) * ((end - at) // 8)
open(sys.argv[2], "wb").write(data)
PY
ok train tiny.yaml --set train.init=huge.safetensors --set train.lr=0 --set train.on_nan=skip --set eval.every=0 --steps 1 --set train.warmup=0 --out huge
grep -q '^warning: every step was left out, ' err || fail "nothing is said of a run whose steps were all left out: $(cat err)"
run train tiny.yaml --set train.init=huge.safetensors --set eval.every=0 --steps 5 --set log.every=5 --out all-nan
[ "$code" = 2 ] || fail "exit code $code, expected 2: $(cat err)"
cp all-nan/run.json before.json
run train tiny.yaml --set train.init=huge.safetensors --set eval.every=0 --steps 5 --set log.every=5 --out all-nan --resume
[ "$code" = 2 ] && cmp all-nan/run.json before.json || fail "a run that ended with NaN is resumed, exit code $code: $(cat all-nan/run.json)"
grep -q "^hone: 'all-nan' has no steps left, and it did not end well: step [0-9]*: loss is " err || fail "$(cat err)"
run generate huge --tokens 5 --prompt "a"
[ "$code" = 2 ] && [ "$(cat out)" = a ] || fail "exit code $code: $(od -c out)"
grep -qE "^hone: 'huge/checkpoints/step-00000001': the model's output for token [0-9]+ is -?(nan|inf), so its weights are not those of a model that trained well$" err ||
    fail "$(cat err)"

# ---- a loss that stays finite and runs away is said once; one that falls, or starts where guessing is, is not
tiny
set -- train tiny.yaml --steps 60 --set train.warmup=0 --set eval.every=0 --set train.schedule=constant
ok "$@" --set train.lr=10 --set train.clip=0 --set log.every=1 --out away
[ "$(grep -c 'training runs away' err)" = 1 ] || fail "$(cat err)"
grep -qE '^warning: step [0-9]+: the loss is [0-9.e+]+, and guessing costs [0-9.]+: training runs away\. Try a lower train\.lr \(now 10\), a longer train\.warmup \(now 0\), train\.clip: 1\.0$' err ||
    fail "$(cat err)"
ok generate away --tokens 5                     # far off, but numbers
[ "$(wc -m <out)" = 6 ] || fail "five characters and a newline, expected; not: $(od -c out)"
ok "$@" --set train.lr=0.001 --out stays
grep -q 'runs away' err && fail "$(cat err)"
true
