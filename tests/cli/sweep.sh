# hone sweep: the product of values, in turn; what is finished is kept; stopped, killed and failed runs; what is refused before the first.
. "$(dirname "$0")/lib"
tiny
vary="--vary train.lr=1e-3,1e-2 --vary model.dim=16,32"
masked() { sed -E -e 's/20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}/WHEN/' -e 's/  +/  /g' -e 's/  [0-9]+(\.[0-9]+)?( [kM])?  cpu/  SPEED  cpu/' -e 's/\b[0-9]\.[0-9]{4}\b/LOSS/g' -e 's/  / /g' out; }
table() {
    cat <<'TABLE'

run state step loss val loss tokens/s device when model.dim model.ffn train.lr
lr=1e-3,dim=16 finished 20/20 LOSS LOSS SPEED cpu ×2 WHEN 16 64 0.001
lr=1e-3,dim=32 finished 20/20 LOSS LOSS SPEED cpu ×2 WHEN 32 128 0.001
lr=1e-2,dim=16 finished 20/20 LOSS LOSS SPEED cpu ×2 WHEN 16 64 0.01
lr=1e-2,dim=32 finished 20/20 LOSS LOSS SPEED cpu ×2 WHEN 32 128 0.01
best: lr=1e-2,dim=16, validation loss LOSS

side by side: hone compare made
TABLE
}
ok sweep tiny.yaml $vary --out made
[ ! -s err ] || fail "something was written to stderr: $(cat err)"
masked >said
{ for name in 1/4:lr=1e-3,dim=16 2/4:lr=1e-3,dim=32 3/4:lr=1e-2,dim=16 4/4:lr=1e-2,dim=32; do
    echo "[${name%%:*}] ${name#*:}: finished, 20 steps, loss LOSS, validation loss LOSS"; done; table; } >wanted
same "a sweep" said wanted
[ "$(echo $(ls made))" = "lr=1e-2,dim=16 lr=1e-2,dim=32 lr=1e-3,dim=16 lr=1e-3,dim=32" ] || fail "$(ls made)"
# a run of a sweep is a run like any other
ok train tiny.yaml --set train.lr=1e-2 --set model.dim=16 --out plain
same_checkpoint plain made/lr=1e-2,dim=16 20

# ---- what is finished is kept; a value more is a run more
sums made >before
ok sweep tiny.yaml $vary --out made/
sums made >after
same "the runs" after before
masked >said
sed -i 's/: finished, 20/: kept, finished, 20/' wanted
same "a sweep again" said wanted
ok sweep tiny.yaml --vary train.lr=1e-3,1e-2,2e-2 --vary model.dim=16,32 --out made --json
json out 'len(j["runs"]) == 6 and j["keys"] == ["model.dim", "model.ffn", "train.lr"] and not j["interrupted"] and all(r["state"] == "finished" for r in j["runs"])'
grep -qx '\[6/6\] lr=2e-2,dim=32: finished, 20 steps, loss [0-9.]*, validation loss [0-9.]*' err || fail "with --json the lines are not on stderr: $(cat err)"
sums made | grep -v lr=2e-2 >after
same "the runs of before" after before

# ---- stopped: what there is is saved, the table is shown, and the same command comes to the same weights
"$HONE" sweep tiny.yaml --vary train.seed=1,2,3 --set train.steps=1500 --set checkpoint.every=0 --out stopped >out 2>err &
pid=$!
for i in $(seq 400); do [ -e stopped/seed=2/metrics.jsonl ] && break; sleep 0.05; done
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] || fail "a stopped sweep ended with $code: $(cat err)"
grep -q '^the same command goes on from here; runs are kept in stopped$' out || fail "$(cat out)"
grep -qE '^seed=2 +stopped ' out || fail "no row of the run that was stopped: $(cat out)"
[ ! -e stopped/seed=3 ] || fail "it did not stop"
ok sweep tiny.yaml --vary train.seed=1,2,3 --set train.steps=1500 --set checkpoint.every=0 --out stopped
grep -q '^\[1/3\] seed=1: kept, finished, 1500 steps' out && grep -q '^\[2/3\] seed=2: finished, 1500 steps' out || fail "$(cat out)"
ok train tiny.yaml --set train.seed=2 --set train.steps=1500 --set checkpoint.every=0 --out straight
same_checkpoint straight stopped/seed=2 1500
# killed before its first checkpoint: made again
rm -r stopped/seed=3/checkpoints
ok sweep tiny.yaml --vary train.seed=2,3 --set train.steps=1500 --set checkpoint.every=0 --out stopped
grep -q '^\[2/2\] seed=3: finished, 1500 steps' out || fail "$(cat out)"

# a run that is alive, without a checkpoint yet and with one, keeps its files, and the others are made
for every in 0 50; do
    set -- tiny.yaml --set threads=1 --set train.steps=100000 --set log.every=1 --set eval.every=0 --set checkpoint.every=$every
    start train "$@" --set train.seed=1 --out alive$every/seed=1
    until_step 60
    (cd alive$every/seed=1 && sha256sum config.yaml run.json) >before
    run sweep "$@" --vary train.seed=1 --out alive$every
    [ "$code" = 1 ] && grep -q "^\[1/1\] seed=1: failed: .*another hone is writing " out || fail "a run that is alive: $code $(cat out err)"
    (cd alive$every/seed=1 && sha256sum config.yaml run.json) >after
    same "a run that is alive" after before
    [ "$(head -n 1 alive$every/seed=1/metrics.jsonl | grep -c '"step":1,')" = 1 ] || fail "its logs are gone"
    kill -INT $pid
    finish
    [ "$code" = 0 ] && [ -s alive$every/seed=1/run.json ] || fail "the run that was alive: $code $(cat err)"
done
# what somebody else makes while the sweep is at another run is kept
"$HONE" sweep tiny.yaml --vary train.seed=1,2 --set threads=1 --set train.steps=1500 --out beside >said 2>err &
pid=$!
for i in $(seq 400); do [ -e beside/seed=1/metrics.jsonl ] && break; sleep 0.02; done
kill -STOP $pid
ok train tiny.yaml --set threads=1 --set train.steps=1500 --set train.seed=2 --out beside/seed=2
sums beside/seed=2 >before
kill -CONT $pid
wait $pid || fail "$(cat err)"
sums beside/seed=2 >after
same "a run that came beside the sweep" after before
grep -q '^\[2/2\] seed=2: kept, finished, 1500 steps' said || fail "$(cat said)"

# a first save that was killed, or found no room, leaves nothing that goes on: the run is made anew, and plain runs say so
ok sweep tiny.yaml --set threads=1 --vary train.seed=1,2 --out unsaved
for left in nothing .tmp-step-00000010-99999999; do
    rm -r unsaved/seed=2/checkpoints
    mkdir -p unsaved/seed=2/checkpoints
    [ $left = nothing ] || mkdir unsaved/seed=2/checkpoints/$left
    refused 2 "hone: 'unsaved/seed=2' already holds a run that has saved nothing yet; give another --out" train tiny.yaml --set train.seed=2 --out unsaved/seed=2
    refused 2 "hone: 'unsaved/seed=2' holds no checkpoint, so there is nothing to resume; start without --resume, with another --out" \
        train tiny.yaml --set train.seed=2 --out unsaved/seed=2 --resume
    ok sweep tiny.yaml --set threads=1 --vary train.seed=1,2 --out unsaved
    grep -q '^\[2/2\] seed=2: finished, 20 steps' out || fail "$(cat out)"
    [ "$(ls -A unsaved/seed=2/checkpoints)" = "$(ls -A unsaved/seed=1/checkpoints)" ] || fail "$(ls -A unsaved/seed=2/checkpoints)"
done

# runs of another version: a key less, a key more, other lines; finished, and killed before a save
other() { sed -e '/^  norm_eps:/d' -e 's/^log:/log:\n  gone: 3/' -i "$1/config.yaml"; }
ok sweep tiny.yaml --set threads=1 --vary train.seed=1,2 --out older
other older/seed=1
other older/seed=2
rm -r older/seed=2/checkpoints
ok sweep tiny.yaml --set threads=1 --vary train.seed=1,2 --out older
grep -q '^\[1/2\] seed=1: kept, finished' out && grep -q '^\[2/2\] seed=2: finished, 20 steps' out || fail "$(cat out)"
# without a run.json beside it such a config may be anybody's
other older/seed=2
rm -r older/seed=2/checkpoints older/seed=2/run.json
refused 2 "hone: 'older/seed=2' holds files that are not of a run; give another --out" sweep tiny.yaml --set threads=1 --vary train.seed=1,2 --out older

# ---- a run whose numbers are not finite fails alone, and is not made again
bad="--set train.clip=0 --set train.weight_decay=10 --set train.decay=all --set train.schedule=constant --set eval.every=0 --set train.steps=40"
ok sweep tiny.yaml --vary train.lr=10,1e-3 $bad --out nan
grep -qE '^\[1/2\] lr=10: failed: step [0-9]+: loss is -?nan' out && grep -q '^\[2/2\] lr=1e-3: finished, 40 steps' out && grep -q '^lr=10  *nan ' out || fail "$(cat out)"
grep -qE '^best: lr=1e-3, loss ' out || ! grep -q '^best' out || fail "$(cat out)"
ok sweep tiny.yaml --vary train.lr=10,1e-3 $bad --out nan
grep -q '^\[1/2\] lr=10: kept, nan, ' out || fail "$(cat out)"
for again in made kept; do
    code=0
    "$HONE" sweep tiny.yaml --vary train.lr=10 $bad --out all-nan >out 2>err || code=$?
    [ "$code" = 1 ] || fail "no run ended well ($again), and the exit code is $code: $(cat out err)"
done
run sweep tiny.yaml --vary train.lr=10 $bad --out allbad
[ "$code" = 1 ] || fail "all runs failed, and the exit code is $code"

# 3 where it was the machine, every time
code=0
(ulimit -f 4 && "$HONE" sweep tiny.yaml --vary train.seed=1,2 --set threads=1 --out limited >out 2>err) || code=$?
[ "$code" = 3 ] && grep -q '^\[2/2\] seed=2: failed: .*File too large' out || fail "all runs failed for want of room: $code $(cat out err)"

# ---- without --out: by the config's name, also where that is whole only with --set and --vary; and the hint can be pasted
sed 's/dim: 32, //' tiny.yaml >"it's.yaml"
ok sweep "it's.yaml" --set train.steps=2 --set threads=1 --vary model.dim=16,32
mkdir "runs/it's-sweep/no run"
hint=$(sed -n 's/^side by side: hone //p' out)
[ "$hint" = "compare 'runs/it'\\''s-sweep'" ] || fail "the hint is $hint"
eval "\"$HONE\" $hint --json" >out || fail "the hint does not work"
json out 'len(j["runs"]) == 2'

# ---- refused before the first run, with nothing made
refused 2 "hone: --vary is missing: which key, and with which values? e.g. --vary train.lr=1e-3,3e-3,1e-2" sweep tiny.yaml --out none
refused 2 "hone: --vary train.lr=abc: train.lr is 'abc'; a number is wanted" sweep tiny.yaml --vary train.lr=1e-3,abc --out none
refused 2 "hone: --vary train.rl=1e-3: there is no key 'train.rl'; did you mean 'train.lr'?" sweep tiny.yaml --vary train.rl=1e-3 --out none
refused 2 "hone: --vary model.heads=3: model.heads is 3, and 3 does not divide model.dim 32; try 2 or 4" sweep tiny.yaml --vary model.heads=2,3 --out none
refused 2 "hone: --vary train.lr has an empty value; it takes KEY=VALUE,VALUE,..." sweep tiny.yaml --vary train.lr=1e-3,, --out none
refused 2 "hone: --vary train.lr has the value 1e-3 twice" sweep tiny.yaml --vary train.lr=1e-3,1e-3 --out none
refused 2 "hone: --vary: 'lr=1e-3' and 'lr=0.001' are the same run: their values are equal; leave one out" sweep tiny.yaml --vary train.lr=1e-3,0.001 --out none
refused 2 "hone: --vary train.lr is given twice; put all values into one" sweep tiny.yaml --vary train.lr=1e-3 --vary train.lr=1e-2 --out none
refused 2 "hone: train.lr is given by --vary and by --set train.lr=2e-3; leave one out" sweep tiny.yaml --vary train.lr=1e-3 --set train.lr=2e-3 --out none
refused 2 "hone: --vary is 'train.lr'; it takes KEY=VALUE,VALUE,..., e.g. train.lr=1e-3,3e-3" sweep tiny.yaml --vary train.lr --out none
refused 2 "hone: --vary: all combinations are more than 1000 runs; vary fewer values at once" \
    sweep tiny.yaml --vary train.seed=$(seq -s, 101) --vary train.warmup=$(seq -s, 10) --out none
refused 2 "hone: 'made/lr=1e-3,dim=16' holds a run with train.steps 20, and it is 7 now; give another --out" sweep tiny.yaml $vary --set train.steps=7 --out made
[ ! -e none ] || fail "what was refused left something: $(find none)"

# ---- values that are lists; keys that end alike
sed -e 's/arch: gpt/arch: k1/' -e 's/layers: 1, //' tiny.yaml >tree.yaml
ok sweep tree.yaml --set k1.k=2 --set train.steps=2 --vary 'model.tree=[2],[2, 2]' --out trees
[ "$(echo $(ls trees))" = "tree=_2,_2_ tree=_2_" ] || fail "$(ls trees)"
ok sweep tiny.yaml --set train.steps=2 --vary eval.every=1,2 --vary log.every=1 --out alike
[ "$(echo $(ls alike))" = "eval.every=1,log.every=1 eval.every=2,log.every=1" ] || fail "$(ls alike)"
