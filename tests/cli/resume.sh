# A run that is killed and resumed ends as one that never stopped, byte for byte; what cannot be resumed is refused.
. "$(dirname "$0")/lib"
N=800      # more steps than a pipe holds log lines: the reader decides how far a run gets

# killed_equals_whole NAME RESUME_OPTION -- OPTIONS...
killed_equals_whole() {
    local name=$1 resume=$2
    shift 3
    set -- train tiny.yaml --steps $N --set log.every=1 --set eval.every=300 --set checkpoint.every=40 --set train.accumulate=2 \
        --set model.dropout=0.1 "$@"
    ok "$@" --out "$name-whole"
    start "$@" --out "$name"
    until_step 50
    kill -KILL $pid
    finish
    [ "$code" = 137 ] || fail "$name: exit code $code after kill -9"
    [ ! -e "$name/checkpoints/step-00000$N" ] || fail "$name: finished before it was killed"
    ok "$@" --set $resume --out "$name" --resume
    grep -qE "^steps +$N of 64 tokens, resuming after step [0-9]+$" out || fail "$name: $(grep ^steps out)"
    same_checkpoint "$name-whole" "$name" $N
    lines "$name/metrics.jsonl" "[l['step'] for l in j if 'loss' in l] == list(range(1, $N + 1))"
    lines "$name/metrics.jsonl" "[l['step'] for l in j if 'val_loss' in l] == [300, 600, $N]"
    # The loss that is shown is the same too.
    for f in "$name-whole" "$name"; do
        grep -o '"step":[0-9]*,"epoch":[0-9]*,"loss":[0-9.e-]*\|"val_loss":.*' "$f/metrics.jsonl" >"$f.losses"
    done
    same "$name: the losses" "$name.losses" "$name-whole.losses"
}

tiny gpt
killed_equals_whole gpt data.workers=2 --
tiny llama
killed_equals_whole llama data.prefetch=7 -- --set model.kv_heads=1 --set data.workers=2
tiny postln
killed_equals_whole postln data.workers=0 -- --set model.segments=2 --set data.workers=3

# ---- stopped between two logs: the loss of the next one is over all of its steps, and the one that was early is gone
tiny
set -- train tiny.yaml --set log.every=7 --set train.schedule=constant --set checkpoint.every=10 --set checkpoint.keep=9 --set eval.every=8
losses() { grep -o '"step":[0-9]*,"epoch":[0-9]*,"loss":[0-9.e-]*\|.*"val_loss":.*' "$1/metrics.jsonl"; }
ok "$@" --steps 40 --out long
losses long >wanted-losses
ok "$@" --steps 24 --out early
lines early/metrics.jsonl '[l["step"] for l in j if "loss" in l] == [7, 14, 21, 24]'
ok "$@" --steps 40 --out early --resume
losses early >found-losses
same "losses after a stop between two logs" found-losses wanted-losses
mkdir away
mv long/checkpoints/step-000000[234]0 away
ok "$@" --steps 40 --out long --resume
losses long >found-losses
same "losses after a kill between two logs" found-losses wanted-losses

# ---- a run that is done has nothing left to do, and its folder stays as it is
tiny
ok train tiny.yaml --out done
sums done >before
ok train tiny.yaml --out done --resume --json
json out 'j["steps"] == 20 and j["checkpoint"] == "done/checkpoints/step-00000020" and j["interrupted"] is False'
sums done >after
same "the folder of a run that was done" after before
for set in "--set train.lr=9" "--steps 10"; do
    ok train tiny.yaml --out done --resume $set
    sums done >after
    same "the folder of a run that was done, resumed with $set" after before
    grep -q '^warning: the run is done already: nothing is trained, and its config stays what it was$' err || fail "$set: $(cat err)"
    grep -qE '^steps .*, done already at step 20$' out && ! grep -q '^changed' out || fail "$set is told as if it counted: $(cat out)"
done

# ---- more steps, and other things that may change
ok train tiny.yaml --out done --resume --steps 30 --set train.lr=1e-4 --set threads=1 --set log.every=1 --json
json out 'j["steps"] == 30'
grep -xF "changed train.steps from 20 to 30, train.lr from 0.001 to 0.0001, log.every from 5 to 1, threads from 2 to 1" err >/dev/null || fail "changes are not shown: $(cat err)"
ok train tiny.yaml --out done --resume --steps 30 --set train.lr=1e-4 --set threads=1 --set log.every=1
! grep '^changed' out || fail "nothing has changed"
lines done/metrics.jsonl '[l["step"] for l in j if "loss" in l] == [5, 10, 15] + list(range(20, 31))'

# ---- a warm-up that was left to its default is no longer than the steps, and grows with them
sed 's/, warmup: 5//' tiny.yaml >plain.yaml
ok train plain.yaml --out grown
grep -qx '  warmup: 20' grown/config.yaml || fail "not cut to the steps: $(grep warmup grown/config.yaml)"
ok train plain.yaml --out grown --resume --steps 24 --json
grep -qxF "changed train.steps from 20 to 24, and with it train.warmup from 20 to 24" err || fail "a change that nobody made: $(cat err)"

# ---- what must not change: the message names the key, and nothing in the folder changes
tiny
ok train tiny.yaml --out kept
sums kept >before
keep="keep it, or start a new run with another --out"
at="hone: cannot resume 'kept/checkpoints/step-00000020':"
no() { refused 2 "$at $1; $keep" train tiny.yaml --out kept --resume --set "$2"; }
no "model.dim was 32 and is now 64" model.dim=64
no "model.arch was gpt and is now llama" model.arch=llama
no "model.layers was 1 and is now 2" model.layers=2
no "model.seq was 16 and is now 8" model.seq=8
no "model.vocab was 49 and is now 60" model.vocab=60
no "model.norm_eps was 1e-05 and is now 0.001" model.norm_eps=0.001
no "train.batch_size was 2 and is now 4" train.batch_size=4
no "train.accumulate was 1 and is now 3" train.accumulate=3
no "train.seed was 42 and is now 9007199254740992" train.seed=9007199254740992
no "data.domain was prose and is now code" data.domain=code
no "data.chars was 20000 and is now 20001" data.chars=20001
no "data.val_fraction was 0.1 and is now 0.2" data.val_fraction=0.2
sums kept >after
same "the folder after refusals" after before

# ---- the data behind a path must be what it was
text() { for i in $(seq 200); do echo "$1 $i"; done; }
text "the same line" >data.txt
set -- train tiny.yaml --set data.source=text --set data.path=data.txt --out text
ok "$@"
text "the same line" >>data.txt
bring="bring the data back, or start a new run with another --out"
refused 2 "hone: cannot resume 'text/checkpoints/step-00000020': the data had 195 training samples and has 391 now; $bring" "$@" --resume
text "THE same line" >data.txt
refused 2 "hone: cannot resume 'text/checkpoints/step-00000020': model.vocab was 21 and is now 22; $keep" "$@" --resume
text "the same libe" >data.txt
refused 2 "hone: cannot resume 'text/checkpoints/step-00000020': the data has other characters than it had; $bring" "$@" --resume
text "eht same line" >data.txt
refused 2 "hone: cannot resume 'text/checkpoints/step-00000020': the data holds other samples than it held; bring it back, or start a new run with another --out, from these weights with train.init" "$@" --resume
for change in '77s/he/eh/' '$a ha'; do         # anywhere; behind the last sample, where the border of validation moves
    text "the same line" | sed "$change" >data.txt
    refused 2 "hone: cannot resume 'text/checkpoints/step-00000020': the data holds other samples than it held; bring it back, or start a new run with another --out, from these weights with train.init" "$@" --resume
done
text "the same line" >moved.txt
ok "$@" --set data.path=moved.txt --resume
# validation data, too; a folder of before that was looked at goes on
text "the same line" | head -40 >val.txt
set -- train tiny.yaml --set data.source=text --set data.path=moved.txt --set data.val_path=val.txt --out valid
ok "$@"
sed -i 7s/same/seam/ val.txt
refused 2 "hone: cannot resume 'valid/checkpoints/step-00000020': the validation data holds other samples than it held; bring it back, or start a new run with another --out, from these weights with train.init" \
    "$@" --resume --steps 21
edit() { python3 -c 'import json, sys; p = sys.argv[1] + "/manifest.json"; j = json.load(open(p)); exec(sys.argv[2]); json.dump(j, open(p, "w"))' "$@"; }
before() {                                      # a manifest as it was once, with the checksum that it then has
    edit $1 "del j['train_data'], j['val_data']; j['data'] = '$2'"
    run eval $1
    edit $1 "j['xxh3'] = '$(sed -n 's/.*its fields give \([0-9a-f]*\).*/\1/p' err)'"
}
cp -r valid old
before old/checkpoints/step-00000020 0123456789abcdef
refused 2 "hone: cannot resume 'old/checkpoints/step-00000020': the data holds other samples than it held; bring it back, or start a new run with another --out, from these weights with train.init" \
    "$@" --out old --resume --steps 21
rm -r old && cp -r valid old
before old/checkpoints/step-00000020 d9dfa9db06a0052d
ok "$@" --out old --resume --steps 21

# ---- a line of the logs that cannot be read goes alone
ok train tiny.yaml --out holes
sed -i -e '1a {"step":7,"loss' -e '2a garbage' holes/metrics.jsonl
ok train tiny.yaml --steps 40 --out holes --resume
lines holes/metrics.jsonl '[l["step"] for l in j if "loss" in l] == list(range(5, 41, 5))'

# ---- nothing to resume
refused 2 "hone: 'nosuch' does not exist, so there is nothing to resume; start without --resume" train tiny.yaml --out nosuch --resume
mkdir empty
refused 2 "hone: 'empty' holds no checkpoint, so there is nothing to resume; start without --resume" \
    train tiny.yaml --out empty --resume
[ -z "$(ls -A empty)" ] || fail "a refused resume left something: $(ls -A empty)"
refused 2 "hone: 'kept/checkpoints/step-00000020' holds no checkpoint, so there is nothing to resume; start without --resume" \
    train tiny.yaml --out kept/checkpoints/step-00000020 --resume
[ ! -e nosuch ] || fail "a refused resume made a folder"

# ---- a run killed before its first checkpoint
start train tiny.yaml --steps $N --set log.every=1 --set checkpoint.every=0 --out young
until_step 3
refused 2 "hone: the run in 'young' is alive: another hone is writing there; wait for its end, or stop it, which saves a checkpoint, and resume it then" \
    train tiny.yaml --out young --resume
kill -KILL $pid
finish
refused 2 "hone: 'young' holds no checkpoint, so there is nothing to resume; start without --resume, with another --out" \
    train tiny.yaml --out young --resume
refused 2 "hone: 'young' already holds a run that has saved nothing yet; give another --out" \
    train tiny.yaml --out young

# ---- a damaged checkpoint is named, and one can go on from the one before it
printf 'x' | dd of=kept/checkpoints/step-00000020/state.safetensors bs=1 seek=5000 conv=notrunc status=none
run train tiny.yaml --out kept --resume
[ "$code" = 2 ] || fail "a damaged checkpoint: exit code $code"
grep -q "^hone: 'kept/checkpoints/step-00000020/state.safetensors' is damaged: its checksum is .*; to continue from the checkpoint before it, move 'kept/checkpoints/step-00000020' away$" err || fail "$(cat err)"
mv kept/checkpoints/step-00000020 .
ok train tiny.yaml --out kept --resume
lines kept/metrics.jsonl '[l["step"] for l in j if "loss" in l] == [5, 10, 15, 20]'

# Sums over micro-batches are empty between two steps, and in no checkpoint: it is continued with shards, or without.
ok train tiny.yaml --set train.accumulate=2 --set dist.shards=2 --out sums --steps 4
ok train tiny.yaml --set train.accumulate=2 --out sums --steps 8 --resume
ok train tiny.yaml --set train.accumulate=2 --set dist.shards=2 --out sums --steps 12 --resume
