# hone tune: the loop on a tiny model, its files, predictions only, and what is refused.
. "$(dirname "$0")/lib"
tiny

ok tune tiny.yaml --budget 20 --set verify.seconds=0.05 --out made/ --json
[ ! -s err ] || fail "something was written to stderr: $(cat err)"
json out '(len(j["stages"]) >= 1 and all(type(s["predicted_speedup"]) == float and (s["kept"] == true or s["kept"] == false) and s["why"]
    for s in j["stages"]) and all(type(s["measured_speedup"]) == float for s in j["stages"] if s["kept"])
    and j["after"]["ops"] <= j["before"]["ops"] and j["before"]["planned_bytes"] > 0 and j["interrupted"] == false)'
same "report.json" made/report.json out
grep -q '^| step | ' made/report.md || fail "no step in the report: $(cat made/report.md)"
grep -q 'passes: none' made/base.yaml || fail "the base has passes: $(cat made/base.yaml)"
ok train made/tuned.yaml --steps 2 --out trained      # a plain config
ok verify made/base.yaml made/tuned.yaml --steps 4 --seconds 0.05 --set verify.min_gain=-1 --set verify.memory=2

# a second run takes the place of the first; a folder with something else is not touched
ok tune tiny.yaml --budget 0 --out made
grep -q 'no pass made this step faster' out || fail "$(cat out)"
json made/report.json 'all(s["measured_speedup"] == null and not s["kept"] for s in j["stages"]) and j["out_of_time"]'
mkdir taken
touch taken/file
refused 2 "hone: 'taken' exists and holds no report; give another --out" tune tiny.yaml --out taken

# killed on the way: no half-written config
"$HONE" tune tiny.yaml --budget 60 --out killed >/dev/null 2>&1 &
pid=$!
sleep 0.5
kill -9 $pid
wait $pid 2>/dev/null || true
[ ! -e killed/tuned.yaml ] || fail "a killed tune left a config"

refused 2 "hone: --budget is -1; expected seconds, 0 or more" tune tiny.yaml --budget -1
refused 2 "hone tune: CONFIG is missing; \`hone tune --help\` shows examples" tune
