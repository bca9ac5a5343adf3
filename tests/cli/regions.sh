# Samples of different lengths: regions train, resume, evaluate, profile and verify; padding is told; what does not fit is refused.
. "$(dirname "$0")/lib"

cat >regions.yaml <<YAML
model: {arch: regions, dim: 16, layers: 2, heads: 2, seq: 43, positions: 64, segments: 3}
data: {source: regions, region: 20, bucket: 8, group: 4, workers: 2}
train: {batch_size: 8, steps: 40, lr: 3.0e-3, warmup: 5}
eval: {every: 20, batches: 2}
checkpoint: {every: 15, keep: 9}
log: {every: 10}
verify: {steps: 4, seconds: 0.1, min_gain: -1}
threads: 2
YAML

# ---- training, and padding in what it tells
ok train regions.yaml --out whole
grep -qx 'data    built-in walks on a grid of 9 × 9: 7154000 training and 784000 validation samples of 24 to 43 tokens' out || fail "$(grep ^data out)"
grep -qE '^\[40\] loss .* tok/s \([0-9]+ real, [0-9.]+ % padding\) \| lr' out || fail "no padding in the log: $(grep '^\[40\]' out)"
grep -qE 'tokens/s, [0-9.]+ % of them padding' out || fail "no padding at the end"
if grep -q 'hone generate' out; then fail 'it writes no text'; fi
lines whole/metrics.jsonl 'all(0 < l["padding_share"] < 0.15 and abs(l["real_tokens_per_s"] / l["tokens_per_s"] + l["padding_share"] - 1) < 1e-6
    for l in j if "loss" in l)'
lines whole/metrics.jsonl '[l["loss"] for l in j if "loss" in l][-1] < j[0]["loss"]'

# ---- without buckets the same samples have longer rows
ok train regions.yaml --out rows --set data.bucket=0 --set data.group=1 --steps 10
grep -qE '^\[10\] .* 2[0-9]\.[0-9] % padding' out || fail "rows of 43 tokens: $(grep '^\[10\]' out)"

# ---- values of 16 bits: features are cast before anything else is done with them
ok train regions.yaml --out narrow --set backend.kernels=reference --set optimize.precision=bf16 --steps 2

# ---- stopped and resumed: the same losses
ok train regions.yaml --out part --steps 15 --set train.schedule=constant --set eval.every=0
ok train regions.yaml --out part --resume --set train.schedule=constant --set eval.every=0
ok train regions.yaml --out one --set train.schedule=constant --set eval.every=0
same_checkpoint part one 40

# ---- evaluation, profile, verify
ok eval whole --batches 3
grep -q 'loss' out || fail "$(cat out)"
ok profile regions.yaml --steps 3 --out prof --set data.bucket=0 --set data.group=1
json prof/report.json '0.2 < j["step"]["padding_share"] < 0.3'
json prof/report.json '["data.bucket=16" in f["fix"] for f in j["findings"] if f["rule"] == "padding-waste"] == [True]'
ok profile regions.yaml --steps 3 --out prof2
json prof2/report.json 'not [f for f in j["findings"] if f["rule"] == "padding-waste"]'
sed 's/bucket: 8/bucket: 43/' regions.yaml >rows.yaml
ok verify rows.yaml regions.yaml

# ---- refusals
refused 2 "hone: 'whole' is a model of arch regions, which writes no text; hone eval tells its loss" generate whole
refused 2 "hone: cannot resume 'whole/checkpoints/step-00000040': data.group was 4 and is now 2; keep it, or start a new run with another --out" \
    train regions.yaml --out whole --resume --set data.group=2
refused 2 "hone: --set model.arch=gpt: data.source is regions, and model.arch gpt reads tokens; set model.arch to regions, or data.source to corpus" \
    train regions.yaml --out no --set model.arch=gpt
[ ! -e no ] || fail 'a refused run leaves nothing'
