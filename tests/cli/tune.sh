# hone tune: the loop on a tiny model, its files and its page, predictions only, gates, an interrupted and a killed run, and what is refused.
. "$(dirname "$0")/lib"
tiny
quick="--set verify.seconds=0.05"

ok tune tiny.yaml --budget 20 $quick --out made/ --json
[ ! -s err ] || fail "something was written to stderr: $(cat err)"
json out '(len(j["stages"]) >= 1 and all(type(s["predicted_speedup"]) == float and (s["kept"] == true or s["kept"] == false) and s["why"]
    for s in j["stages"]) and all(type(s["measured_speedup"]) == float for s in j["stages"] if s["kept"])
    and j["after"]["ops"] <= j["before"]["ops"] and j["before"]["planned_bytes"] > 0 and j["interrupted"] == false)'
json out '(j["schema"] == "hone-report" and j["kind"] == "tune" and len(j["roadmap"]) >= len(j["stages"]) - 1 and j["bound"] and j["headline"]
    and j["machine"]["threads"] == 2 and j["machine"]["fingerprint"] and j["tuned_config"] == "made/tuned.yaml"
    and all(d["phase"] in [1, 2, 3] and d["what"] and d["outcome"] in ["kept", "dropped", "not tried"] for d in j["roadmap"])
    and all(s["what"] and s["change"] for s in j["stages"]) and 0 < j["before"]["mfu_percent"] < 100
    and j["before"]["mfu_peak_type"] == "f32" and len(j["sizes"]) == 6 and all(s["before"]["fits"] and s["after"]["fits"] for s in j["sizes"]))'
same "report.json" made/report.json out
grep -q '^| step | ' made/report.md || fail "no step in the report: $(cat made/report.md)"
grep -q 'passes: none' made/base.yaml || fail "the base has passes: $(cat made/base.yaml)"
ok train made/tuned.yaml --steps 2 --out trained      # a plain config
ok verify made/base.yaml made/tuned.yaml --steps 4 --seconds 0.05 --set verify.min_gain=-1 --set verify.memory=2

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

# a second run takes the place of the first; a folder with something else is not touched
ok tune tiny.yaml --budget 0 --out made
[ "$(head -n 1 out)" = "report: made/report.html   (also report.md, report.json)" ] || fail "$(cat out)"
grep -q '^Nothing was tried: these are predictions only$' out || fail "$(cat out)"
json made/report.json 'all(s["measured_speedup"] == null and not s["kept"] for s in j["stages"]) and j["out_of_time"] and j["changes"] == []'
same "tuned.yaml, when nothing was kept" made/tuned.yaml made/base.yaml
mkdir taken
touch taken/file
refused 2 "hone: 'taken' exists and holds no report; give another --out" tune tiny.yaml --out taken

# gates that no change of rounding passes: flash-attention is dropped, and the report says which gate it was
ok tune tiny.yaml --budget 20 $quick --set verify.gradients=0 --set verify.loss=0 --out strict
json strict/report.json '(any("flash-attention" in s["pass"] for s in j["stages"])
    and all(not s["kept"] and "gate" in s["why"] for s in j["stages"] if "flash-attention" in s["pass"] and s["measured_speedup"] != null))'
! grep -q 'passes:.*flash-attention' strict/tuned.yaml || fail "what was dropped is in the config: $(cat strict/tuned.yaml)"

# a folder whose name must be quoted and is no UTF-8
ok tune tiny.yaml --budget 0 --out "$(printf 'a <b>\377')"
json "$(printf 'a <b>\377')/report.json" 'j["tuned_config"] == "tuned.yaml"'

# stopped on the way: what was proved by then is written
"$HONE" tune tiny.yaml --budget 60 --out stopped >out 2>err &
pid=$!
sleep 1.5
kill -TERM $pid
wait $pid || fail "a stopped tune ended with $?: $(cat err)"
json stopped/report.json 'j["interrupted"] == true and j["headline"][:11] == "Interrupted"'
ok train stopped/tuned.yaml --steps 1 --out stopped-run

# killed on the way: no half-written config, and what was there stays
sums made >before
for delay in 0.1 0.4 1; do
    for out in killed made; do
        "$HONE" tune tiny.yaml --budget 60 --out $out >/dev/null 2>&1 &
        pid=$!
        sleep $delay
        kill -9 $pid
        wait $pid 2>/dev/null || true
    done
    [ ! -e killed ] || fail "a killed tune left something: $(ls killed)"
    sums made >after
    same "the report of before" after before
done
ok tune tiny.yaml --budget 0 --out killed
[ "$(echo $(ls killed))" = "base.yaml report.html report.json report.md tuned.yaml" ] || fail "$(ls killed)"
! ls -d killed.tmp-* made.tmp-* made.old-* 2>/dev/null || fail "temporary folders are left"

refused 2 "hone: --budget is -1; expected seconds, 0 or more" tune tiny.yaml --budget -1
refused 2 "hone tune: CONFIG is missing; \`hone tune --help\` shows examples" tune
