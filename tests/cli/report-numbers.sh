# Every form of a profile has one step time, and every number in it follows from that.
. "$(dirname "$0")/lib"

# numbers ARGS...: the profile of a config with these settings.
numbers() {
    ok profile tiny.yaml --steps 4 --out p "$@"
    python3 "$HONE_SOURCE/tests/cli/report-numbers.py" p out || { cat out; fail "profile $*: the numbers do not agree"; }
}
tiny
numbers
numbers --set optimize.passes=none --set train.accumulate=3
tiny llama
numbers --set optimize.fuse-loss=off --set optimize.fuse-residual-norm=off
grep -q unfused-loss p/report.md && grep -q -- '--set optimize.fuse-loss=on' p/report.json || fail "no word about fuse-loss: $(cat out)"

# peaks that were measured on a busy machine are beaten, measured again, and raised: nothing is above 100 %
sed -i -e 's/"gemm_gflops": [0-9.e+]*/"gemm_gflops": 0.001/' -e 's/"bf16_gflops": [0-9.e+]*/"bf16_gflops": 0.0/' cache/hone/peaks.json
grep -q '"gemm_gflops": 0.001' cache/hone/peaks.json || fail "$(cat cache/hone/peaks.json)"
numbers
! grep -q '"gemm_gflops": 0.001' cache/hone/peaks.json || fail "a peak that was beaten is still remembered: $(cat cache/hone/peaks.json)"
