# A run from start to end: what it prints and what it leaves in its folder; epochs; a folder in use is left alone.
. "$(dirname "$0")/lib"
tiny

# ---- the log
ok train tiny.yaml --out run
grep -qE '^\[5\] loss [0-9]+\.[0-9]+ \| [0-9.]+ step/s \(avg [0-9.]+\) \| [0-9]+ tok/s' out || fail "no log line of step 5: $(cat out)"
grep -qE '^\[10\] validation loss [0-9.]+ \([0-9.]+ above the best possible\)$' out || fail "no validation line"
grep -qx '\[20\] saved run/checkpoints/step-00000020' out || fail "no line about the last checkpoint"
grep -qE '^done: 20 steps, loss [0-9.]+, validation loss [0-9.]+, [0-9]+ samples/s, [0-9]+ tokens/s$' out || fail "no end"
[ "$(ls run/checkpoints)" = "step-00000010
step-00000020" ] || fail "checkpoints: $(ls run/checkpoints)"
json run/run.json 'j["state"] == "finished" and j["step"] == j["steps"] == 20 and j["device"] == "cpu" and j["threads"] == 2 and j["parameters"] > 0'
json run/run.json 'len(j["started"]) == len(j["ended"]) == 20 and 0 < j["loss"] < 10 and j["planned_bytes"] < j["peak_bytes"] and j["reason"] is null'

# ---- slow steps have digits, too
ok train tiny.yaml --out slow --steps 1 --set train.accumulate=3000 --set eval.every=0
grep -qE '^\[1\] loss [0-9.]+ \| (0\.0*[1-9][0-9]{2}|[1-9]\.[0-9]{2}) step/s \(avg (0\.0*[1-9][0-9]{2}|[1-9]\.[0-9]{2})\) \| ' out || fail "a slow step: $(cat out)"

# ---- --json: one document on stdout, the rest on stderr
ok train tiny.yaml --out json --json
json out 'sorted(j) == ["checkpoint", "interrupted", "loss", "samples_per_s", "steps", "tokens_per_s", "val_loss"]'
json out 'j["steps"] == 20 and 0 < j["loss"] < 10 and 0 < j["val_loss"] < 10 and j["interrupted"] is False'
json out 'abs(j["tokens_per_s"] / j["samples_per_s"] - 16) < 1e-6 and j["samples_per_s"] > 0'
json out 'j["checkpoint"] == "json/checkpoints/step-00000020"'
grep -q '^\[20\] loss' err || fail "with --json the log is not on stderr"
ok train tiny.yaml --out json --json --resume           # it has nothing to do
json out 'j["steps"] == 20 and j["loss"] is null and j["samples_per_s"] is null and j["tokens_per_s"] is null'
ok train tiny.yaml --set eval.every=0 --out never --json
json out 'j["val_loss"] is null'

# ---- metrics.jsonl: one line per log, one per evaluation
lines run/metrics.jsonl '[l["step"] for l in j if "loss" in l] == [5, 10, 15, 20]'
lines run/metrics.jsonl '[l["step"] for l in j if "val_loss" in l] == [10, 20]'
lines run/metrics.jsonl 'all(type(l[k]) in (int, float) for l in j if "loss" in l for k in ("epoch", "loss", "lr", "grad_norm",
    "steps_per_s", "steps_per_s_overall", "samples_per_s", "tokens_per_s", "data_wait_share", "seconds", "skipped"))'

# ---- the config that is kept makes the same run
ok train tiny.yaml --print-program && cp out program
ok train run/config.yaml --print-program
same "the program of run/config.yaml" out program
ok train run/config.yaml --out again
same_checkpoint run again 20

# ---- epochs: 20000 characters, 10 % for validation, make 1125 windows of 16; 141 steps of 8
ok train tiny.yaml --set train.epochs=2 --set train.batch_size=8 --set eval.every="1 epochs" --set checkpoint.every="2 epochs" \
    --set log.every=100 --tensorboard --out epochs
samples=$((18000 / 16))
grep -qE '^epoch 1: mean loss [0-9.]+, [0-9:]+, [0-9.]+ samples/s: first \(later epochs are held against it; hone doctor measures the peak\)$' out ||
    fail "no summary of epoch 1: $(cat out)"
grep -qE '^epoch 2: mean loss [0-9.]+, [0-9:]+, [0-9.]+ samples/s: (slower|steady|faster|waits for data) \(.*\)$' out || fail "no summary of epoch 2: $(cat out)"
per_epoch=$(((samples + 7) / 8))
lines epochs/metrics.jsonl "[(l['step'], l['epoch'], l['epoch_steps']) for l in j if 'epoch_loss' in l] == [($per_epoch, 1, $per_epoch), (2 * $per_epoch, 2, $per_epoch)]"
lines epochs/metrics.jsonl "all(abs(l['epoch_samples_per_s'] * l['epoch_seconds'] / (8 * $per_epoch) - 1) < 1e-6 and l['epoch_words'] for l in j if 'epoch_loss' in l)"
lines epochs/metrics.jsonl "[l['epoch_verdict'] for l in j if 'epoch_loss' in l][0] == 'first' and all('loss' not in l for l in j if 'epoch_loss' in l)"
lines epochs/metrics.jsonl "[l['step'] for l in j if 'val_loss' in l] == [$per_epoch, 2 * $per_epoch]"
lines epochs/metrics.jsonl "[l['epoch'] for l in j if 'loss' in l] == [1, 2, 2]"
for curve in epoch/loss epoch/seconds epoch/samples_per_s epoch/verdict speed/steps_per_s_overall; do
    grep -qaF "$curve" epochs/tensorboard/* || fail "no curve '$curve'"
done
[ "$(ls epochs/checkpoints)" = "$(printf 'step-%08d' $((2 * per_epoch)))" ] || fail "checkpoints: $(ls epochs/checkpoints)"
ok train tiny.yaml --set train.epochs=2 --steps 20 --out steps --json       # --steps wins over epochs in the config
json out 'j["steps"] == 20'

# ---- what data.max_chars leaves out of a text is said, and only then
python3 -c 'open("a.txt", "w").write("w\u00f6rd\n" * 200)'
cut() {         # MOST TOKENS WANTED
    ok train tiny.yaml --set data.source=text --set data.path=a.txt --steps 1 --set data.max_chars="$1" --set data.tokens="$2" --out "cut-$1-$2"
    grep '^data ' out >said || fail "no data: $(cat out)"
    echo "data    text 'a.txt': $3" >wanted
    same "what is said of the data" said wanted
}
cut 999 char "900 training and 99 validation tokens, vocabulary of 5 characters; cut: data.max_chars is 999, and the text has 1.2 kB"
cut 1000 char "900 training and 100 validation tokens, vocabulary of 5 characters"
cut 1199 byte "1080 training and 119 validation tokens, vocabulary of 256 bytes; cut: data.max_chars is 1199, and the text has 1.2 kB"
cut 1200 byte "1080 training and 120 validation tokens, vocabulary of 256 bytes"

# ---- only the newest checkpoints are kept
ok train tiny.yaml --set checkpoint.every=2 --set checkpoint.keep=2 --out keep
[ "$(ls -A keep/checkpoints | tr '\n' ' ')" = "step-00000018 step-00000020 " ] || fail "kept: $(ls -A keep/checkpoints)"

# ---- a second run into the folder is refused, and nothing in it changes
sums run >before
refused 2 "hone: 'run' already holds a run; continue it with --resume, or give another --out" train tiny.yaml --out run
refused 2 "hone: 'run' already holds a run; continue it with --resume, or give another --out" \
    train tiny.yaml --set model.dim=64 --out run --json
sums run >after
same "the folder of the run" after before

# ---- two at once: the second is refused and the first is not disturbed
start train tiny.yaml --steps 2000 --set log.every=1 --set eval.every=0 --out busy
until_step 12
refused 2 "hone: another hone is writing into 'busy'; give another --out" train tiny.yaml --out busy
refused 2 "hone: the run in 'busy' is alive: another hone is writing there; wait for its end, or stop it, which saves a checkpoint, and resume it then" train tiny.yaml --out busy --resume
kill -TERM $pid
finish
[ "$code" = 0 ] || fail "the first of two runs ended with $code"
lines busy/metrics.jsonl 'sorted(set(l["step"] for l in j)) == [l["step"] for l in j]'

# ---- lines that are cut are told of
long='--set data.samples=lines --set model.seq=8'
cut="lines are longer than model.seq 8 and are cut: [0-9]+ % of the tokens are never seen; raise model.seq, or set data.samples: windows$"
ok train tiny.yaml $long --out cut --steps 1
grep -qE "^warning: [0-9]+ of [0-9]+ $cut" err || fail "lines are cut without a word: $(cat err)"
ok profile tiny.yaml $long --steps 1 --out cut-profile
grep -qE "^warning: [0-9]+ of [0-9]+ $cut" err || fail "lines are cut without a word: $(cat err)"
run doctor tiny.yaml $long
[ "$code" = 1 ] && grep -qE "^  !! data: [0-9]+ of [0-9]+ $cut" out || fail "lines are cut without a word: $(cat out err)"

# ---- what is proposed is a command, whatever the folder is called; no run is called like a folder that is there
ok train tiny.yaml --steps 1 --out "a b's"
grep -qxF "try: hone generate 'a b'\\''s'" out || fail "a path with a space: $(tail -1 out)"
cp tiny.yaml ..yaml
refused 2 "hone: './..yaml': the name '.' is of dots alone, and would be that of a folder; give the file another one" train ./..yaml
[ ! -e runs/config.yaml ] || fail "a run lies in runs/."
