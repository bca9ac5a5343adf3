# hone doctor: the machine, its peaks, and what it says of good and bad configs.
. "$(dirname "$0")/lib"
export CUDA_VISIBLE_DEVICES=''         # without a GPU, also where there is one
tiny

ok doctor tiny.yaml --json
json out 'all(k in j for k in ("version", "isa", "blas", "cpu", "cores", "usable_cores", "memory_bytes", "available_bytes", "peaks",
    "config", "checks"))'
json out 'all(j["peaks"][k] > 0 for k in ("f32_gflops", "f32_gflops_1_thread", "copy_gb_per_s"))'
json out '0 < j["available_bytes"] <= j["memory_bytes"] and j["usable_cores"] >= 1 and j["config"] == "tiny"'
json out 'len(j["checks"]) >= 4 and not any(c["problem"] for c in j["checks"] if not c["text"].startswith(("threads", "device is auto")))'
json out '[b["gpu_gb"] for b in j["largest_batch"]] == [12, 16, 24, 80] and j["gpu_details"] is None and j["links"] is None'
json out 'all(0 < b["batch"] <= b["with_bf16"] <= b["with_both"] and b["batch"] <= b["with_recompute"] <= b["with_both"] for b in j["largest_batch"])'
json out '[c["text"].split(":")[1] for c in j["checks"] if c["text"].startswith("batch:")] == [" on a GPU of %d GB" % g for g in (12, 16, 24, 80)]'
json out 'j["data_disk"] is null and j["disk"]["free_bytes"] > 0 and j["disk"]["read_mb_per_s"] > 0 and abs(j["disk"]["read_mb"] - 33.5544) < 1e-3'
json out 'j["disk"]["way"] in ("direct", "dropped", "cached", "memory")'
json out '0 < j["largest_batch"][0]["batch"] < j["largest_batch"][3]["batch"] or j["largest_batch"][0]["batch"] == 65536'
json out '0 < j["pace"]["f32"] <= 1 and 0 < j["pace"]["clock"] <= 1 and (j["pace"]["bf16"] is None) == (j["peaks"]["bf16_gflops"] == 0)'
json out 'j["pace"]["delayed_share"] is null or 0 <= j["pace"]["delayed_share"] <= 1'
json out '[c["text"].split(" FLOP per step, at least ")[0][-2:] for c in j["checks"] if c["text"].startswith("time:")] == [" M"]'
[ ! -s err ] || fail "doctor --json wrote to stderr: $(cat err)"

# How long its run takes: as many steps and evaluations as train makes, and what they sum up to.
json out 'j["run"]["steps"] == 20 and j["run"]["timed"] == 10 and j["run"]["step_ms"] > 0 and j["run"]["evaluation_ms"] > 0'
json out 'abs(j["run"]["run_s"] * 1e3 - j["run"]["steps"] * j["run"]["step_ms"] - j["run"]["evaluations"] * j["run"]["evaluation_ms"]) < 1e-6'
json out '["each; 2, as many as are there at once, take" in c["text"] for c in j["checks"] if c["text"].startswith("checkpoints:")] == [True]'
cp out said
ok train tiny.yaml --out counted
json said "j['run']['evaluations'] == $(grep -c '"val_loss"' counted/metrics.jsonl)"
sed 's/.*checkpoints: \([0-9.]*\) kB each.*/\1/; t; d' said >each
python3 - "$(cat each)" "$(cat counted/checkpoints/step-00000020/*.safetensors | wc -c)" <<'PY' || fail "a checkpoint of tiny: $(cat each) kB said; $(ls -l counted/checkpoints/*)"
import sys
said, real = float(sys.argv[1]) * 1e3, float(sys.argv[2])
sys.exit(not 0 <= real - said < 0.1 * real)         # names and sizes of tensors are beside them
PY

# Other work has the cores: the best of short products does not show it, what is said of now does.
if grep -q '"delayed_share": [0-9]' out; then
    for i in $(seq $(($(nproc) * 2))); do
        timeout 120 sh -c 'while :; do :; done' &
        busy="${busy-} $!"
    done
    ok doctor
    kill $busy
    grep -q '^           other work takes the cores for [0-9]* % of the time: steps take longer by that and more$' out || fail "a busy machine: $(cat out)"
fi

# Measuring takes seconds: on a terminal it is seen, and no longer than that.
if command -v script >/dev/null; then
    SHELL=$(command -v bash) script -qec "$(printf '%q' "$HONE") doctor >out" /dev/null >screen </dev/null || fail "$(cat screen)"
    tr '\r' '\n' <screen | grep -q 'measuring the peaks of all cores' || fail "nothing is seen of it: $(cat -v screen)"
    ! grep -q measuring out || fail "it is in the output: $(cat out)"
fi

# the best that was ever seen is kept, until it is measured anew
sed -i 's/"product_gflops": [0-9.e+]*/"product_gflops": 987654321.0/' cache/hone/peaks.json
python3 -c 'open("a.bin", "wb").write(bytes(range(16)) * 8 * 16384)'
ls -A >before
run doctor tiny.yaml --set train.clip=0 --set device=cuda --set eval.every=3 --set train.batch_size=1000000 --set data.source=bin --set data.path=a.bin --set model.vocab=4096
ls -A | grep -v '^after$' >after
same "the folder after doctor" after before
grep -qE '^disk       here: .* free, reads at [0-9.]+ [kMG]B/s \(33.6 MB, ' out || fail "no disk: $(cat out)"
[ "$code" = 1 ] || fail "problems, and exit code $code"
grep -qE '^now        cores do small products at [0-9]+ % of their best in f32.*, their clock is at [0-9]+ %' out || fail "nothing of now: $(cat out)"
grep -q '^peaks ' out && grep -q '^memory ' out && grep -q '^cpu ' out || fail "no machine: $(cat out)"
grep -q ' 987654321.0 ' out || fail "a peak was forgotten: $(cat out)"
grep -q '!! train.clip is 0' out || fail "no word about clipping: $(cat out)"
grep -q '!! device is cuda' out || fail "no word about the device: $(cat out)"
grep -q '!! evaluation runs' out || fail "no word about evaluation: $(cat out)"
grep -q '^[3-9] problems$' out || fail "no sum: $(tail -1 out)"

# data in files: how fast they are read
ok doctor tiny.yaml --set data.source=bin --set data.path=a.bin --set model.vocab=4096 --json --remeasure
json out 'j["data_disk"]["file"] == "a.bin" and abs(j["data_disk"]["read_mb"] - 2.097152) < 1e-4 and j["data_disk"]["read_mb_per_s"] > 0'
json out '[c["text"].split(" reads at ")[0] for c in j["checks"] if c["text"].startswith("disk")] == ["disk: \x27a.bin\x27"]'
json out 'all("); a run reads its 2.10 MB of data once, when it starts, in " in c["text"] for c in j["checks"] if c["text"].startswith("disk"))'
json out '0 < j["peaks"]["f32_gflops"] < 1e8 and 0 < j["peaks"]["f32_gflops_1_thread"] < 1e8'
! grep -q 987654321 cache/hone/peaks.json || fail "what was to be forgotten is remembered: $(cat cache/hone/peaks.json)"

# keys that another one makes idle are named, and are no problem
ok doctor tiny.yaml --set data.source=bin --set data.path=a.bin --set model.vocab=4096 --json
json out '[c["text"] for c in j["checks"] if c["text"].startswith("key:")] == ["key: data.chars is 20000, and says nothing, as data.source is bin"]'

# data that cannot be read is a problem of the config; the machine is shown all the same
run doctor tiny.yaml --set data.source=text --set data.path=nope.txt
[ "$code" = 1 ] || fail "data that is not there, and exit code $code"
grep -q "!! data: --set data.path=\"nope.txt\": cannot open 'nope.txt': No such file or directory; relative paths start from '$WORK'" out && grep -q '^cpu ' out || fail "$(cat out err)"
refused 2 "hone: --set train.lr=much: train.lr is 'much'; a number is wanted" doctor tiny.yaml --set train.lr=much
refused 2 "hone: --set nonsense=1 changes a config, and none is named; name one: hone doctor CONFIG --set nonsense=1" doctor --set nonsense=1
refused 2 "hone doctor: one argument too many: 'b'; \`hone doctor --help\` shows the options" doctor a b
