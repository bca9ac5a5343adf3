# hone analyze: traces from files, gzip, folders and standard input; its answers, files and exit codes.
. "$(dirname "$0")/lib"

# event CATEGORY NAME START LENGTH TID [ARGS]: one event; a device's events have pid 0.
event() {
    local pid=100
    case $1 in kernel | gpu_memcpy) pid=0 ;; esac
    printf '{"ph":"X","cat":"%s","name":"%s","pid":%d,"tid":%d,"ts":%d,"dur":%d,"args":{%s}},\n' "$1" "$2" $pid "$5" "$3" "$4" "${6-}"
}

# step N START: 1000 µs. Two kernels of 300 and 50 µs, a copy of 5 µs, and the host waits for it; then, where COMM says so, a
# collective of so many µs.
step() {
    local t=$2 c=$(($1 * 10))
    event user_annotation "ProfilerStep#$1" $t 1000 100
    event cpu_op aten::linear $((t + 100)) 100 100
    event cpu_op aten::mm $((t + 110)) 80 100
    event cuda_runtime cudaLaunchKernel $((t + 150)) 10 100 "\"correlation\":$((c + 1))"
    event kernel "${KERNEL-gemm_kernel}" $((t + 200)) 300 7 "\"correlation\":$((c + 1)),\"stream\":7,\"device\":0"
    event cpu_op aten::add $((t + 220)) 40 100
    event cuda_runtime cudaLaunchKernel $((t + 230)) 10 100 "\"correlation\":$((c + 2))"
    event kernel add_kernel $((t + 510)) 50 7 "\"correlation\":$((c + 2)),\"stream\":7,\"device\":0"
    event cpu_op aten::item $((t + 300)) 320 100
    event cpu_op aten::_local_scalar_dense $((t + 305)) 310 100
    event cuda_runtime cudaMemcpyAsync $((t + 310)) 10 100 "\"correlation\":$((c + 3))"
    event gpu_memcpy "Memcpy DtoH (Device -> Pageable)" $((t + 570)) 5 7 "\"correlation\":$((c + 3)),\"stream\":7,\"device\":0,\"bytes\":4"
    event cuda_runtime cudaStreamSynchronize $((t + 330)) 280 100 "\"correlation\":$((c + 4))"
    [ "${COMM-}" ] || return 0
    event cpu_op c10d::allreduce_ $((t + 630)) 40 100
    event cuda_runtime cudaLaunchKernel $((t + 640)) 10 100 "\"correlation\":$((c + 5))"
    event kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL $((t + 700)) "$COMM" 20 "\"correlation\":$((c + 5)),\"stream\":20,\"device\":0"
}

# trace [RANK WORLD_SIZE]: the two steps above as a whole trace
trace() {
    cat <<JSON
{"schemaVersion": 1,
"deviceProperties": [{"id": 0, "name": "Test GPU", "totalGlobalMem": 8000000000, "computeMajor": 9, "computeMinor": 0,
  "maxThreadsPerMultiprocessor": 2048, "warpSize": 32, "numSms": 4}],
${1+"\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": $1, \"world_size\": $2},"}
"traceEvents": [
JSON
    step 3 1000000
    step 4 1001000
    printf '{"ph":"i","name":"end","pid":1,"tid":1,"ts":1002000,"s":"g"}\n]}\n'
}
trace >small.json

# ---- the answer
ok analyze small.json
[ ! -s err ] || fail "something was said: $(cat err)"
grep -q '^small · Test GPU · 2 steps, 2 kernels each$' out || fail "the first line: $(head -1 out)"
for part in Iteration '  forward ' 'Step split' 'GPU idle' 'Top kernels' 'Top ops' Findings '  host wait' '  launches ' gemm_kernel aten::item host-sync \
    'as recorded' 'without profiler'; do
    grep -qF -- "$part" out || fail "no '$part' in: $(cat out)"
done
[ "$(tail -1 out)" = '`--out DIR` writes the whole report: timeline, evidence, every fix as code.' ] || fail "the last line: $(tail -1 out)"
! grep -q $'\033' out || fail "colours in a file"

# by hand: the kernels, the copy, what the host did beside them
ok analyze small.json --json
cp out whole.json
json whole.json 'j["device"] == "Test GPU" and [s["step"] for s in j["steps"]] == [3, 4]'
json whole.json 'all((s["total_us"], s["kernel_us"], s["memcpy_us"], s["memset_us"], s["comm_us"], s["runtime_us"],
    s["dataloader_us"], s["cpu_us"], s["other_us"]) == (1000, 350, 5, 0, 0, 65, 0, 100, 480) for s in j["steps"])'
json whole.json '(j["gpu"]["busy_us"], j["gpu"]["idle_us"], j["gpu"]["total_us"]) == (710, 665, 1375)'
json whole.json '[p["name"] for p in j["iteration"]] == ["data", "forward", "backward", "optimizer", "evaluation", "other", "communication"] and not j["iteration_note"]'
json whole.json 'all(abs(sum(p[part] for p in j["iteration"]) - j["corrected"][whole]) < 1e-6 for part, whole in
    (("us", "step_us"), ("recorded_us", "recorded_us"), ("busy_us", "device_us")))'
json whole.json '[p["busy_us"] for p in j["iteration"]] == [0, 350, 0, 0, 0, 5, 0]'
json whole.json 'all(set(f) >= {"rule", "severity", "share", "expected_speedup", "where", "cause", "fix", "evidence"} for f in j["findings"])'
json whole.json '"host-sync" in [f["rule"] for f in j["findings"]]'
json whole.json '[f["expected_speedup"] for f in j["findings"]] == sorted([f["expected_speedup"] for f in j["findings"]])[::-1]'

# a mark that is missing: what lies between is part of no step, and that is said
{ trace | sed '/"name":"end"/d; /^\]}$/d'; step 5 1002000; step 6 1003000; printf '{"ph":"i","name":"end","pid":1,"tid":1,"ts":1004000,"s":"g"}\n]}\n'; } |
    sed '/ProfilerStep#5/d' >unmarked.json
ok analyze unmarked.json --json
[ "$(cat err)" = 'hone: warning: step marks are missing: behind ProfilerStep#4 comes #6; what lies between is taken for no step' ] || fail "no mark 5: $(cat err)"
json out '[s["step"] for s in j["steps"]] == [3, 4, 6] and j["corrected"]["recorded_us"] == j["mean_step"]["total_us"] == 1000'
json out 'j["corrected"]["device_us"] == 355 and j["corrected"]["events_per_step"] == '"$(python3 -c 'import json; print(json.load(open("whole.json"))["corrected"]["events_per_step"])')"

# the step time without the profiler
ok analyze small.json --json --step-ms 0.8
json out 'j["corrected"]["given"] and abs(j["corrected"]["step_us"] - 800) < 1e-6 and abs(j["corrected"]["recorded_us"] - 1000) < 1e-6'
ok analyze small.json --step-ms 0.8
grep -q '^  without profiler *800 µs .*  given$' out || fail "the given step time is not shown: $(cat out)"

# ---- where traces come from
# same_numbers: out says what whole.json says, but for names and sizes of files
same_numbers() {
    python3 - out whole.json <<'PY' || fail "other numbers from $1"
import sys
words = {"null": None, "true": True, "false": False, "__builtins__": {}}
a, b = (eval(open(f).read(), dict(words)) for f in sys.argv[1:])
sys.exit(any(a[k] != b[k] for k in ("device", "steps", "gpu", "findings", "kernels", "ops", "launches", "corrected")))
PY
}
gzip -k small.json
ok analyze small.json.gz --json && same_numbers gzip
"$HONE" analyze - --json <small.json >out && same_numbers "standard input"
"$HONE" analyze - --json <small.json.gz >out && same_numbers "gzip on standard input"
cat small.json | "$HONE" analyze --json - >out && same_numbers "a pipe"
json out 'j["name"] == "-"'
tr -d '\n' <small.json >line.json
ok analyze line.json --json && same_numbers "one line"

mkdir ranks
COMM=200 trace 0 2 >ranks/a.json
COMM=20 trace 1 2 | gzip >ranks/b.json.gz
echo 'not a trace' >ranks/notes.txt
ok analyze ranks --json
json out '[r["rank"] for r in j["ranks"]] == [0, 1] and [r["comm_us"] for r in j["ranks"]] == [200, 20] and j["name"] == "ranks"'
ok analyze ranks/a.json ranks/b.json.gz
grep -q '^Ranks' out || fail "no table of ranks: $(cat out)"
grep -q '^       0 .*  a.json$' out || fail "rank 0 is missing: $(cat out)"
grep -q '^       1 .*  b.json.gz  ← straggler$' out || fail "rank 1 comes last and is not marked: $(cat out)"
[ ! -s err ] || fail "two ranks: said: $(cat err)"

# ranks that do not say which they are: told by their files, and the mark is at the right one
mkdir anonymous workers
for x in '200 w' '150 x' '20 y' '170 z'; do COMM=${x% *} trace >anonymous/${x#* }.json; done
ok analyze anonymous --json
json out '[r["rank"] for r in j["ranks"]] == [None] * 4 and [r["name"] for r in j["ranks"]] == ["w.json", "x.json", "y.json", "z.json"]'
json out '[r["name"] for r in j["ranks"] if r["straggler"]] == ["y.json"] and [c["last_rank"] for c in j["collectives"]] == [None]'
json out '[f["where"] for f in j["findings"] if f["rule"] == "straggler"] == ["y.json"]'
ok analyze anonymous --out anonymous-report
grep -q '^       – .*  y.json  ← straggler$' out || fail "the straggler among unknown ranks: $(cat out)"
[ "$(grep -c '← straggler$' out)" = 1 ] || fail "more than one straggler: $(cat out)"
! grep -q -e '-1' out anonymous-report/report.md || fail "a rank that there is not: $(cat out)"
grep -q '^| y.json | ' anonymous-report/report.md || fail "no y.json among the ranks: $(cat anonymous-report/report.md)"
for r in 0 1; do COMM=$((200 - 180 * r)) trace >workers/worker$r.1694$r.pt.trace.json; done
ok analyze workers --json
json out '[(r["rank"], r["name"], r["straggler"]) for r in j["ranks"]] == [(0, "rank 0", False), (1, "rank 1", True)]'

# traces of one process each are no job, and nobody waits for anybody
mkdir apart
trace >apart/a.json
trace >apart/b.json
ok analyze apart --json
json out 'j["name"] == "apart/a.json" and len(j["ranks"]) == 1 and len(j["warnings"]) == 1'
[ "$(cat err)" = "hone: warning: 'apart/a.json' and 'apart/b.json' are not ranks of one job: they have no collectives in common, and do not say which ranks they are; \
'apart/a.json' alone is judged. Give one trace, the ranks of one job, or compare two with --diff" ] || fail "no job: $(cat err)"
same_numbers "one of two that are no job"
cp apart/a.json anonymous/zz.json
ok analyze anonymous
grep -q "^hone: warning: 'anonymous/zz.json' is left out: no rank of the job of 'anonymous/w.json': they have no collectives in common" err || fail "one too many: $(cat err)"
grep -q '  y.json  ← straggler$' out && ! grep -q 'zz.json$' out || fail "one too many: $(cat out)"

# a job of which ranks are missing
mkdir lacking
for r in 0 2; do COMM=$((200 - 90 * r)) trace $r 4 >lacking/rank$r.json; done
ok analyze lacking
[ "$(cat err)" = "hone: warning: 2 of the job's 4 ranks are missing (1, 3): who waits for them is not seen, and the slowest may be among them" ] ||
    fail "missing ranks: $(cat err)"
grep -q '  rank2.json  ← straggler$' out || fail "missing ranks: those that are there are not judged: $(cat out)"

# ---- what is odd
echo '{"some": "settings"}' >ranks/config.json
ok analyze ranks
grep -q "^hone: warning: passed over: 'ranks/config.json' is JSON without events" err || fail "config.json: $(cat err)"
rm ranks/config.json
{ printf '{"traceEvents": [\n'; event user_annotation ProfilerStep#3 1000 900 100; event user_annotation ProfilerStep#4 2000 900 100; printf '{}]}\n'; } >ranks/marks.json
ok analyze ranks
grep -q "^hone: warning: passed over: 'ranks/marks.json' has no host op, runtime call or device event" err || fail "only marks of steps: $(cat err)"
grep -q '  ← straggler$' out || fail "only marks of steps: the ranks are not judged: $(cat out)"
mkdir marks && mv ranks/marks.json marks
for x in marks marks/marks.json; do
    refused 2 "hone: 'marks/marks.json' has no host op, runtime call or device event; record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]" analyze $x
done
mkfifo ranks/pipe.json
code=0
timeout 20 "$HONE" analyze ranks >out 2>err || code=$?
[ "$code" = 0 ] && [ ! -s err ] || fail "a pipe in a folder: $code $(cat err)"
rm ranks/pipe.json
trace 0 2 >twin.json
ok analyze ranks/a.json twin.json
grep -qx "hone: warning: 'ranks/a.json' and 'twin.json' both say that they are rank 0; give each rank of a job once" err ||
    fail "two times rank 0: $(cat err)"
trace 1 4 >four.json
ok analyze ranks/a.json four.json
[ "$(grep -c "of jobs of 2 and 4 ranks" err)" = 1 ] && [ "$(wc -l <err)" = 1 ] || fail "two sizes of a job: $(cat err)"
# What is wrong with a trace that is left out is said all the same.
sed '0,/"dur": *[0-9.]*/s//"dur": -4/' four.json >odd.json
ok analyze ranks/a.json odd.json
grep -q "odd.json: .*skipped" err || fail "a damaged trace that is left out: $(cat err)"

size=$(stat -c %s small.json)
head -c $((size - 300)) small.json >cut.json
ok analyze cut.json --json
grep -q "^hone: warning: .*ends at byte $((size - 300)) " err || fail "a truncated file: $(cat err)"
json out 'j["trace"]["truncated"] and [s["step"] for s in j["steps"]] == [3] and len(j["warnings"]) == 2'
grep -qx 'hone: warning: the file was cut off within step 4: the last step is left out of all numbers' err || fail "the step in which it ends: $(cat err)"
head -c $(($(stat -c %s small.json.gz) - 20)) small.json.gz >cut.json.gz
ok analyze cut.json.gz --json
grep -q '^hone: warning: .* byte [0-9]' err || fail "a truncated .gz: $(cat err)"
json out 'j["trace"]["truncated"]'

KERNEL='evil \u001b[31m</script><img src=x>' trace >hostile.json
ok analyze hostile.json --out hostile
! grep -q $'\033' out || fail "a name steers the terminal"
! grep -q '<img src=x' hostile/report.html || fail "a name became markup"

# ---- what is wrong
expected='a trace of the PyTorch profiler is JSON with "traceEvents": [{"ph": "X", "cat": "cpu_op", ...}, ...]'
refused 2 "hone analyze: TRACE... is missing; \`hone analyze --help\` shows examples" analyze
refused 2 "hone: cannot find 'nosuch.json': No such file or directory" analyze nosuch.json
refused 2 "hone: cannot find 'nosuch.json': No such file or directory" analyze small.json nosuch.json
refused 2 "hone: cannot find 'nosuch.json': No such file or directory" analyze small.json --diff nosuch.json
mkdir bare
refused 2 "hone: the folder 'bare' has no trace; expected files that end with .json or .json.gz" analyze bare
: >empty.json
refused 2 "hone: 'empty.json' is empty; $expected" analyze empty.json
gzip -c small.json | head -c 20 >short.json.gz
run analyze short.json.gz
[ "$code" = 2 ] && grep -q "^hone: 'short.json.gz' holds nothing that can be read: .*the end is missing at its byte 20 " err || fail "short.json.gz: $(cat err)"
echo '{"some": "settings"}' >settings.json
run analyze settings.json
[ "$code" = 2 ] && grep -q "^hone: 'settings.json' is JSON without events" err || fail "settings.json: $code $(cat err)"
head -c 5000 /dev/urandom >noise.json
run analyze noise.json
[ "$code" = 2 ] && grep -q "^hone: 'noise.json' " err && [ ! -s out ] || fail "noise.json: $code $(cat err)"
refused 2 "hone: '-' is given 2 times; the standard input can be read once" analyze - --diff -
for x in 0 -3 1e300; do
    run analyze small.json --step-ms=$x
    said=$(sed 's/e+/e/' err)
    [ "$code" = 2 ] && [ "$said" = "hone: --step-ms is $x; it must be above 0 and at most 1e9: the milliseconds that a step takes without the profiler" ] ||
        fail "--step-ms $x: $code $said"
done
for x in 1e6 1e-6; do
    ok analyze small.json --json --step-ms=$x
    grep -q "^hone: warning: the given step of .*; it is not taken; is it the time of one step, in ms?$" err || fail "--step-ms $x: $(cat err)"
    json out 'not j["corrected"]["given"] and j["corrected"]["step_us"] <= j["corrected"]["recorded_us"]'
done
ok analyze small.json --json --step-ms 0.3              # the device works for 0.355
[ "$(cat err)" = "hone: warning: the given step of 0.300 ms is shorter than the device's own work of 0.355 ms per step; it is not taken; is it the time of one step, in ms?" ] ||
    fail "--step-ms 0.3: $(cat err)"
json out 'not j["corrected"]["given"] and j["corrected"]["device_us"] == 355 <= j["corrected"]["step_us"]'
ok analyze small.json --json --step-ms 0.35
[ "$(cat err)" = "hone: warning: the given step of 0.350 ms is shorter than the device's own work of 0.355 ms per step; it is taken to be that" ] || fail "--step-ms 0.35: $(cat err)"
json out 'j["corrected"]["given"] and j["corrected"]["device_us"] == j["corrected"]["step_us"] == 355 and j["corrected"]["idle_us"] == 0'
for x in nan inf fast ''; do
    refused 2 "hone analyze: --step-ms takes a number, not '$x'; \`hone analyze --help\` shows the options" analyze small.json --step-ms "$x"
done
refused 2 "hone: --max-slower is 3, and there is no --baseline to hold the step against; give --baseline report.json" analyze small.json --max-slower 3
refused 2 "hone analyze: --fail-on is 'hihg'; choose low, medium, high or critical; did you mean 'high'?" analyze small.json --fail-on hihg
refused 2 "hone analyze: --fail-on is 'never'; choose low, medium, high or critical" analyze small.json --fail-on never

# ---- exit code for CI
for severity in low medium high critical; do
    run analyze small.json --json --fail-on $severity
    echo "$code" >code
    json out "len([f for f in j['findings'] if f['severity'] in ('low', 'medium', 'high', 'critical')[('low', 'medium', 'high', 'critical').index('$severity'):]]) > 0 or $code == 0"
    json out "len([f for f in j['findings'] if f['severity'] in ('low', 'medium', 'high', 'critical')[('low', 'medium', 'high', 'critical').index('$severity'):]]) == 0 or $code == 1"
done
run analyze small.json --fail-on low
[ "$code" = 1 ] && grep -q '^hone: [0-9]* findings* at or above low: .*host-sync' err || fail "--fail-on low: $code $(cat err)"
grep -q '^Findings' out || fail "--fail-on low: nothing was printed"

# ---- two traces
sed 's/"dur":300,/"dur":200,/' small.json >after.json
ok analyze small.json --diff after.json
grep -q 'gemm_kernel' out || fail "the kernel that changed is missing: $(cat out)"
ok analyze small.json --diff after.json --json
json out '(j["a"]["name"], j["b"]["name"]) == ("small.json", "after.json")'
json out 'any(k["name"] == "gemm_kernel" and k["a_us"] == 300 and k["b_us"] == 200 for k in j["kernels"])'
# names of a step on the host: itself, five ops, three calls
json out 'j["ops_equal"] == 9 and j["ops_added"] == 0 and j["ops_removed"] == 0'

# ---- files
ok analyze small.json --out report/
for f in html md json; do [ -s report/report.$f ] || fail "there is no report.$f"; done
[ "$(tail -1 out)" = "report: report/report.html   (also report.md, report.json)" ] || fail "it does not say where: $(tail -1 out)"
cp report/report.json out && same_numbers report.json
ok analyze small.json --diff after.json --out report --json
json out '"kernels" in j and "a" in j'
for f in report.html report.md report.json diff.md diff.json; do [ -s report/$f ] || fail "there is no $f"; done
same "diff.json" report/diff.json out
[ "$(cat err)" = "report: report/report.html   (also report.md, report.json, diff.md, diff.json)" ] || fail "it says: $(cat err)"
ok analyze small.json --out report                  # replaces all of it
[ ! -e report/diff.md ] || fail "a file of the report before is left"
mkdir mine
echo precious >mine/report.json
refused 2 "hone: 'mine/report.json' is there, and no report that is known here wrote it; move it away, or give another --out" \
    analyze small.json --out mine
[ "$(cat mine/report.json)" = precious ] && [ "$(ls -A mine)" = report.json ] || fail "not as it was: $(ls -A mine)"
refused 2 "hone: cannot find 'nosuch.json': No such file or directory" analyze nosuch.json --out none
[ ! -e none ] || fail "a folder was made for nothing"
[ -z "$(ls -d .hone-new-* report/.hone-new-* 2>/dev/null)" ] || fail "temporary folders are left: $(ls -A . report)"
if [ -c /dev/full ]; then
    code=0; "$HONE" analyze small.json --json >/dev/full 2>err || code=$?
    [ "$code" = 3 ] && [ "$(cat err)" = "hone: cannot write to the standard output" ] || fail "full: $code $(cat err)"
fi
