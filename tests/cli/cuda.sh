# device: cuda. Without a GPU it is refused with clear words and nothing is written; with one, a run is trained, goes on, and is used.
. "$(dirname "$0")/lib"
tiny
no="hone: device is cuda, and"
try="; try device: cpu"
none="this build of hone has no CUDA backend: install CUDA 12 or newer (nvcc, cuBLAS) and a C++ compiler and build it again (docs/start.md)"

# nowhere WHY ARGS...: refused for that reason, whatever the machine: GPUs are hidden.
nowhere() {
    local why=$1
    shift
    CUDA_VISIBLE_DEVICES='' refused 3 "$no $why$try" "$@"
    [ ! -e none ] || fail "hone $*: left something behind"
}

run bench tiny.yaml --device cuda --seconds 0.01
gpu=$code
case $(cat err) in
*"has no CUDA backend"*) why=$none ;;
*"no NVIDIA driver"*) why="there is no GPU: no NVIDIA driver is installed" ;;
*) why="there is no GPU: CUDA_VISIBLE_DEVICES is '' and hides them" ;;
esac
nowhere "$why" train tiny.yaml --out none --set device=cuda
nowhere "$why" bench tiny.yaml --device cuda
nowhere "$why" profile tiny.yaml --out none --set device=cuda

# An installed module is found from the program's own folder; one that is damaged is refused, and only for who wants a GPU.
if [ "$why" != "$none" ]; then
    mkdir -p apart/bin apart/lib/hone
    cp "$HONE" apart/bin/hone
    echo damaged >apart/lib/hone/libhone_cuda.so
    code=0
    apart/bin/hone bench tiny.yaml --device cuda >out 2>err || code=$?
    [ "$code" = 3 ] && grep -q "^$no the CUDA module '$WORK/apart/lib/hone/libhone_cuda.so' cannot be loaded: " err ||
        fail "a damaged module: exit code $code, $(cat err)"
    cp "$(dirname "$HONE")/libhone_cuda.so" apart/lib/hone/libhone_cuda.so
    HONE=$WORK/apart/bin/hone nowhere "$why" bench tiny.yaml --device cuda
    mkdir -p lib/hone
    echo damaged | tee libhone_cuda.so >lib/hone/libhone_cuda.so        # never looked at
    nowhere "$why" bench tiny.yaml --device cuda
fi

ok train tiny.yaml --out cpu
sed -n '1s/.* on \(cpu\) .*/\1/p' out | grep -q cpu || fail "not on the CPU: $(head -1 out)"
[ $gpu = 0 ] || { echo "the rest is skipped: $why"; exit 0; }

# ---- with a GPU
run doctor tiny.yaml             # with a GPU that the config does not use it has something to say
grep -q "!! device is auto, which is the CPU, and there is a GPU that is not used: " out || fail "no word about the GPU: $(cat out)"
grep -q "^           products f32 .*, tf32 .*, bf16 .*, f16 .* TFLOP/s$" out || fail "no peaks of the GPU: $(cat out)"

# A profile of the GPU speaks of kernels, not of threads, and its parts add up; by whichever way ops are timed.
for events in 0 1; do
    HONE_CUDA_EVENTS=$events ok profile tiny.yaml --steps 6 --set device=cuda --out "seen$events"
    json "seen$events/report.json" 'j["machine"]["gpu"]["name"] and j["machine"]["gpu"]["kernels_per_step"] >= 10 and j["machine"]["gpu"]["ops_timed_by"]'
    json "seen$events/report.json" '[g["name"] for g in j["recorded"]["gaps"]] == ["loader wait", "upload", "idle between kernels", "host"]'
    json "seen$events/report.json" 'abs(sum(g["us"] for g in j["recorded"]["gaps"]) + j["recorded"]["op_self_us"] - j["step"]["median_us"]) < 0.001 * j["step"]["median_us"]'
    ! grep -v '^    ' "seen$events/report.md" | sed 's/tensor cores//g' | grep -i 'thread\|avx\|bfmmla\| cores' || fail "words of a CPU in a report of the GPU"
done
# The device's own rows: what the host started, what was copied, and kernels in their queues, none before its launch.
rows='{n: [e for e in j["traceEvents"] if e["ph"] == "X" and e["cat"] == n] for n in ("launch", "copy", "kernel")}'
if ! grep -q "events behind ops" seen0/report.md; then
    json seen0/trace.json "all($rows.values())"
    json seen0/trace.json "sorted(e['ts'] for e in $rows['kernel'])[0] >= sorted(e['ts'] for e in $rows['launch'])[0] - 20"
    json seen0/trace.json "len($rows['launch']) == 6 and all(e['name'] == 'launch of a graph' for e in $rows['launch'])"
    json seen0/trace.json "{'GPU', 'GPU launches', 'GPU copies', 'GPU queue 0'} <= {e['args']['name'] for e in j['traceEvents'] if e['name'] == 'thread_name'}"
fi
grep -q "events behind ops" seen1/report.md || fail "not timed by events: $(cat seen1/report.md)"

ok train tiny.yaml --out whole --set device=cuda
head -1 out | grep -q ' on cuda (' || fail "not on the GPU: $(head -1 out)"
ok train tiny.yaml --out again --set device=cuda
same_checkpoint whole again 20
# half NAME: the run as it was after step 10, in a folder of its own.
half() { cp -r whole "$1" && rm -r "$1/checkpoints/step-00000020"; }
half parts
ok train tiny.yaml --out parts --set device=cuda --resume
same_checkpoint whole parts 20
HONE_CUDA_GRAPH=0 ok train tiny.yaml --out plain --set device=cuda
same_checkpoint whole plain 20
for lanes in 1 4; do
    HONE_CUDA_LANES=$lanes ok train tiny.yaml --out "lanes$lanes" --set device=cuda
    same_checkpoint whole "lanes$lanes" 20
done
HONE_NVTX=1 ok train tiny.yaml --out named --set device=cuda
same_checkpoint whole named 20
HONE_CUDA_SYNC=1 ok train tiny.yaml --out checked --set device=cuda
same_checkpoint whole checked 20

# A run of one device goes on on the other.
half moved
ok train tiny.yaml --out moved --set device=cpu --resume
cp -r cpu back && rm -r back/checkpoints/step-00000020
ok train tiny.yaml --out back --set device=cuda --resume

ok generate whole --prompt "a" --tokens 20 --temperature 0
cp out one
ok generate whole --prompt "a" --tokens 20 --temperature 0
same "what the GPU writes" out one
nowhere "$why" generate whole
refused 2 "hone generate: --device is 'tpu'; choose cpu or cuda; did you mean 'cpu'?" generate whole --device tpu
ok generate whole --prompt "a" --tokens 20 --temperature 0 --device cpu
same "what the CPU writes" out one
ok generate cpu --prompt "a" --tokens 20 --temperature 0 --device cuda
ok eval whole --json
loss=$(sed -n 's/^  "loss": \(.*\),$/\1/p' out)
ok eval whole --json
json out "j['loss'] == $loss"
ok eval whole --device cpu --json
json out "abs(j['loss'] - $loss) < 1e-4 * $loss and j['tokens'] == 1984"
nowhere "$why" eval whole

# Stages of domains: what is set back and goes on ends as it did.
ok train tiny.yaml --out stages --set device=cuda --set data.domains=prose,code --set checkpoint.keep=9
cp -r stages resumed && rm -r resumed/checkpoints/step-000000[34]0
ok train tiny.yaml --out resumed --set device=cuda --set data.domains=prose,code --set checkpoint.keep=9 --resume
same_checkpoint stages resumed 40
same "forgetting.json" resumed/forgetting.json stages/forgetting.json
ok bench tiny.yaml --device cuda --seconds 0.5 --json
json out 'all(r["device"] == "cuda" and len(r["device_name"]) > 3 and r["ms_per_step"] > 0 and r["steps"] >= 5 and r["mfu_percent"] < 110
    for r in j["results"])'
ok profile tiny.yaml --set device=cuda --steps 3 --out report
sed 's/^threads: 2/device: cuda/' tiny.yaml >gpu.yaml
ok verify tiny.yaml gpu.yaml --steps 10 --seconds 0.1 --set verify.min_gain=-1 --set verify.memory=1000
ok verify gpu.yaml gpu.yaml --steps 4 --seconds 0.1 --set verify.min_gain=-1
ok train tiny.yaml --out rounded --set device=cuda --set optimize.precision=bf16

# ---- samples of different lengths, in rows of several lengths and packed, and regions as they are shipped: the losses of the CPU
# alike NAME ARGS...: train on both devices; losses of all steps and the validation loss agree.
alike() {
    local name=$1
    shift
    ok train "$@" --out "$name-cpu" --set log.every=1
    ok train "$@" --out "$name-gpu" --set log.every=1 --set device=cuda
    python3 - "$name-cpu/metrics.jsonl" "$name-gpu/metrics.jsonl" <<'PY' || fail "$name: the GPU's losses are not the CPU's"
import re, sys
cpu, gpu = [[float(x) for x in re.findall(r'"(?:val_)?loss":([0-9.eE+-]+)', open(f).read())] for f in sys.argv[1:]]
print(cpu, gpu)
sys.exit(not cpu or len(cpu) != len(gpu) or any(abs(a - b) > 2e-3 * abs(a) for a, b in zip(cpu, gpu)))
PY
}
FEW="--set train.batch_size=64 --set eval.batch_size=64 --set eval.batches=1 --set eval.every=4 --set checkpoint.every=0 --set train.warmup=2 --steps 4"
alike regions regions-b1024 $FEW
alike packed regions-b1024 $FEW --set data.group=1 --set data.pack=on --set model.seq=328
alike dropped regions-b1024 $FEW --set data.group=1 --set data.pack=on --set model.seq=328 --set model.dropout=0.1
alike lines tiny.yaml --set data.samples=lines --set data.pack=on
ok train regions-b1024 $FEW --set data.group=1 --set data.pack=on --set model.seq=328 --set device=cuda --set optimize.precision=bf16 --out packed-bf16
ok train regions-b1024 $FEW --set device=cuda --set optimize.precision=bf16 --out regions-bf16
# The batch of 1024 as it is.
ok train regions-b1024 --steps 3 --set eval.every=0 --set checkpoint.every=0 --set device=cuda --out regions-whole
