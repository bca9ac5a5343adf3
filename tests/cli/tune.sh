# hone tune: the loop on a tiny model, its files and its page, predictions only, gates, an interrupted and a killed run, and what is refused.
. "$(dirname "$0")/lib"
tiny
quick="--set verify.seconds=0.05"

# consistent REPORT: one set of numbers. The speed-up is the ratio of the steps beside it, of tokens and of MFU, at every size and in
# the gate; what was kept multiplies; what was not measured was not tried.
consistent() {
    python3 - "$1" <<'PY' || fail "$1: the numbers do not agree"
import sys
j = eval(open(sys.argv[1]).read(), {"null": None, "true": True, "false": False, "__builtins__": {}})
def near(x, y, what):
    if x is None or y is None: return
    assert abs(x / y - 1) < 1e-6, (what, x, y)
def ratio(x, y): return None if x is None or y is None else x / y
def points(p):
    a, b = p["before"], p["after"]
    near(ratio(a["step_us"], b["step_us"]), p["speedup"], "step")
    for key in ("tokens_per_s", "samples_per_s") + (("mfu_percent",) if a["mfu_peak_type"] == b["mfu_peak_type"] else ()):
        near(ratio(b[key], a[key]), p["speedup"], key)
    if p["gates"]:
        assert [g["gate"] for g in p["gates"]] == ["gradients", "loss-curve", "validation", "determinism", "memory", "throughput"], p["gates"]
        assert p["gates_pass"] == all(g["pass"] for g in p["gates"])
        if not p.get("taken_back"): near(p["gates"][5]["value"], p["speedup"], "gate")
points(j)
for s in j["sizes"]: points(s)
for f in j["references"]: near(f["step_us"] / f["tuned_step_us"], f["speedup"], f["name"])
product = 1
for s in j["stages"]:
    assert s["outcome"] in ("kept", "dropped", "no gain", "no verdict", "not tried"), s
    assert s["kept"] is (s["outcome"] == "kept") and (s["measured_speedup"] is None) == (s["outcome"] == "not tried"), s
    if s["kept"]:
        assert s["measured_low"] > 1 or "memory falls" in s["why"], s
    if s["outcome"] == "dropped":
        assert s["measured_high"] < 1 or "gate" in s["why"] or j["taken_back"], s
    if s["kept"] and not s["around"]: product *= s["measured_speedup"]
    near(s["cumulative_speedup"], product, "cumulative")
r = j["run"]
if r:
    near(r["before_s"], r["steps"] * j["before"]["step_us"] / 1e6 + r["evaluation_before_s"], "run before")
    if j["after"]["step_us"]: near(r["after_s"], r["steps"] * j["after"]["step_us"] / 1e6 + r["evaluation_after_s"], "run after")
    for s in j["stages"]:
        if s["measured_speedup"] and not s["around"] and not s["kept"]: near(s["saved_s"], r["steps"] * (s["step_before_us"] - s["step_after_us"]) / 1e6, "saved")
        assert (s["saved_s"] is None) == (s["measured_speedup"] is None) and (s["saved_s"] or 0) <= r["before_s"], s
    saved = sum(s["saved_s"] for s in j["stages"] if s["kept"])
    if r["after_s"] and saved > 0: near(saved, r["before_s"] - r["after_s"], "saved by all that was kept")
won = any(s["kept"] and not s["around"] for s in j["stages"])
assert won or not [c for c in j["changes"] if c["key"] != "eval.every"], j["changes"]
if won and not j["interrupted"]:
    assert j["gates"] and all(g["pass"] for g in j["gates"][:5]) and j["speedup_low"] <= j["speedup"] <= j["speedup_high"], j["gates"]
    assert j["speedup_low"] > 1 or j["headline"].startswith("A step is no slower"), j["headline"]
if not won: assert j["speedup"] == 1 and j["before"] == j["after"], j["headline"]
PY
}

# from a config that says passes: none, as one writes a step first; where speed is judged, on one thread
ok tune tiny.yaml --budget 30 $quick --set optimize.passes=none --set threads=1 --out made/ --json
[ ! -s err ] || fail "something was written to stderr: $(cat err)"
cp out made.json
json out '(len(j["stages"]) >= 1 and all(type(s["predicted_speedup"]) == float and s["why"] for s in j["stages"])
    and j["given"] == "the program without passes" and j["check"]["speedup_low"] <= j["check"]["speedup_high"]
    and j["after"]["ops"] <= j["before"]["ops"] and j["before"]["planned_bytes"] > 0 and j["interrupted"] == false)'
json out '(j["schema"] == "hone-report" and j["kind"] == "tune" and len(j["roadmap"]) >= len(j["stages"]) - 1 and j["bound"] and j["headline"]
    and j["machine"]["threads"] == 1 and j["machine"]["fingerprint"] and j["tuned_config"] == "made/tuned.yaml"
    and all(d["phase"] in [1, 2, 3] and d["what"] and d["outcome"] in ["kept", "dropped", "no gain", "no verdict", "not tried"] for d in j["roadmap"])
    and all(s["what"] and s["change"] for s in j["stages"]) and 0 < j["before"]["mfu_percent"] < 100
    and j["before"]["mfu_peak_type"] == "f32" and (len(j["sizes"]) == 6 or not any(s["kept"] and not s["around"] for s in j["stages"])) and all(s["before"]["fits"] and s["after"]["fits"] for s in j["sizes"]))'
consistent made/report.json
same "report.json" made/report.json made.json
json out 'j["run"]["steps"] == 20 and j["run"]["evaluation_before_s"] > 0'
grep -q '^The whole run of 20 steps with its evaluations: .* before, .* after\.$' made/report.md || fail "not a word on the whole run: $(cat made/report.md)"
json out '(j["check"]["believed_above"] >= 1 and all(s["measured_low"] > j["check"]["believed_above"] for s in j["stages"] if s["why"] == "faster")
    and (j["delayed_share"] is null or j["delayed_share"] >= 0))'
grep -q '^| noise | the config against itself: ' made/report.md || fail "not a word on the noise: $(cat made/report.md)"
grep -q '^| step | ' made/report.md || fail "no step in the report: $(cat made/report.md)"
grep -q 'passes: none' made/base.yaml || fail "the base is not what was given: $(cat made/base.yaml)"
ok train made/tuned.yaml --steps 2 --out trained      # a plain config
ok verify made/base.yaml made/tuned.yaml --steps 4 --seconds 0.05 --set verify.min_gain=-1 --set verify.memory=20

# from a config with all passes: it is the base; whatever was not proved is as it was given
ok tune tiny.yaml --budget 8 $quick --out given
consistent given/report.json
json given/report.json 'j["given"] == "the given config" and not any(s["pass"] in ["flash-attention", "fewer-meetings"] for s in j["stages"])'
ok train tiny.yaml $quick --out once
sed -i "s/^  vocab: .*/  vocab: 0/" once/config.yaml                # as it is written, not as the data has it
same "base.yaml" given/base.yaml once/config.yaml
ok tune tiny.yaml --budget 0 $quick --set optimize.fuse-loss=off --out predicted
sed 's/^  fuse-loss: auto$/  fuse-loss: off/' given/base.yaml >wanted.yaml
grep -q '^  fuse-loss: off$' wanted.yaml || fail "$(cat wanted.yaml)"
same "base.yaml of --budget 0" predicted/base.yaml wanted.yaml
same "tuned.yaml of --budget 0" predicted/tuned.yaml wanted.yaml

# the page: one file, with every stage
python3 - made <<'PY' || fail "the page is not as expected"
import re, sys
page = open(sys.argv[1] + "/report.html").read()
report = eval(open(sys.argv[1] + "/report.json").read(), {"null": None, "true": True, "false": False, "__builtins__": {}})
for s in report["stages"]:
    assert '"pass":"%s"' % s["pass"] in page, s["pass"]
assert page.rstrip().endswith("</html>") and "{{" not in page
for outside in (r"<script[^>]*\ssrc", r'<link[^>]*href="(?!data:)', r"@import", r"url\(", r"<img", r"<iframe"):
    assert not re.search(outside, page), outside
PY

# of one config the next tuning takes the place of the last; that of another config, and what was proved where nothing will be, stay
sums made >before
refused 2 "hone: 'made' holds the tuning of another config: threads is 1 in its base.yaml, and 2 here; give another --out, or move it away" \
    tune tiny.yaml --budget 0 $quick --set optimize.passes=none --set threads=2 --out made
cmp -s made/base.yaml made/tuned.yaml || refused 2 "hone: 'made' holds what was proved, and --budget 0 proves nothing; give another --out, or move it away" \
    tune tiny.yaml --budget 0 $quick --set optimize.passes=none --set threads=1 --out made
"$HONE" tune tiny.yaml --budget 60 --set verify.seconds=0.05 --set optimize.passes=none --set threads=1 --out made >out 2>err &
pid=$!
sleep 0.2
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code = 130 ] || fail "a tune that was stopped before anything was proved ended with $code: $(cat out err)"
[ ! -s out ] && grep -q '^hone: .*stopped' err || fail "$(cat out err)"
sums made >after
same "what was proved before" after before
for i in 1 2; do
    ok tune tiny.yaml --budget 0 --out again
    [ "$(head -n 1 out)" = "report: again/report.html   (also report.md, report.json)" ] || fail "$(cat out)"
done
! grep -q 'the time was spent' out || fail "of a budget of 0 something was spent: $(cat out)"
grep -q '^Nothing was tried: these are predictions only$' out || fail "$(cat out)"
json again/report.json 'all(s["measured_speedup"] == null and not s["kept"] and s["why"] == "nothing is tried with a budget of 0" for s in j["stages"]) and not j["out_of_time"] and j["changes"] == []'
same "tuned.yaml, when nothing was kept" again/tuned.yaml again/base.yaml

# a folder with something else is not touched
mkdir taken
touch taken/tuned.yaml
refused 2 "hone: 'taken/tuned.yaml' is there, and no report that is known here wrote it; move it away, or give another --out" \
    tune tiny.yaml --out taken

# gates that no change of rounding passes: flash-attention is dropped, and the report says which gate it was
ok tune tiny.yaml --budget 20 $quick --set optimize.passes=none --set verify.gradients=0 --set verify.loss=0 --out strict
json strict/report.json '(any("flash-attention" in s["pass"] for s in j["stages"])
    and all(s["outcome"] == "dropped" and "gate" in s["why"] for s in j["stages"] if "flash-attention" in s["pass"] and s["measured_speedup"] != null))'
consistent strict/report.json
! grep -q 'passes:.*flash-attention' strict/tuned.yaml || fail "what was dropped is in the config: $(cat strict/tuned.yaml)"

# a larger update where it is asked for: as many samples in an update of base.yaml and of tuned.yaml, by gates the same; the rate by the rule. Where larger
# batches are not proved to be faster, both have the update that was given
ok tune tiny.yaml --budget 8 $quick --set threads=1 --larger-batch sqrt --out larger
consistent larger/report.json
update() { sed -n 's/^  \(batch_size\|accumulate\): //p' "$1" | head -2 | paste -sd' ' | { read -r a b && echo $((a * b)); }; }
json larger/report.json '(j["larger_batch"]["rule"] == "sqrt" and j["larger_batch"]["samples_before"] == 2 and j["larger_batch"]["words"]
    and abs(j["larger_batch"]["lr_after"] ** 2 / j["larger_batch"]["lr_before"] ** 2 * 2 / j["larger_batch"]["samples_after"] - 1) < 1e-9
    and [p["batch"] for p in j["larger_batch"]["sweep"]["points"]][:2] == [2, 4])'
json larger/report.json 'j["larger_batch"]["sweep"]["noisy"] or j["larger_batch"]["samples_after"] in (2, 2 * j["larger_batch"]["sweep"]["sweet_spot"] / 2)'
json larger/report.json "j['larger_batch']['samples_after'] == $(update larger/base.yaml) == $(update larger/tuned.yaml)"
grep -q '^  noise            the config against itself: × ' out || fail "not a word on the noise: $(cat out)"
grep -q '^larger batch: ' out || fail "not a word about the larger batch: $(cat out)"
ok train larger/tuned.yaml --steps 2 --out larger-run
ok tune tiny.yaml --budget 0 --larger-batch linear --out larger-none
grep -qx 'larger batch: not tried: nothing is measured with a budget of 0' out || fail "$(cat out)"
same "tuned.yaml without a larger update" larger-none/tuned.yaml larger-none/base.yaml
ok tune tiny.yaml --budget 0 --larger-batch linear --set model.dropout=0.1 --out larger-dropout
grep -qx 'larger batch: not tried: dropout falls on other samples in other batches, and nothing could be proved' out || fail "$(cat out)"
same "tuned.yaml without a larger update" larger-dropout/tuned.yaml larger-dropout/base.yaml
json made/report.json 'j["larger_batch"] is null and (j["larger_batch_expected"] is null or j["larger_batch_expected"] > 1)'
refused 2 "hone tune: --larger-batch is 'cubic'; choose sqrt or linear" tune tiny.yaml --larger-batch cubic

# a folder whose name must be quoted and is no UTF-8
ok tune tiny.yaml --budget 0 --out "$(printf 'a <b>\377')"
json "$(printf 'a <b>\377')/report.json" 'j["tuned_config"] == "tuned.yaml"'

# stopped on the way: what was proved by then is written, and nothing where that is nothing
"$HONE" tune tiny.yaml --budget 60 --set optimize.passes=none --out stopped >out 2>err &
pid=$!
sleep 1.5
kill -TERM $pid
code=0
wait $pid || code=$?
case $code in
0)
    json stopped/report.json 'j["interrupted"] == true and j["headline"][:11] == "Interrupted" and any(s["kept"] for s in j["stages"])'
    consistent stopped/report.json
    ok train stopped/tuned.yaml --steps 1 --out stopped-run
    ;;
130) [ ! -e stopped ] || fail "nothing was proved, and there is a folder: $(ls stopped)" ;;
*) fail "a stopped tune ended with $code: $(cat err)" ;;
esac

# killed on the way: no half-written config, and what was there stays
sums again >before
for delay in 0.1 0.4 1; do
    for out in killed again; do
        "$HONE" tune tiny.yaml --budget 60 --out $out >/dev/null 2>&1 &
        pid=$!
        sleep $delay
        kill -9 $pid
        wait $pid 2>/dev/null || true
    done
    [ ! -e killed ] || fail "a killed tune left something: $(ls killed)"
    sums again >after
    same "the report of before" after before
done
ok tune tiny.yaml --budget 0 --out killed
[ "$(echo $(ls killed))" = "base.yaml report.html report.json report.md tuned.yaml" ] || fail "$(ls killed)"
! ls -d killed.tmp-* again.tmp-* again.old-* 2>/dev/null || fail "temporary folders are left"

refused 2 "hone: --budget is -1; expected seconds, 0 or more" tune tiny.yaml --budget -1
refused 2 "hone tune: CONFIG is missing; \`hone tune --help\` shows examples" tune
