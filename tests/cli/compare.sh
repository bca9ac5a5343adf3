# hone compare: runs of all kinds on one page; what it prints and writes; long runs are sampled, and that is said; what is refused.
. "$(dirname "$0")/lib"
tiny
for lr in 0.001 0.01; do ok train tiny.yaml --out lr-$lr --set train.lr=$lr; done
run train tiny.yaml --set train.lr=10 --set train.clip=0 --set train.weight_decay=10 --set train.decay=all --set eval.every=0 --out nan
ok compare lr-0.001/ lr-0.01 nan --out made
[ ! -s err ] || fail "something was written to stderr: $(cat err)"
[ "$(head -n 1 out)" = "report: made/report.html   (also report.md, report.json)" ] || fail "$(cat out)"
loss=$(sed -n 's/.*"val_loss":\([0-9.]*\).*/\1/p' lr-0.01/metrics.jsonl | tail -1)
grep -q "^lr-0.01 ends with the lowest validation loss of those that finished, 2 of 3 runs: $(printf %.4f "$loss"); " out || fail "no headline: $(cat out)"
grep -q '^nan  *nan  *10/20  *nan  *– ' out || fail "no row of the run that failed: $(cat out)"
planned=$(sed -n 's/.*"planned_bytes": *\([0-9]*\).*/\1/p' lr-0.01/run.json)
grep -qE "^  lr-0.01 +█+[^ ]+ +[0-9.]+ +640 +[0-9.]+ [mµ]?s +$(((planned + 500) / 1000)) kB" out || fail "no curve, or not with $planned bytes: $(cat out)"
json made/report.json '(j["kind"] == "compare" and j["best"] == "lr-0.01" and j["keys"][0] == "train.lr" and [r["state"] for r in j["runs"]] == ["finished", "finished", "nan"]
    and [p[0] for p in j["runs"][0]["curve"]["points"]] == [5, 10, 15, 20] and [p[1] for p in j["runs"][0]["curve"]["points"]] == [160, 320, 480, 640]
    and [p[0] for p in j["runs"][1]["validation"]["points"]] == [10, 20] and j["runs"][0]["tokens"] == 640 and j["runs"][0]["curve"]["lines_per_point"] == 1
    and j["runs"][0]["best_val_loss"] <= j["runs"][0]["val_loss"] and j["runs"][2]["val_loss"] is null and j["runs"][0]["config"]["train.lr"] == "0.001")'
# seconds and losses are those of metrics.jsonl
python3 - <<'PY' || fail "the curves are not those of the run"
null, true, false = None, True, False
j = eval(open("made/report.json").read())
for run in j["runs"]:
    logs = [l for l in map(eval, open(run["folder"] + "/metrics.jsonl")) if "loss" in l]
    assert [(p[0], p[2], p[3]) for p in run["curve"]["points"]] == [(l["step"], l["seconds"], l["loss"]) for l in logs], run["name"]
PY
grep -q '^| lr-0.01 | finished | 20/20 | ' made/report.md || fail "$(cat made/report.md)"
cp made/report.json before.json
ok compare lr-0.001 lr-0.01 nan --out made --json
json out 'j["kind"] == "compare" and len(j["runs"]) == 3'
python3 - <<'PY' || fail "the page is not as expected"
import re
page = open("made/report.html").read()
assert page.rstrip().endswith("</html>") and "{{" not in page and '"kind":"compare"' in page
for outside in (r"<script[^>]*\ssrc", r'<link[^>]*href="(?!data:)', r"@import", r"url\(", r"<img", r"<iframe"):
    assert not re.search(outside, page), outside
PY

# ---- time is written as everywhere else, and has its place in the table
mkdir hours
cp lr-0.01/config.yaml lr-0.01/run.json hours
printf '{"step":20,"loss":1,"steps_per_s":1,"tokens_per_s":32,"seconds":7384}\n' >hours/metrics.jsonl
ok compare hours lr-0.01 --out long
grep -qE '^  hours .* 640 +2:03:04 h +[0-9]' out && grep -qE '^ .* best val +tokens +time +planned +peak$' out || fail "no hours: $(cat out)"
grep -q ' | 2:03:04 h | ' long/report.md || fail "no hours: $(cat long/report.md)"

# ---- one run, and one that was resumed: tokens and time go on
ok compare lr-0.01 --out one
grep -q '^One run, lr-0.01: finished after 20 steps$' out || fail "$(cat out)"
start train tiny.yaml --steps 2000 --set log.every=1 --set eval.every=0 --out halves
until_step 60
kill -INT $pid
finish
ok train tiny.yaml --steps 2000 --set log.every=1 --set eval.every=0 --out halves --resume
ok compare halves lr-0.01 --out both --json
json out '(lambda c: c["lines"] == 2000 and c["lines_per_point"] == 2 and len(c["points"]) == 1000 and c["points"][-1][0] == 2000 and abs(c["points"][-1][1] - 64000) < 1
    and all(c["points"][i][2] < c["points"][i + 1][2] and p[4] <= p[3] <= p[5] for i in range(999) for p in [c["points"][i]]))(j["runs"][0]["curve"])'
json out 'abs(j["runs"][0]["tokens_per_s"] * j["runs"][0]["seconds"] / j["runs"][0]["tokens"] - 1) < 1e-6'

# ---- names that are the same, text that is markup or steers, lines that are garbage
mkdir -p x y
cp -r lr-0.01 x/run
cp -r lr-0.001 y/run
printf 'garbage\n{"step":30' >>x/run/metrics.jsonl
ok compare x/run y/run --out markup
grep -q '^x/run: 1 line of metrics.jsonl could not be read, or goes back, and is left out$' out || fail "$(cat out)"
json markup/report.json '[r["name"] for r in j["runs"]] == ["x/run", "y/run"]'

# ---- a folder of runs, also of more than can be named, with what is no run among them
mkdir -p many/none
for i in $(seq 70); do mkdir many/$i && cp lr-0.01/config.yaml lr-0.01/run.json lr-0.01/metrics.jsonl many/$i; done
ok compare many lr-0.001 --out hundred
json hundred/report.json 'len(j["runs"]) == 71 and j["runs"][0]["name"] == "1" and j["runs"][70]["name"] == "lr-0.001"'

# ---- one without lines is in the table, and the others are compared
rm many/7/metrics.jsonl
ok compare many --out lineless
json lineless/report.json '[(r["state"], r["curve"]["points"], r["tokens"]) for r in j["runs"] if r["name"] == "7"] == [("finished", [], null)] and len(j["runs"]) == 70'

# ---- refused, with nothing written
refused 2 "hone compare: RUN... is missing; \`hone compare --help\` shows examples" compare
mkdir bare
refused 2 "hone: 'bare' holds no run: it has no metrics.jsonl" compare lr-0.01 bare --out none
refused 2 "hone: 'nosuch' does not exist" compare nosuch --out none
mkdir taken
touch taken/report.md
refused 2 "hone: 'taken/report.md' is there, and no report that is known here wrote it; move it away, or give another --out" compare lr-0.01 --out taken
[ ! -e none ] || fail "what was refused left something: $(find none)"
