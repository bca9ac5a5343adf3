# hone doctor on several ranks: how fast they talk, and that it is remembered. Needs MPI.
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
