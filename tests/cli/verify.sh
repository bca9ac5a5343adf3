# hone verify: exit codes, the JSON document, the files, and what is refused.
. "$(dirname "$0")/lib"
tiny
fast="--steps 4 --seconds 0.02"

# where speed is judged, on one thread: two that share a core with other work take steps of a time slice, or of none
run verify tiny.yaml tiny.yaml $fast --set threads=1 --set verify.min_gain=3 --json
[ "$code" = 1 ] || { cat err >&2; fail "a gain that is not there: exit code $code"; }
json out '([g["gate"] for g in j["gates"]] == ["gradients", "loss-curve", "validation", "determinism", "memory", "throughput"]
    and j["pass"] == false and [g["pass"] for g in j["gates"]] == [true, true, true, true, true, false]
    and all(type(g[k]) == float for g in j["gates"] for k in ("a", "b", "limit", "value"))
    and (j["delayed_share"] is null or 0 <= j["delayed_share"]) and (j["warning"] is null or "other work took the cores" in j["warning"])
    and j["gates"][5]["limit"] == 4 and j["gates"][5]["low"] <= j["gates"][5]["value"] <= j["gates"][5]["high"])'
[ ! -s err ] || fail "something was written to stderr: $(cat err)"

ok verify tiny.yaml tiny.yaml --steps 4 --seconds 0.3 --set verify.min_gain=-1 --set threads=1 --out made/here/
grep -q '^gradients    pass ' out || fail "no row of the gradients: $(cat out)"
grep -q 'every gate holds' out || fail "$(cat out)"
! grep -q "$(printf '\033')" out || fail "colours in a file"
json made/here/verify.json 'j["pass"] == true and len(j["gates"]) == 6'
grep -q '^| determinism | pass |' made/here/verify.md || fail "$(cat made/here/verify.md)"
ok verify tiny.yaml tiny.yaml $fast --set verify.min_gain=-1 --out made/here

# how a step is computed may differ; limits are those of A
sed 's/^threads: 2/threads: 1\nbackend: {kernels: reference}\nverify: {memory: 1000, min_gain: -1}/' tiny.yaml >plain.yaml
ok verify plain.yaml tiny.yaml $fast
run verify tiny.yaml plain.yaml $fast
[ "$code" = 1 ] || fail "the plain kernels are not faster: exit code $code"

# what cannot be compared
sed 's/dim: 32/dim: 64/' tiny.yaml >wide.yaml
refused 2 "hone: 'tiny.yaml' and 'wide.yaml' are of different models: model.dim is 32 and 64" verify tiny.yaml wide.yaml
sed 's/steps: 20/seed: 7/' tiny.yaml >seed.yaml
refused 2 "hone: 'tiny.yaml' and 'seed.yaml' are trained in different ways: train.steps is 20 and 2000" verify tiny.yaml seed.yaml
refused 2 "hone: 'tiny.yaml' and 'seed.yaml' start from different seeds: train.seed is 42 and 7" \
    verify tiny.yaml seed.yaml --set train.steps=20
refused 2 "hone: --steps is 0; it must be 1 to 1000000" verify tiny.yaml tiny.yaml --steps 0
refused 2 "hone: --seconds is 0; it must be above 0 and at most 3600" verify tiny.yaml tiny.yaml --seconds 0
refused 2 "hone verify: A B is missing; \`hone verify --help\` shows examples" verify tiny.yaml
mkdir -p taken
touch taken/file
refused 2 "hone: 'taken/file' is a file, and a report is a folder; give another --out" verify tiny.yaml tiny.yaml --out taken/file

# two reports
ok profile tiny.yaml --steps 3 --out before
# as_if FILE TIMES DELAY CHANGE: before/report.json with these steps, of which the third is the median, and so much of the time taken by other work
as_if() {
    python3 - "$@" <<'PY'
import json, sys
j = json.load(open("before/report.json"))
j["step"]["times_us"] = eval(sys.argv[2])
j["step"]["median_us"] = j["step"]["times_us"][2]
j["machine"]["delayed_share"] = float(sys.argv[3])
exec(sys.argv[4])
json.dump(j, open(sys.argv[1], "w"))
PY
}
as_if quiet.json "[990, 995, 1000, 1005, 1010]" 0 ""
as_if slow.json "[1990, 1995, 2000, 2005, 2010]" 0 ""
as_if near.json "[1000, 1010, 1040, 1060, 1400]" 0 ""
as_if busy.json "[990, 995, 1000, 1005, 1010]" 0.27 ""
as_if more.json "[500, 505, 510, 515, 520]" 0 'j["machine"]["threads"] += 1; j["machine"]["usable_cores"] = 99; j["config_yaml"] = j["config_yaml"].replace("precision: f32", "precision: bf16")'
ok verify quiet.json quiet.json --json
json out '([g["gate"] for g in j["gates"]] == ["step-time", "peak-memory"] and j["pass"] == true and j["gates"][0]["low"] < 0 < j["gates"][0]["high"])'
ok verify slow.json quiet.json
run verify quiet.json slow.json --json
[ "$code" = 1 ] || fail "a slower report: exit code $code"
json out '[g["pass"] for g in j["gates"]] == [false, true] and j["gates"][0]["limit"] == 0.05 and j["gates"][0]["judged"]'
for b in near busy; do
    run verify quiet.json $b.json
    [ "$code" = 1 ] && grep -q '^step-time  *no verdict ' out && grep -q '^no verdict from 1 of 2 gates: ' out || fail "$b: $code $(cat out)"
done
ok verify quiet.json more.json
grep -qE '; [0-9]+ threads after [0-9]+; bf16 after f32$' out || fail "other settings go unsaid: $(cat out)"
python3 - <<'PY'
import json
j = json.load(open("before/report.json"))
j["answers"]["warning"] = "\033[31mcrimson\007"
json.dump(j, open("coloured.json", "w"))
PY
run verify coloured.json before
! grep -q "$(printf '\033\|\007')" err || fail "what a report says goes to the terminal as it is: $(cat -v err)"
grep -q crimson err || fail "$(cat -v err)"
ok profile tiny.yaml --steps 2 --out other --seq-len 8
refused 2 "hone: 'before/report.json' and 'other/report.json' are of different models or batches: 14848 parameters and 14592" \
    verify before other
refused 2 "hone: 'before' is a report and 'tiny.yaml' is not; give two configs or two reports" verify tiny.yaml before
for set in train.lr=1 verify.min_gain=0.3 verify.memory=1; do
    refused 2 "hone: --set $set: with two reports only verify.regression can be set: by how much the second may be slower or larger" verify before before --set $set
done
refused 2 "hone: --steps and --seconds are of two configs; with two reports nothing is measured" verify before before --seconds 1
refused 2 "hone: cannot open 'none.json': No such file or directory" verify before none.json
