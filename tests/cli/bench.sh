# hone bench: the fields that other programs rely on are there and are sane.
. "$(dirname "$0")/lib"
tiny

ok bench tiny.yaml lecture-gpt-b4 --threads 1 --seconds 0.3 --json
json out 'list(j) == ["results"] and [r["case"] for r in j["results"]] == ["tiny", "lecture-gpt-b4"]'
json out 'all(r["device"] == "cpu" and r["threads"] == 1 and r["steps"] >= 5 for r in j["results"])'
json out 'all(r[k] > 0 for r in j["results"] for k in ("ms_per_step", "samples_per_s", "tokens_per_s", "peak_mb", "planned_mb",
    "tflops", "mfu_percent"))'
json out 'all(abs(r["samples_per_s"] * r["ms_per_step"] / 1000 - batch) < 1e-3
    for r, batch in ((j["results"][0], 2), (j["results"][1], 4)))'
json out 'all(abs(r["tokens_per_s"] / r["samples_per_s"] - seq) < 1e-3 for r, seq in ((j["results"][0], 16), (j["results"][1], 32)))'
json out 'all(1 < r["loss"] < 10 and r["mfu_percent"] < 100.001 for r in j["results"])'
[ ! -s err ] || fail "bench --json wrote to stderr: $(cat err)"

# a peak that a step beats was wrong: nothing is above it
sed -i 's/"gemm_gflops": [0-9.e+]*/"gemm_gflops": 0.0001/' cache/hone/peaks.json
ok bench tiny.yaml --threads 1 --seconds 0.1 --json
json out 'all(0 < r["mfu_percent"] < 100.001 for r in j["results"])'
! grep -q '"gemm_gflops": 0.0001' cache/hone/peaks.json || fail "a peak that was beaten is still remembered: $(cat cache/hone/peaks.json)"

ok bench tiny.yaml --set model.layers=2 --set train.accumulate=2 --seconds 0.2
[ "$(wc -l <out)" = 2 ] && grep -q '^case  *threads  *ms/step' out && grep -q '^tiny ' out || fail "$(cat out)"

places="'configs', 'SRC/configs' and 'EXE/share/hone/configs'"
refused 2 "hone: there is no config 'nosuch': looked for 'nosuch.yaml' in $places; shipped configs are $(shipped)" bench nosuch
refused 2 "hone: there is no config 'lecture': looked for 'lecture.yaml' in $places; did you mean 'lecture-gpt-b4'?" bench lecture
refused 2 "hone: --set device=tpu: device is 'tpu'; choose auto, cpu or cuda; did you mean 'cpu'?" bench tiny.yaml --device tpu
refused 2 "hone: --set threads=-1: threads is -1; it must be from 0 to 4096" bench tiny.yaml --threads -1
refused 2 "hone: --seconds must be above 0 and --set given at most 62 times" bench tiny.yaml --seconds 0
