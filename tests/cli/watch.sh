# hone watch: a program is started as it is, and is the same with it as without; what is said when there is nothing to say. Here torch is
# not torch (tests/watch/fake_torch), so that this is tested everywhere; tests/watch/test_programs.py has the real one.
. "$(dirname "$0")/lib"
. "$HONE_SOURCE/tests/cli/lib-watch"

# ---- a program that goes well
OUT=well
for attempt in 1 2 3 4 5; do
    watch -- python3 "$PROGRAMS/loop.py" 60
    grep -qF 'or the machine is busy with something else' err || break          # it was, in the undisturbed steps: once more
done
ended_with 0
first "steps 60 input -"
said "pythonpath $FAKE watch -"                 # the environment is the program's own again
for part in Watched undisturbed 'recorded, shapes' 'recorded, stacks' 'told by Optimizer.step' 'report: well/report.html'; do
    grep -qF -- "$part" out || fail "no '$part' in: $(cat out)"
done
json well/report.json 'j["watched"]["ranks"][0]["undisturbed"]["steps"] == 20 and j["watched"]["ranks"][0]["backwards_per_step"] == 1'
json well/report.json 'j["corrected"]["given"] and abs(j["corrected"]["step_us"] / j["watched"]["ranks"][0]["undisturbed"]["usual_us"] - 1) < 1e-9'
json well/report.json 'j["watched"]["ranks"][0]["finished"] and j["watched"]["ranks"][0]["optimizer_calls_per_step"] == 1'
json well/report.json '2000 <= j["watched"]["ranks"][0]["undisturbed"]["fastest_us"] and len(j["steps"]) == 4 and j["watched"]["ranks"][0]["recorded_stacks"]["steps"] == 3'
grep -q 'Undisturbed and recorded' well/report.html || fail "the page has no part for it"
grep -q 'recorded with shapes' well/report.md || fail "report.md has no part for it"
[ "$(ls | tr '\n' ' ')" = "err out well " ] || fail "written elsewhere: $(ls)"
! find "$HOOK" -name __pycache__ | grep -q . || fail "bytecode beside the hook"

# ---- once more in the same folder; a folder of others
watch --steps 5 --warmup 2 -- python3 "$PROGRAMS/loop.py" 40
ended_with 0
json well/report.json 'j["watched"]["ranks"][0]["undisturbed"]["steps"] == 5'
mkdir -p others/recording
refused 2 "hone: 'others/recording' is there, and no watch that is known here made it; move it away, or give another --out" \
    watch --out others -- python3 "$PROGRAMS/loop.py" 60
mkdir page && echo mine >page/report.html
refused 2 "hone: 'page/report.html' is there, and no report that is known here wrote it; move it away, or give another --out" \
    watch --out page -- python3 "$PROGRAMS/loop.py" 60

# ---- a switch that is not there: nothing is started, and no folder made
refused 2 "hone: there is no switch 'fused'; there are loader-workers, pinned-memory, tf32, autocast-bf16, autocast-f16, fused-optimizer, foreach-optimizer, \
set-to-none, cudnn-benchmark, channels-last, threads-cores, threads-half, affinity, expandable-segments, ddp-large-buckets, ddp-small-buckets, compile" \
    watch --out typo --try --switches tf32,fused -- touch started
[ ! -e started ] && [ ! -e typo ] || fail "the program was started: $(ls)"
run watch --out known --try --switches fused-optimizer,,tf32 -- touch started
[ -e started ] || fail "not started: $(cat err)"
rm started
TRIAL=$HOOK/hone_hook/trial
grep -v '^#' "$TRIAL/switches.txt" | while read -r name class; do
    grep -q "^class $class(" "$TRIAL"/*.py || fail "the switch $name has no class $class"
done

# ---- --stop, --json, standard input, --fail-on
OUT=stop
watch --stop -- python3 "$PROGRAMS/loop.py" 100000
ended_with 0
! grep -q '^steps ' out || fail "it was not stopped"
json stop/report.json 'j["watched"]["ranks"][0]["stopped"]'
"$HONE" watch --out stop --json -- python3 "$PROGRAMS/loop.py" 60 input >out 2>err <<<"a line"
said "steps 60 input a line"
json out 'j["kind"] == "trace" and j["watched"]["ranks"][0]["steps"] == 39'
watch --fail-on low -- python3 "$PROGRAMS/loop.py" 60
ended_with 1
said "at or above low:"

# ---- words of a launcher that are no numbers
for rank in "" abc -1; do
    RANK=$rank WORLD_SIZE=$rank watch -- python3 "$PROGRAMS/loop.py" 60
    ended_with 0
    json stop/report.json 'j["watched"]["ranks"][0]["rank"] == 0 and j["watched"]["ranks"][0]["world_size"] == 1'
done

RANK=0 WORLD_SIZE=8 watch -- sh -c "python3 '$PROGRAMS/loop.py' 60; sleep 2"
ended_with 0
said "hone: report: stop/report.html"              # while it runs: nobody else is waited for
RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 watch -- sh -c "python3 '$PROGRAMS/loop.py' 60; sleep 1"
ended_with 0
! grep -qF "hone: report: " err || fail "its other rank was not waited for"
json stop/report.json 'j["watched"]["ranks"][0]["world_size"] == 2'

# ---- the program's own sitecustomize, and one that is broken
mkdir custom && echo 'print("custom")' >custom/sitecustomize.py
PYTHONPATH=custom:$FAKE watch -- python3 "$PROGRAMS/loop.py" 60
ended_with 0
first custom

# ---- a profile function of the program's own: it stays, and no stacks are recorded
watch -- python3 "$PROGRAMS/loop.py" 60 profiled
ended_with 0
said "its profile function is there: True"
json stop/report.json 'j["watched"]["ranks"][0]["finished"] and j["watched"]["ranks"][0]["recorded_stacks"] is None'
json stop/report.json 'any("profile function of its own" in n for n in j["watched"]["ranks"][0]["notes"])'

# ---- bytecode of the program's modules is written where it would be without hone
mkdir code && echo 'one = 1' >code/beside.py
writes() {
    local wanted=$1
    shift
    rm -rf code/__pycache__
    (unset PYTHONDONTWRITEBYTECODE; "$HONE" watch --out code/report -- "$@" >out 2>err) || true
    [ -e code/__pycache__ ] && found=written || found=none
    [ $found = "$wanted" ] || fail "bytecode is $found of: $*: $(cat err)"
}
writes written python3 -c 'import sys; sys.path.insert(0, "code"); import beside'
writes none python3 -B -c 'import sys; sys.path.insert(0, "code"); import beside'
writes none env PYTHONDONTWRITEBYTECODE=1 python3 -c 'import sys; sys.path.insert(0, "code"); import beside'
rm -r code

# ---- it ends badly by itself
OUT=ends
watch -- python3 "$PROGRAMS/loop.py" 40 die
ended_with 7
said "hone: the program ended with exit code 7"
said "hone: the program ended after 21 steps, before anything was recorded: 39 are needed; let it take more, or give a smaller --warmup or --steps"
watch -- python3 "$PROGRAMS/loop.py" 200 raise
ended_with 1
said "ValueError: as asked"
said "hone: the program ended with exit code 1"
json ends/report.json 'j["watched"]["ranks"][0]["finished"]'        # what was measured before is there
watch -- python3 "$PROGRAMS/loop.py" 40 kill
ended_with 137
said "hone: the program was ended by signal 9 (Killed)"
said "hone: the program ended after at least "

# ---- a fork is not the program; what breaks in the hook is a line
OUT=fork
watch -- python3 "$PROGRAMS/loop.py" 60 fork
ended_with 0
json fork/report.json 'j["watched"]["ranks"][0]["steps"] == 39 and j["watched"]["ranks"][0]["undisturbed"]["steps"] == 20'
FAKE_TORCH_PROFILER=broken watch -- python3 "$PROGRAMS/loop.py" 60
ended_with 2
first "steps 60 input -"
said "hone: watch: RuntimeError: the profiler is broken; the program goes on"
said "hone: watching ended after 30 steps, before anything was recorded: RuntimeError: the profiler is broken"

# ---- the report cannot be written while the program runs: once more at its end; what cannot be read is said once
OUT=early
for sleeps in "sleep 2" "sleep 2; rm early/report.html"; do
    watch -- sh -c "echo mine >early/report.html; python3 '$PROGRAMS/loop.py' 60; $sleeps"
    said "hone: 'early/report.html' is there, and no report that is known here wrote it; move it away, or give another --out"
    [ "$sleeps" != "sleep 2" ] || { ended_with 2; ! grep -q 'report: early' out || fail "a report is named that is not there: $(cat out)"; rm early/report.html; }
done
ended_with 0
grep -q 'report: early/report.html' out || fail "no report is named: $(cat out)"
json early/report.json 'j["watched"]["ranks"][0]["finished"]'
FAKE_TORCH_PROFILER=empty watch -- sh -c "python3 '$PROGRAMS/loop.py' 60; sleep 2"
ended_with 2
[ "$(grep -c 'shapes.json' err)" = 1 ] || fail "not said once: $(cat err)"

# ---- started again by itself, in processes of its own, in a thread; standard error is closed; a folder that cannot be
OUT=ways
watch -- python3 -c "import os, sys; os.environ.get('AGAIN') or os.execve(sys.executable, [sys.executable, '$PROGRAMS/loop.py', '60'], dict(os.environ, AGAIN='1'))"
ended_with 0
first "steps 60 input -"
json ways/report.json 'j["watched"]["ranks"][0]["finished"]'
watch -- python3 "$PROGRAMS/ways.py" spawn
ended_with 0
first "trained"
json ways/report.json 'j["watched"]["ranks"][0]["finished"]'
watch -- python3 "$PROGRAMS/ways.py" twice
ended_with 0
said "is not watched"
watch -- sh -c "python3 '$PROGRAMS/loop.py' 2; python3 '$PROGRAMS/loop.py' 60; python3 '$PROGRAMS/loop.py' 70"
ended_with 0                                    # the first ended with nothing recorded; what the second recorded stays
json ways/report.json 'j["watched"]["ranks"][0]["finished"] and j["watched"]["ranks"][0]["steps"] == 39'
[ "$(grep -c 'is not watched' err)" = 1 ] || fail "not the third one alone: $(cat err)"
[ "$(ls ways/recording | tr '\n' ' ')" = "processes rank0 " ] || fail "left behind: $(ls ways/recording)"
watch -- sh -c "python3 '$PROGRAMS/loop.py' 40 kill; python3 '$PROGRAMS/loop.py' 60"
ended_with 0
json ways/report.json 'j["watched"]["ranks"][0]["finished"]'
watch -- python3 "$PROGRAMS/loop.py" 2
ended_with 2
said "hone: the program ended after 2 steps, before anything was recorded: 39 are needed"
watch --stop -- python3 "$PROGRAMS/ways.py" thread
ended_with 0
json ways/report.json 'j["watched"]["ranks"][0]["stopped"]'
watch -- python3 "$PROGRAMS/ways.py" asks
ended_with 0
first "torch is there: True"
json ways/report.json 'j["watched"]["ranks"][0]["finished"]'
watch -- python3 "$PROGRAMS/ways.py" silent
ended_with 0
[ "$(head -c 5 out)" = "$(printf '\377\376\nst')" ] || fail "bytes of the program's output changed"
(cd "$PROGRAMS" && PYTHONPATH=$FAKE "$HONE" watch --out "$OLDPWD/ways" -- python3 -m loop 60) >out 2>err || fail "python -m: $(cat err)"
first "steps 60 input -"
alone=0; PYTHONPATH=$FAKE sh -c "exec 2>&-; exec python3 '$PROGRAMS/loop.py' 60" >/dev/null || alone=$?
FAKE_TORCH_PROFILER=broken watch -- sh -c "exec 2>&-; exec python3 '$PROGRAMS/loop.py' 60"
ended_with $((alone ? alone : 2))               # its last line is for stderr, which some versions of Python forgive
first "steps 60 input -"
"$HONE" watch --out ways -- python3 -c 'import sys; sys.stderr.write("%s %s\n" % (sys.stdin, sys.stdout))' 2>err <&- >&- || true
said "None None"                 # as Python finds them where they are closed
"$HONE" watch --out ways --json -- python3 -c 'import sys; sys.stderr.write("%s\n" % sys.stdout.name)' 2>err >&- || true
said "<stdout>"                  # which is stderr then
printf '#!/bin/sh\nexec python3 "$@"\n' >wrapper && chmod +x wrapper
watch -- ./wrapper "$PROGRAMS/loop.py" 60
ended_with 0
touch file
refused 2 "hone: cannot look at 'file/report': Not a directory" watch --out file/report -- python3 "$PROGRAMS/loop.py" 60

# ---- nothing to watch
OUT=nothing
watch -- python3 -c 'print(1)'
ended_with 2
first 1
said "hone: the program ended without importing torch"
watch -- python3 -c 'import torch'
ended_with 2
said "hone: torch was imported, but no optimizer of torch took a step; where steps are taken by something else, name the function: --step-call MODULE:FUNCTION"
watch -- python3 -I -c 'print(1)'
ended_with 2
said "hone: 'python3 -I -c print(1)' started no Python that can be watched"
watch -- sh -c 'exit 5'
ended_with 5
refused 2 "hone: there is no program 'pyhton'; give the command as you type it: hone watch -- python train.py" watch --out nothing -- pyhton train.py
touch train.py
refused 2 "hone: './train.py' is not a program that can be started (Permission denied); give the command as you type it: hone watch -- python ./train.py" \
    watch --out nothing -- ./train.py

# ---- options
refused 2 "hone watch: a command is missing: hone watch -- python train.py; \`hone watch --help\` shows examples" watch --stop
refused 2 "hone: --steps is 2; it must be 3 to 1000000" watch --steps 2 -- true
refused 2 "hone: --warmup is 0; it must be 1 to 1000000" watch --warmup 0 -- true
refused 2 "hone: --step-call is 'step'; it takes MODULE:FUNCTION, such as trainer:train_step, or __main__:train_step for one of the script itself" \
    watch --step-call step -- true
refused 2 "hone watch: --fail-on is 'hihg'; choose low, medium, high or critical; did you mean 'high'?" watch --fail-on hihg -- true
refused 2 "hone watch: there is no option '--stpo'; did you mean '--stop'?" watch --stpo -- true
