# optimize.precision: bf16 is said at the start, seen in the program, proved by verify, and leaves checkpoints as they are.
. "$(dirname "$0")/lib"
export CUDA_VISIBLE_DEVICES=''         # without a GPU, also where there is one
tiny

ok train tiny.yaml --steps 12 --out f32
grep -q 'mixed-precision' out && fail "mixed-precision ran in f32: $(cat out)"
ok train tiny.yaml --set optimize.precision=bf16 --steps 12 --out bf16
grep -qE '^passes .*mixed-precision ×[1-9][0-9]*$' out || fail "no word of mixed-precision: $(cat out)"
grep -q '^  precision: bf16$' bf16/config.yaml || fail "$(cat bf16/config.yaml)"
ok train tiny.yaml --set optimize.precision=bf16 --steps 12 --out again
same_checkpoint bf16 again 12
[ -s f32/checkpoints/step-00000012/weights.safetensors ] || fail "no weights"
cmp -s f32/checkpoints/step-00000012/weights.safetensors bf16/checkpoints/step-00000012/weights.safetensors &&
    fail "the weights are those of f32: nothing was rounded"

# memory: the parts, of which copies of weights are one, add up to what is planned
python3 - out <<'PY' || fail "parts of memory: $(grep '^memory' out)"
import re, sys
line = next(l for l in open(sys.argv[1]) if l.startswith("memory"))
unit = {"B": 1, "kB": 1e3, "MB": 1e6}
planned, parts = re.sub(r"\([^)]*\)", "", line).split(" planned:")
size = lambda text: [float(n) * unit[u] for n, u in re.findall(r"([0-9.]+) (k?M?B)", text)]
sys.exit(abs(sum(size(parts)) - size(planned)[0]) > 0.005 * size(planned)[0])
PY

# a run goes on in the other precision, and weights are f32 in both
ok train tiny.yaml --set optimize.precision=bf16 --set train.steps=14 --steps 14 --out f32 --resume
ok generate bf16 --tokens 5
[ -s out ] || fail "no text"

ok train tiny.yaml --set optimize.precision=bf16 --print-program
grep -qE ' matmul .* bf16 ' out || fail "no product of bf16: $(cat out)"
grep -E ' (attn_|layernorm|adamw)' out | grep -q ' bf16 [^(]' && fail "more than products is bf16"
grep -E ' (add_)?layernorm .* bf16 \(' out | grep -q 'n1 bf16' || fail "what products alone read is not stored in bf16: $(cat out)"
grep -E ' attention' out | grep -q ' bf16 [^(]' && rounds=1 || rounds=0
ok doctor
[ "$(grep -c 'bf16 products: AMX' out)" = "$rounds" ] || fail "attention is rounded where there is AMX, and only there: $rounds, $(cat out)"

cp tiny.yaml other.yaml
echo 'optimize: {precision: bf16}' >>other.yaml
ok verify tiny.yaml other.yaml --steps 6 --seconds 0.02 --set verify.min_gain=-1 --set verify.memory=1.1 --json
json out 'j["gates"][0]["gate"] == "gradients" and 1e-4 < j["gates"][0]["value"] < j["gates"][0]["limit"] < 0.1'
run verify tiny.yaml other.yaml --steps 6 --seconds 0.02 --set verify.min_gain=-1 --set verify.gradients_bf16=1e-5
[ "$code" = 1 ] || fail "a limit that bf16 cannot keep: exit code $code"

run doctor tiny.yaml --set optimize.precision=bf16 --json
json out "$code"' == any(c["problem"] for c in j["checks"])'
json out '(j["bf16_products"] and j["peaks"]["bf16_gflops"] > 0 and not any("bf16 products" in c["text"] for c in j["checks"] if c["problem"]) or
    not j["bf16_products"] and j["peaks"]["bf16_gflops"] == 0 and any(c["problem"] and "no bf16 products" in c["text"] for c in j["checks"]))'
looked=$code            # 1 where this CPU has no such products

# MFU is relative to the peak of what the CPU multiplies
wants=$(python3 -c 'import json; print("bf16" if json.load(open("out"))["bf16_products"] else "f32")')
ok bench tiny.yaml --seconds 0.05 --json
json out 'j["results"][0]["mfu_peak_type"] == "f32" and j["results"][0]["mfu_peak_gflops"] > 0'
ok bench tiny.yaml --seconds 0.05 --set optimize.precision=bf16 --json
json out "j['results'][0]['mfu_peak_type'] == '$wants' and 0 < j['results'][0]['mfu_percent']"
ok profile tiny.yaml --steps 2 --set optimize.precision=bf16 --out p
json p/report.json "j['efficiency']['mfu_peak_type'] == '$wants' and j['machine']['peaks']['gemm_gflops'] > 0"

# ops per step: those that run in it, without what the setup does, and once for every micro-batch
run doctor tiny.yaml --set optimize.precision=bf16 --set train.accumulate=3
[ "$code" = "$looked" ] || fail "doctor with micro-batches: exit code $code, without $looked"
ops=$(sed -n 's/.* parameters, \([0-9]*\) ops per step$/\1/p' out)
ok bench tiny.yaml --seconds 0.02 --set optimize.precision=bf16 --set train.accumulate=3 --json
json out "j['results'][0]['ops_per_step'] == $ops"
cat tiny.yaml >accumulated.yaml
sed -i -e 's/^train: {/train: {accumulate: 3, /' accumulated.yaml
echo 'optimize: {precision: bf16}' >>accumulated.yaml
ok verify accumulated.yaml accumulated.yaml --steps 2 --seconds 0.02 --set verify.min_gain=-1 --json
json out "j['ops_a'] == $ops and j['ops_b'] == $ops"

# f16: the loss is scaled before backward, whatever stands between it and the loss that is told, and gradients are brought back: their norm is that of f32.
for more in "--set train.accumulate=2" "--set dist.shards=2" "--set train.accumulate=2 --set dist.shards=2"; do
    for precision in f32 f16; do
        ok train tiny.yaml --set backend.kernels=reference --set optimize.fuse-loss=off --set log.every=1 $more --steps 2 --set optimize.precision=$precision --set eval.every=0 --out scaled-$precision
    done
    python3 - <<'PY' || fail "f16 $more: the norm of the gradients is not that of f32"
import json, sys
a, b = ([json.loads(l)["grad_norm"] for l in open("scaled-%s/metrics.jsonl" % p) if "grad_norm" in l] for p in ("f32", "f16"))
sys.exit(len(a) != 2 or any(abs(x - y) > 0.02 * x for x, y in zip(a, b)))
PY
    rm -rf scaled-f32 scaled-f16
done
