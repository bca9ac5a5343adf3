# hone doctor and hone profile on several ranks: how fast they talk, and one report over all. Needs MPI.
. "$(dirname "$0")/lib"
export CUDA_VISIBLE_DEVICES=''
run launch -n 2 doctor --json
! grep -q 'has no MPI module' err || skip "this build has no MPI module"
[ "$code" = 0 ] || fail "doctor on two ranks: exit code $code: $(cat err)"
json out 'j["links"]["ranks"] == 2 and j["links"]["machines"] == 1 and j["links"]["between"] is None'
json out 'j["links"]["within"]["us"] > 0 and j["links"]["within"]["gb_per_s"] > 0 and j["peaks"]["f32_gflops"] > 0'
json cache/hone/links.json 'len(j["entries"]) == 1 and j["entries"][0]["ranks"] == 2 and j["entries"][0]["within"]["us"] > 0'

run launch -n 2 doctor missing.yaml
[ "$code" = 2 ] && [ "$(grep -c '^hone: ' err)" = 1 ] || fail "a config that is not there: $code $(cat err)"

# One report over all ranks, and the one that is late is named.
tiny
sed -i -e 's/threads: 2/threads: 1/' -e 's/batch_size: 2/batch_size: 4/' tiny.yaml
HONE_TEST_DELAY=1:40 run launch -n 2 profile tiny.yaml --steps 4 --out two
[ "$code" = 0 ] || fail "profile on two ranks: exit code $code: $(cat err)"
[ "$(grep -c '^Ranks, per step' out)" = 1 ] && grep -q '^       1 .*  ← straggler$' out || fail "no word of the ranks: $(cat out)"
json two/report.json '[r["rank"] for r in j["ranks"]] == [0, 1] and [r["straggler"] for r in j["ranks"]] == [False, True]'
json two/report.json 'all(abs(r["compute_us"] + r["loader_us"] + r["exposed_comm_us"] + r["wait_us"] - r["step_us"]) < 1 for r in j["ranks"])'
json two/report.json 'all(0 <= r["hidden_share"] <= 1 for r in j["ranks"])'
json two/report.json 'any(f["rule"] == "straggler" and f["where"].startswith("rank 1 (") for f in j["findings"]) and len(j["step"]["times_us"]) == 4'
grep -q '^| 1 (straggler) | ' two/report.md || fail "no ranks in report.md: $(cat two/report.md)"

run launch -n 2 profile tiny.yaml --set train.batch_size=3 --out no
[ "$code" = 2 ] && grep -q '^hone: train.batch_size is 3, and 2 ranks cannot have equal parts of that; make it 2 or 4$' err || fail "a batch of 3: $code $(cat err)"
[ "$(grep -c '^hone: ' err)" = 1 ] && [ ! -e no ] || fail "a batch of 3: $(cat err)"

# Ranks are tuned together: rank 0 decides, the others follow. Here they only predict.
ok launch -n 2 tune tiny.yaml --budget 0 --set optimize.passes=none --out tuned
json tuned/report.json 'j["kind"] == "tune" and len(j["roadmap"]) > 5 and all(s["outcome"] == "not tried" for s in j["stages"])'
json cache/hone/links.json 'j["entries"][0]["ranks"] == 2'
echo mine >tuned/base.yaml
run launch -n 2 tune tiny.yaml --budget 0 --out tuned
[ "$code" = 2 ] && [ "$(grep -c '^hone: ' err)" = 1 ] || fail "a file of somebody's own: $code $(cat err)"
