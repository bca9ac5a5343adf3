# hone profile and its files, hone explain, and recording a window of a real run.
. "$(dirname "$0")/lib"
tiny

ok profile tiny.yaml --steps 5 --out p
for f in report.html report.md report.json flops_profile.json computational_intensity.json roofline_data.json trace.json; do
    [ -s "p/$f" ] || fail "there is no p/$f"
done
ls p/tensorboard/events.out.tfevents.* >ls.out || fail "there is no event file"
for tag in report operations step/ms memory/alive_mb_by_op memory/step_peak_mb memory/process_peak_mb '| kind | ops | self |' '| op | kind | phase |'; do
    grep -qaF "$tag" p/tensorboard/* || fail "TensorBoard has no '$tag'"
done
# the whole run in seconds, and what each finding alone would save of it
json p/report.json 'j["run"]["steps"] == 20 and abs((j["run"]["seconds"] - j["run"]["evaluation_s"]) / (20 * j["step"]["median_us"] / 1e6) - 1) < 0.5'
json p/report.json 'all(f["saves_s"] is null if f["per_sample"] else abs((f["saves_s"] or 0) - (1 - 1 / f["expected_speedup"]) * (j["run"]["seconds"] - (0 if f["rule"] == "eval-share" else j["run"]["evaluation_s"])))
    < 1e-6 * j["run"]["seconds"] for f in j["findings"])'
grep -q '^Whole run$' out && grep -qE '^  At this speed 20 steps take [0-9.]+ (ms|µs|s), [0-9.]+ (ms|µs|s) of it evaluation$' out || fail "not a word on the whole run: $(cat out)"
grep -q '^## The whole run$' p/report.md || fail "not a word on the whole run: $(cat p/report.md)"
grep -q 'bound by' out || fail "no word on what bounds the step: $(cat out)"
json p/flops_profile.json '(0 < j["efficiency_metrics"]["mfu_percent"] and j["efficiency_metrics"]["device_peak_flops"] > 0 and
    j["performance_metrics"]["flops_per_sec"] > 0 and j["performance_metrics"]["throughput_samples_per_sec"] > 0 and
    j["flops_analysis"]["flops_per_parameter"] > 0)'
json p/computational_intensity.json '(all(k in j for k in ("arithmetic_intensity_flops_per_byte", "memory_bandwidth_used_gb_per_sec",
    "memory_bandwidth_utilization_percent", "memory_bound_vs_compute_bound")))'
json p/trace.json '(len([e for e in j["traceEvents"] if e.get("ph") == "X" and e["name"].startswith("step")]) == 5 and
    all(e["dur"] >= 0 and e["ts"] >= 0 for e in j["traceEvents"] if e.get("ph") == "X"))'

# rows of model.seq tokens are measured, and said where those of the run are shorter
ok profile tiny.yaml --steps 2 --out short --set data.samples=lines --set data.bucket=4 --set data.group=4 --set model.seq=200
words="Every batch was measured at model.seq: the run's batches are shorter, with "
json short/report.json "j['answers']['warning'].find(\"$words\") >= 0 and j['run']['rows_scale'] < 0.95 and j['run']['evaluation_scale'] == 1 and abs(j['run']['seconds'] - j['run']['evaluation_s']) < 20 * max(j['step']['times_us']) / 1e6"
grep -q "$words" short/report.md && tr -s ' \n' ' ' <out | grep -q "$words" || fail "no warning about rows: $(cat out)"
grep -qE '^  At this speed 20 steps take .* \(0\.[0-9]+ of what was measured for steps and 1\.00 for evaluation, as rows of the run are shorter\)$' out || fail "the run is not of its own rows: $(cat out)"
# the loss passes by rows of no sample, and what it has not done is not counted: it would prove a peak that no core has
python3 - <<'END' || fail "arithmetic of the loss is not that of its rows"
import json
p, short = (json.load(open(d + "/report.json")) for d in ("p", "short"))
each = [next(o["flops"] for o in j["ops"] if o["kind"] == "linear_loss") / j["model"]["batch"] / j["model"]["seq"] for j in (p, short)]
share = short["step"]["padding_share"]
assert 0.05 < share < 1 and abs(each[1] / each[0] - (1 - share)) < 1e-3, (each, share)
END
ok profile tiny.yaml --steps 2 --out short --set data.samples=lines --set data.bucket=4 --set optimize.passes=none      # what passes would do is tried on rows of one length

# a report is replaced by a report, and nothing else is
ok profile tiny.yaml --steps 2 --out p --batch-size 3 --seq-len 8
mkdir mine
echo precious >mine/report.json
refused 2 "hone: 'mine/report.json' is there, and no report that is known here wrote it; move it away, or give another --out" \
    profile tiny.yaml --steps 2 --out mine
[ "$(cat mine/report.json)" = precious ] && [ "$(ls -A mine)" = report.json ] || fail "not as it was: $(ls -A mine)"
[ "$(ls p/tensorboard | wc -l)" = 1 ] || fail "events of the report before are left: $(ls p/tensorboard)"
[ "$(echo p/.[a-z]*)" = "p/.hone-report.json p/.lock" ] || fail "temporary folders are left: $(ls -A p)"

refused 2 "hone: --steps is 0; it must be 1 to 100000" profile tiny.yaml --steps 0
refused 2 "hone: --profile is '5'; it takes the first and the last step to record, e.g. 100:110" train tiny.yaml --profile 5
refused 2 "hone: --profile begins at step 21, and the run ends behind step 20" train tiny.yaml --out late --profile 21:22
[ ! -e late ] || fail "a run that was refused leaves a folder: $(ls -A late)"

# names stay text
cp tiny.yaml '<img src=x onerror=alert(1)>.yaml'
ok profile './<img src=x onerror=alert(1)>.yaml' --steps 2 --out hostile
! grep -q '<img src=x' hostile/report.html || fail "a name became markup"

ok train tiny.yaml --steps 6 --out run --profile 3:4 --tensorboard
json run/trace.json 'len([e for e in j["traceEvents"] if e.get("ph") == "X" and e["name"].startswith("step")]) == 2'
json run/trace.json '[(e["name"], e["args"]["step"]) for e in j["traceEvents"] if e.get("cat") == "step"] == [("step 3", 3), ("step 4", 4)]'     # those of the run
ls run/tensorboard/events.out.tfevents.* >ls.out || fail "there is no event file"

ok explain
[ "$(grep -c '^[a-z-]* ' out)" -ge 26 ] || fail "rules are missing: $(cat out)"
ok explain constant-rebuilt
grep -q 'in PyTorch' out || fail "$(cat out)"
refused 2 "hone: there is no rule 'constant-rebuild'; did you mean 'constant-rebuilt'? \`hone explain\` lists them" explain constant-rebuild
