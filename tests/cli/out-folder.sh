# Nothing of a user's is ever removed: reports and runs in folders that hold other things, folders that cannot be had, names
# that steer a terminal.
. "$(dirname "$0")/lib"
tiny
trace() {
    printf '{"traceEvents":[\n'
    for i in 1 2 3; do
        printf '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":1,"tid":1,"ts":%d,"dur":900,"args":{}},\n' $i $((i * 1000))
        printf '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":%d,"dur":300,"args":{}},\n' $((i * 1000 + 100))
    done
    printf '{"ph":"i","name":"end","pid":1,"tid":1,"ts":9000,"s":"g"}]}\n'
}
trace >t.json
away="move it away, or give another --out"

# ---- a user's folder with a report.json in it
mkdir D
echo '{}' >D/report.json
echo mine >D/thesis.tex
sums D >before
refused 2 "hone: 'D/report.json' is there, and no report that is known here wrote it; $away" analyze t.json --out D
sums D >after
same "the folder of a user" after before
rm D/report.json
ok analyze t.json --out D
ok analyze t.json --out D
[ "$(cat D/thesis.tex)" = mine ] && [ -s D/report.html ] || fail "not both are there: $(ls -A D)"
echo "my words" >>D/report.md
refused 2 "hone: 'D/report.md' was changed since hone analyze wrote it; $away" analyze t.json --out D
grep -q "my words" D/report.md || fail "a user's words are gone"

# ---- one folder for a run and for reports; the lock of a run that is at work holds
ok profile tiny.yaml --steps 1 --out run
run verify run run --out run                      # of a busy machine there is no verdict
[ "$code" = 0 ] || [ "$code" = 1 ] || fail "verify into the folder of a profile: $code $(cat err)"
[ -s run/verify.json ] && [ -s run/report.json ] || fail "not both are there: $(ls -A run)"
start train tiny.yaml --steps 800 --set log.every=1 --set checkpoint.every=25 --out run
until_step 30
refused 2 "hone: another hone is writing into 'run'; give another --out" analyze t.json --out run
refused 2 "hone: the run in 'run' is alive: another hone is writing there; wait for its end, or stop it, which saves a checkpoint, and resume it then" train tiny.yaml --out run --resume
finish
[ "$code" = 0 ] || fail "the run: exit code $code: $(cat err)"
sums run/checkpoints >before
ok profile tiny.yaml --steps 1 --out run
sums run/checkpoints >after
same "checkpoints after a profile" after before
ok generate run --tokens 3
refused 2 "hone: 'run/trace.json' is of a report of hone profile, and --profile would write its own there; give another --out" \
    train tiny.yaml --steps 900 --out run --resume --profile 801:802
ok train tiny.yaml --out recorded --profile 1:2
refused 2 "hone: 'recorded/trace.json' is of a report of hone train; give another --out" profile tiny.yaml --steps 1 --out recorded
# a trace that a recording wrote is replaced by the next one of the run; one that is the user's, or that the user changed, stays
steps=$(python3 -c 'import json; print(json.load(open("recorded/run.json"))["steps"])')
ok train tiny.yaml --out recorded --resume --steps $((steps + 2)) --profile $((steps + 1)):$((steps + 2))
json recorded/trace.json "[e['args']['step'] for e in j['traceEvents'] if e.get('cat') == 'step'] == [$steps + 1, $steps + 2]"
mkdir theirs
echo precious | tee theirs/trace.json >recorded/trace.json
known="is there, and no recording that is known here wrote it; $away"
refused 2 "hone: 'theirs/trace.json' $known" train tiny.yaml --out theirs --profile 1:2
refused 2 "hone: 'recorded/trace.json' $known" train tiny.yaml --out recorded --resume --steps $((steps + 4)) --profile $((steps + 3)):$((steps + 4))
[ "$(cat theirs/trace.json recorded/trace.json)" = "$(printf 'precious\nprecious')" ] && [ "$(ls -A theirs)" = trace.json ] || fail "not as it was: $(ls -A theirs)"

# ---- a config that is in the way is the user's, and so are files of other names that a run writes
for name in config.yaml nodes.jsonl forgetting.json run.json; do
    rm -rf own
    mkdir own
    cp tiny.yaml own/$name
    refused 2 "hone: 'own' already holds a $name, and a run writes its own there; give another --out" train own/$name --out own
    same "own/$name" own/$name tiny.yaml
    [ "$(ls -A own)" = $name ] || fail "a refused run left something: $(ls -A own)"
done

# ---- what is written goes through no link
mkdir linked
echo precious >precious
for name in config.yaml.tmp .config.yaml.hone-tmp; do ln -s ../precious linked/$name; done
ok train tiny.yaml --out linked
[ "$(cat precious)" = precious ] || fail "written through a link"
[ ! -L linked/config.yaml ] && [ ! -e linked/.config.yaml.hone-tmp ] || fail "left: $(ls -lA linked)"
mkdir link-metrics
ln -s ../elsewhere link-metrics/metrics.jsonl
refused 2 "hone: 'link-metrics' already holds a run that has saved nothing yet; give another --out" train tiny.yaml --out link-metrics
[ ! -e elsewhere ] || fail "written through a link"

# ---- --out that is no folder of ours: refused or written into, and an empty one stays
echo file >file
mkdir empty
run analyze nosuch.json --out empty
[ "$code" = 2 ] && [ -d empty ] && [ -z "$(ls -A empty)" ] || fail "an empty folder is gone or has something: $(cat err; ls -A empty)"
printf '{' >broken.json
run analyze broken.json --out empty
[ "$code" = 2 ] && [ -d empty ] && [ -z "$(ls -A empty)" ] || fail "an empty folder is gone or has something: $(cat err; ls -A empty)"
refused 2 "hone: 'file' is a file, and a report is a folder; give another --out" analyze t.json --out file
refused 2 "hone: cannot look at 'file/x': Not a directory" analyze t.json --out file/x
ln -s nowhere dangling
refused 2 "hone: 'dangling' is a link to a folder that is not there; give another --out" analyze t.json --out dangling
ln -s empty folder-link
ok analyze t.json --out folder-link
[ -L folder-link ] && [ -s empty/report.json ] || fail "a link to a folder is not that folder: $(ls -lA)"
mkdir here
cp t.json here
(cd here && "$HONE" analyze t.json --out . >/dev/null) || fail "--out ."
(cd here && "$HONE" analyze t.json --out ./ >/dev/null) || fail "--out ./ again"
[ -s here/report.html ] && [ -s here/t.json ] || fail "--out .: $(ls -A here)"
[ "$(cat file)" = file ] || fail "a file was lost"

# ---- folders that cannot be read or written say so, and nobody is told to remove one
if [ "$(id -u)" != 0 ]; then
    mkdir closed
    ok train tiny.yaml --out closed/run
    chmod 0 closed/run
    for arguments in "train tiny.yaml --out closed/run --resume" "train tiny.yaml --out closed/run" "analyze t.json --out closed/run" \
                     "generate closed/run"; do
        run $arguments
        [ "$code" = 2 ] && grep -q "Permission denied" err && ! grep -q "remove\|start without" err || fail "$arguments: $(cat err)"
    done
    chmod 755 closed/run
fi
ln -s loop loop
for arguments in "train tiny.yaml --out loop --resume" "train tiny.yaml --out loop" "analyze t.json --out loop"; do
    run $arguments
    [ "$code" = 2 ] && grep -q "Too many levels of symbolic links" err && ! grep -q "remove\|start without" err || fail "$arguments: $(cat err)"
done

# ---- names that steer a terminal are shown without what steers
evil=$(printf 'a\033]0;x\a\302\233\342\200\256b')
clean() { ! LC_ALL=C grep -q "$(printf '\033\|\302\233\|\342\200\256')" "$@" || fail "steers a terminal: $(cat -v "$@")"; }
for arguments in "$evil" "train $evil" "train tiny.yaml --$evil" "train tiny.yaml --steps $evil" "train tiny.yaml --set $evil" \
                 "train tiny.yaml --set train.lr=$evil" "generate $evil" "analyze $evil" "explain $evil" "train tiny.yaml x$evil"; do
    run $arguments
    [ "$code" = 2 ] || fail "hone $arguments: exit code $code"
    clean out err
done
cp tiny.yaml "$evil.yaml"
ok train "$evil.yaml" --out "$evil-run" && clean out err
ok train "$evil.yaml" --out "$evil-json" --json && clean out err
json out 'j["checkpoint"].encode() == b"a\x1b]0;x\x07\xc2\x9b\xe2\x80\xaeb-json/checkpoints/step-00000020"'
ok bench "$evil.yaml" --seconds 0.1 && clean out err
cp t.json "$evil.json"
ok analyze "$evil.json" --out "$evil-report" && clean out err "$evil-report/report.json" "$evil-report/report.md"
ok analyze "$evil.json" --json && clean out err
