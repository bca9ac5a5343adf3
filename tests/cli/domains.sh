# A run over data.domains: stages, the matrix of losses, forgetting.json; killed and resumed it is the same; what does not fit is
# refused.
. "$(dirname "$0")/lib"

domains() {
    cat >tiny.yaml <<YAML
model: {arch: ${1:-gpt}, dim: 32, layers: 1, heads: 2, seq: 16}
data: {chars: 20000, workers: 2, domains: [prose, code, formulas]}
train: {batch_size: 2, steps: 30, lr: 3.0e-3, warmup: 5}
eval: {every: 20, batches: 2}
checkpoint: {every: 25, keep: 9}
log: {every: 20}
threads: 2
YAML
}
domains

# ---- what it prints
ok train tiny.yaml --out run
grep -qx 'data    prose, then code, then formulas: 54000 training and 6000 validation tokens, vocabulary of 74 characters' out || fail "$(grep ^data out)"
grep -qx 'steps   90 of 32 tokens, 30 for each domain' out || fail "$(grep ^steps out)"
grep -qE '^floor .*: prose 0\.[0-9]{4}, code 0\.[0-9]{4}, formulas 0\.[0-9]{4}$' out || fail "no floors: $(grep ^floor out)"
grep -E '^(stage|\[[0-9]+\] (loss|validation|saved))' out | sed -E 's/^(\[[0-9]+\] [a-z]+).* \| ([a-z]+)$/\1 \2/; s/[0-9]\.[0-9]{4}/X/g' >order
cat >wanted <<'END'
[0] validation loss prose X, code X, formulas X
stage 1 of 3: prose
[20] loss prose
[20] validation loss prose X, code X, formulas X
[25] saved run/checkpoints/step-00000025
[30] loss prose
[30] validation loss prose X, code X, formulas X
stage 2 of 3: code
[40] loss code
[40] validation loss prose X, code X, formulas X
[50] saved run/checkpoints/step-00000050
[60] loss code
[60] validation loss prose X, code X, formulas X
stage 3 of 3: formulas
[75] saved run/checkpoints/step-00000075
[80] loss formulas
[80] validation loss prose X, code X, formulas X
[90] loss formulas
[90] validation loss prose X, code X, formulas X
[90] saved run/checkpoints/step-00000090
END
same "the order of events" order wanted
sed -n '/^validation loss/,/^forgotten:/p' out | sed -E 's/[0-9]\.[0-9]{4}/X.XXXX/g; s/[+-] *[0-9]+\.[0-9] %/±N %/g; s/ +/ /g' >table
cat >wanted <<'END'
validation loss prose code formulas
before training X.XXXX X.XXXX X.XXXX
after prose X.XXXX X.XXXX X.XXXX
after code X.XXXX X.XXXX X.XXXX
after formulas X.XXXX X.XXXX X.XXXX
best possible X.XXXX X.XXXX X.XXXX
forgotten ±N % ±N % -
forgotten: by how much the perplexity is above that after the domain's own stage; backward transfer ±X.XXXX nats
END
sed -i 's/transfer [+-]X/transfer ±X/' table
same "the table" table wanted

# ---- forgetting.json: the rows are those of metrics.jsonl, and all else follows from them
json run/forgetting.json 'sorted(j) == ["backward_transfer", "domains", "entropy", "forgetting_nats", "forgetting_percent", "loss", "steps_per_domain"]'
json run/forgetting.json 'j["domains"] == ["prose", "code", "formulas"] and j["steps_per_domain"] == 30 and len(j["entropy"]) == 3'
json run/forgetting.json 'len(j["loss"]) == 4 and all(len(r) == 3 for r in j["loss"]) and j["loss"][3][2] < j["loss"][0][2]'
json run/forgetting.json 'all(abs(j["forgetting_nats"][i] - (j["loss"][3][i] - j["loss"][i + 1][i])) < 1e-7 for i in (0, 1))'
json run/forgetting.json 'all(abs(j["forgetting_percent"][i] - 100 * (2.718281828459045 ** j["forgetting_nats"][i] - 1)) < 1e-4 for i in (0, 1))'
json run/forgetting.json 'j["forgetting_nats"][2] is None and j["forgetting_percent"][2] is None'
json run/forgetting.json 'abs(j["backward_transfer"] + (j["forgetting_nats"][0] + j["forgetting_nats"][1]) / 2) < 1e-7'
rows=$(tr -d '\n ' <run/forgetting.json | sed 's/.*"loss":\(\[\[.*\]\]\),.*/\1/')
lines run/metrics.jsonl "[[l['val_losses'][d] for d in ('prose', 'code', 'formulas')] for l in j if 'val_loss' in l and l['step'] in (0, 30, 60, 90)] == $rows"
lines run/metrics.jsonl '[(l["step"], l["domain"]) for l in j if "loss" in l] == [(20, "prose"), (30, "prose"), (40, "code"), (60, "code"), (80, "formulas"), (90, "formulas")]'
lines run/metrics.jsonl 'all(l["val_loss"] == l["val_losses"][l["domain"]] for l in j if "val_loss" in l)'
lines run/metrics.jsonl '[l["step"] for l in j if "val_loss" in l] == [0, 20, 30, 40, 60, 80, 90]'

# ---- the first stage is the run of its domain alone, where the vocabulary is the same
ok train tiny.yaml --set data.domain=prose --set model.vocab=74 --set train.schedule=constant --set train.seed=7 --steps 25 --out alone
ok train tiny.yaml --set data.domains=prose --set train.schedule=constant --set train.seed=7 --set model.vocab=74 --set data.workers=0 --out one
same_checkpoint alone one 25
json one/forgetting.json 'len(j["loss"]) == 2 and j["forgetting_percent"] == [None] and j["backward_transfer"] is None'

# ---- the config that is kept, other workers, no evaluation but those at the borders: the same run
ok train run/config.yaml --set data.workers=0 --set eval.every=0 --out again
same_checkpoint run again 90
same "forgetting.json of the same run" again/forgetting.json run/forgetting.json
lines again/metrics.jsonl '[l["step"] for l in j if "val_loss" in l] == [0, 30, 60, 90]'

# ---- set back to any checkpoint, in mid-stage and at the end, it ends the same; rows from before are kept, later ones are made again
losses() { grep -o '"step":[0-9]*,"epoch":[0-9]*,"loss":[0-9.e-]*\|.*"val_loss":.*' "$1/metrics.jsonl"; }
losses run >wanted-losses
for back in 90 75 50 25; do
    rm -rf back
    cp -r run back
    (cd back/checkpoints && for d in step-*; do [ $((10#${d#step-})) -le $back ] || rm -r "$d"; done)
    [ $back = 50 ] && rm back/forgetting.json
    ok train tiny.yaml --out back --resume
    same_checkpoint run back 90
    same "forgetting.json after a resume at $back" back/forgetting.json run/forgetting.json
    losses back >found
    same "losses after a resume at $back" found wanted-losses
done

# ---- killed, and stopped by a signal, in the second stage, with stages longer than the loader reads ahead
for arch in gpt k1 postln; do
    domains $arch
    [ $arch != k1 ] || sed -i -e 's/layers: 1/tree: [2]/' -e '$ak1: {k: 1}' tiny.yaml
    set -- train tiny.yaml --steps 300 --set log.every=1 --set eval.every=0 --set checkpoint.every=35 --set train.accumulate=2 --set model.dropout=0.1
    [ $arch = gpt ] || set -- "$@" --set data.prefetch=5
    ok "$@" --out whole-$arch
    start "$@" --out $arch
    until_step 310
    [ $arch = postln ] && kill -TERM $pid || kill -KILL $pid
    finish
    [ ! -e $arch/checkpoints/step-00000900 ] || fail "$arch: finished before it was stopped"
    ok "$@" --set data.workers=1 --out $arch --resume
    grep -qE '^steps +900 of 64 tokens, 300 for each domain, resuming after step [0-9]+$' out || fail "$arch: $(grep ^steps out)"
    same_checkpoint whole-$arch $arch 900
    same "$arch: forgetting.json" $arch/forgetting.json whole-$arch/forgetting.json
done
same "nodes.jsonl" k1/nodes.jsonl whole-k1/nodes.jsonl
lines k1/nodes.jsonl '[(l["step"], l["steps"], l["domain"]) for l in j] == [(i + 1, 1, ["prose", "code", "formulas"][i // 300]) for i in range(900)]'

# ---- what must not change in a run
domains
sums run >before
keep="keep it, or start a new run with another --out"
at="hone: cannot resume 'run/checkpoints/step-00000090':"
no() { refused 2 "$at $1; $keep" train tiny.yaml --out run --resume --set "$2"; }
no "data.domains was [prose, code, formulas] and is now [prose, formulas, code]" data.domains=prose,formulas,code
no "data.domains was [prose, code, formulas] and is now [prose, code]" data.domains=prose,code
no "data.domains was [prose, code, formulas] and is now []" data.domain=prose
no "train.steps was 30 and is now 40" train.steps=40
sums run >after
same "the folder after refusals" after before

# ---- text files beside words, with characters of their own
for i in $(seq 300); do echo "Grüße aus Zeile $i"; done >notes.txt
mkdir -p far/away
for i in $(seq 400); do echo "€ $i ≠ $i"; done >far/away/a-file-with-a-long-name.txt
set -- train tiny.yaml --set "data.domains=[notes.txt, prose, far/away/a-file-with-a-long-name.txt]" --out files
ok "$@"
grep -qx "data    'notes.txt', then prose, then 'far/away/a-file-with-a-long-name.txt': .*" out || fail "$(grep ^data out)"
grep -qE '^validation loss +notes.txt +prose +-a-long-name.txt$' out || fail "$(grep '^validation loss' out)"
grep -qE '^best possible +- +0\.[0-9]{4} +-$' out || fail "$(grep '^best' out)"
json files/forgetting.json 'j["domains"] == ["notes.txt", "prose", "far/away/a-file-with-a-long-name.txt"]'
json files/forgetting.json '[e is None for e in j["entropy"]] == [True, False, True] and j["loss"][1][0] < j["loss"][0][0]'
ok "$@" --resume
echo "and one more line, which makes it longer" >>notes.txt
refused 2 "hone: cannot resume 'files/checkpoints/step-00000090': 'notes.txt' had 330 training samples and has 332 now; bring it back, or start a new run with another --out" "$@" --resume

# ---- what is wrong, by line and key
printf 'model:\n  arch: gpt\n  vocab: 50\ndata:\n  domains:\n    - prose\n    - cods\n' >wrong.yaml
refused 2 "hone: 'wrong.yaml' line 7: data.domains holds 'cods', and there is no such file; choose prose, code, formulas or a text file; did you mean 'code'?" \
    train wrong.yaml --out no
sed -i 's/cods/code/' wrong.yaml
refused 2 "hone: 'wrong.yaml' line 3: model.vocab is 50, and data.domains have 68 characters; set it to 68, or to 0 to take the data's" train wrong.yaml --out no
refused 2 "hone: --set model.vocab=60: model.vocab is 60, and data.domains have 68 characters; set it to 68, or to 0 to take the data's" \
    train wrong.yaml --set model.vocab=60 --out no
mkdir none
refused 2 "hone: the folder 'WORK/none' (text) holds no files" train tiny.yaml --set data.domains=$PWD/none,code --out no
head -c 3000 /dev/zero | tr '\0' '\377' >bytes.txt
refused 2 "hone: 'bytes.txt' is not UTF-8 text at byte 0 (0xFF); set data.tokens: byte, or convert the file" train tiny.yaml --set data.domains=code,bytes.txt --out no
[ ! -e no ] || fail "a refused run made a folder"
ok train tiny.yaml --set data.domains=code,bytes.txt --set data.tokens=byte --steps 3 --out bytes

# ---- TensorBoard has a curve for each domain
ok train tiny.yaml --tensorboard --steps 3 --out board
for curve in "train/stage" "validation/loss of prose" "validation/loss of formulas"; do
    grep -qaF "$curve" board/tensorboard/* || fail "no curve '$curve'"
done
