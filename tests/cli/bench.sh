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
XDG_CACHE_HOME=$WORK/apart ok bench tiny.yaml --components --seconds 0.1 --threads 2 --json
json out 'sum(c["us"] for c in j["results"][0]["components"] if c["name"] in ("forward + loss", "backward", "optimizer")) <= 1000 * j["results"][0]["ms_per_step"]'
json out 'all(c["floor_us"] <= c["us"] * 1.0001 for c in j["results"][0]["components"])'

# parts of the step, with what no op takes, are the step
json out '(lambda r: abs(sum(c["us"] for c in r["components"] if c["name"] in ("forward + loss", "backward", "optimizer", "between ops")) / r["ms_per_step"] / 1000 - 1) < 0.1
    and r["components"][-1]["name"] == "between ops")(j["results"][0])'
# the data is not read: how many tokens there are is said
json out '(lambda r: r["vocab"] == 256 and r["vocab_assumed"] and (r["delayed_share"] is null or r["delayed_share"] >= 0)
    and (r["warning"] is null or "other work took the cores" in r["warning"]))(j["results"][0])'

# a peak that a step beats was wrong: nothing is above it
sed -i 's/"gemm_gflops": [0-9.e+]*/"gemm_gflops": 0.0001/' cache/hone/peaks.json
ok bench tiny.yaml --threads 1 --seconds 0.1 --json
json out 'all(0 < r["mfu_percent"] < 100.001 for r in j["results"])'
! grep -q '"gemm_gflops": 0.0001' cache/hone/peaks.json || fail "a peak that was beaten is still remembered: $(cat cache/hone/peaks.json)"

ok bench tiny.yaml --set model.layers=2 --set train.accumulate=2 --seconds 0.2
[ "$(wc -l <out)" = 2 ] && grep -q '^case  *threads  *ms/step' out && grep -q '^tiny ' out || fail "$(cat out)"
grep -q '^random tokens, 256 different ones: model.vocab is left to the data' err || fail "not a word on the vocabulary: $(cat err)"

# columns stay in line behind letters of several bytes
cp tiny.yaml größe-μ.yaml
ok bench tiny.yaml größe-μ.yaml --threads 1 --seconds 0.1
python3 - <<'PY' || fail "the columns are not in line: $(cat out)"
head, *rows = open("out", encoding="utf-8").read().splitlines()
at = head.index("threads") + len("threads")
assert [r.split()[0] for r in rows] == ["tiny", "größe-μ"] and all(r[at - 1] == "1" and r[at] == " " for r in rows), rows
PY

# stopped in the second case: the first one is reported
cp tiny.yaml second.yaml
"$HONE" bench tiny.yaml second.yaml tiny.yaml --threads 1 --seconds 3 --json >out 2>err &
pid=$!
sleep 1
until [ $(( 0x$(sed -n 's/^SigCgt:\s*//p' /proc/$pid/status) & 16384 )) != 0 ]; do sleep 0.05; done        # SIGTERM is caught: the second
kill -INT $pid
wait $pid || fail "a bench that was stopped in its second case ended with $?: $(cat err)"
json out '[r["case"] for r in j["results"]] == ["tiny"]'
[ "$(cat err)" = "stopped before all cases were measured: 1 of 3" ] || fail "$(cat err)"

# ---- --batches: throughput and memory against the batch size, with a word for each
ok bench tiny.yaml --threads 1 --seconds 0.1 --batches 1,2,3,1048576 --set model.dim=64 --set model.seq=128 --json
json out 'list(j) == ["sweeps"] and j["sweeps"][0]["case"] == "tiny" and j["sweeps"][0]["given"] == 2 and j["sweeps"][0]["threads"] == 1'
json out '[p["batch"] for p in j["sweeps"][0]["points"]] == [1, 2, 3, 1048576] and [p["fits"] for p in j["sweeps"][0]["points"]] == [true, true, true, false]'
json out 'all(abs(p["samples_per_s"] * p["ms_per_step"] / 1000 - p["batch"]) < 1e-3 and abs(p["tokens_per_s"] / p["samples_per_s"] - 128) < 1e-3
    for p in j["sweeps"][0]["points"] if p["fits"])'
json out 'j["sweeps"][0]["points"][3]["verdict"] == "does not fit" and j["sweeps"][0]["points"][3]["samples_per_s"] is null and not j["sweeps"][0]["open"]'
json out '[p["planned_mb"] for p in j["sweeps"][0]["points"]] == sorted(p["planned_mb"] for p in j["sweeps"][0]["points"])'
json out '(lambda s: s["sweet_spot"] is null and all(p["verdict"] == "no verdict" for p in s["points"] if p["fits"]) if s["noisy"] else [p["verdict"] for p in s["points"] if p["batch"] == s["sweet_spot"]] == ["sweet spot"]
    and all(p["verdict"] == "too small" for p in s["points"] if p["batch"] < s["sweet_spot"])
    and all(p["verdict"] == "no faster" for p in s["points"] if p["fits"] and p["batch"] > s["sweet_spot"]))(j["sweeps"][0])'
[ ! -s err ] || fail "bench --batches --json wrote to stderr: $(cat err)"

# powers of two and the config's own; ends by itself
ok bench tiny.yaml --threads 1 --seconds 0.05 --batches auto --set train.batch_size=3
sed -n 's/^ *\([0-9]\+\) .*samples.*//; s/^ *\([0-9]\+\) .*[█·].*/\1/p' out | head -4 | paste -sd' ' >sizes
[ "$(cat sizes)" = "1 2 3 4" ] || fail "sizes $(cat sizes): $(cat out)"
[ "$(sed -n 2p out)" = "   batch    ms/step   samples/s    tokens/s    plan MB  samples/s, of the fastest" ] || fail "$(cat out)"
if grep -q '^no verdict: ' out; then
    [ "$(grep -c '%  sweet spot$' out)" = 0 ] && grep -q 'warning: ' out err || fail "$(cat out)"
else
    [ "$(grep -c ' sweet spot$' out)" = 1 ] && grep -qE '^sweet spot: [0-9]+, |^sweet spot so far: ' out || fail "$(cat out)"
fi

# Ctrl-C is heard while a size is timed: those before it are shown, and before there is one it is the end.
stop_sweep() {      # behind so many seconds; a size is timed for five, in steps of half a millisecond (100,000 steps are enough for any)
    "$HONE" bench tiny.yaml --threads 1 --set model.vocab=64 --set model.dim=64 --set model.seq=128 --seconds 10 --batches 1,2 >out 2>err &
    pid=$!
    until [ $(( 0x$(sed -n 's/^SigCgt:\s*//p' /proc/$pid/status) & 16384 )) != 0 ]; do sleep 0.05; done
    sleep "$1"
    kill -INT $pid
    code=0
    wait $pid || code=$?
}
stop_sweep 1
[ "$code" = 130 ] && [ ! -s out ] || fail "a sweep that was stopped in its first size: exit code $code: $(cat out err)"
grep -q '^hone: stopped before ' err || fail "$(cat err)"
stop_sweep 7.5
[ "$code" = 0 ] || fail "a sweep that was stopped in its second size: exit code $code: $(cat err)"
grep -q '^stopped before all were measured$' out && [ "$(grep -c ' █' out)" = 1 ] || fail "$(cat out)"

# exactly, where nothing is timed
run bench tiny.yaml --threads 1 --batches 1048576 --set model.dim=64 --set model.seq=128
[ "$code" = 3 ] || fail "nothing fits, and exit code $code"
sed -e 's/available: .*/available: M/' -e 's/and [0-9.]* MB are free/and M MB are free/' out >said
cat >wanted <<'TEXT'
tiny on cpu, 1 thread, memory available: M
   batch    ms/step   samples/s    tokens/s    plan MB  samples/s, of the fastest
 1048576          -           -           -   PLAN  ························   0 %  does not fit
no batch fits: one of 1048576 needs PLAN MB, and M MB are free; `hone doctor` with this config says what would
TEXT
run bench tiny.yaml --batches 1048576 --set model.dim=64 --set model.seq=128 --set threads=0
! grep -q ' 0 threads' out || fail "$(cat out)"
run bench tiny.yaml --threads 1 --batches 1048576 --set model.dim=64 --set model.seq=128
plan=$(sed -n 's/.*needs \([0-9.]*\) MB.*/\1/p' out)
sed -i "s/PLAN/$plan/" wanted
same "a sweep of which nothing fits" said wanted
badly="it takes auto, or up to 32 sizes from 1 to 1048576 that rise, with commas between them: 8,16,32"
for list in '' , 1, 1,,2 2,1 2,2 0 -1 1x 1.5 1048577 99999999999999999999 "$(seq -s, 33)"; do
    refused 2 "hone: --batches is '$list'; $badly" bench tiny.yaml --batches "$list"
done
refused 2 "hone: --components is of one batch size; give it without --batches" bench tiny.yaml --batches auto --components

places="'configs', 'SRC/configs' and 'EXE/share/hone/configs'"
refused 2 "hone: there is no config 'nosuch': looked for 'nosuch.yaml' in $places; shipped configs are $(shipped)" bench nosuch
start_s=$(date +%s)
refused 2 "hone: there is no config 'nosuch': looked for 'nosuch.yaml' in $places; shipped configs are $(shipped)" bench tiny.yaml nosuch --seconds 60
[ $(($(date +%s) - start_s)) -lt 30 ] || fail "a case was measured before the names were looked at"
refused 2 "hone: there is no config 'lecture': looked for 'lecture.yaml' in $places; did you mean 'lecture-gpt-b4'?" bench lecture
refused 2 "hone bench: --device is 'tpu'; choose cpu or cuda; did you mean 'cpu'?" bench tiny.yaml --device tpu
refused 2 "hone: --set threads=-1: threads is -1; it must be from 0 to 4096" bench tiny.yaml --threads -1
refused 2 "hone: --seconds is 0; it must be above 0" bench tiny.yaml --seconds 0
refused 2 "hone: --set is given 63 times; at most 62 are taken" bench tiny.yaml $(for i in $(seq 63); do echo "--set train.lr=1e-3"; done)
