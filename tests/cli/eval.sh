# The loss of a checkpoint: what training said, on any batch size, part, data and kind of tokens; what does not fit is refused.
. "$(dirname "$0")/lib"
close() { json out "abs(j['$1'] - $2) <= 2e-6 * abs($2)"; }
field() { sed -n 's/^  "'"$1"'": \(.*[^,]\),*$/\1/p' "${2:-out}"; }

# ---- what training said at its end, for every model and kind of sample
tiny
for case in "gpt" "llama --set model.kv_heads=1" "postln --set model.segments=2 --set data.tokens=byte" "gpt --set data.samples=lines --set model.dropout=0.1" \
    "gpt --set optimize.precision=bf16 --set backend.kernels=reference"; do
    set -- $case
    tiny $1
    shift
    rm -rf run
    ok train tiny.yaml "$@" --out run
    val=$(sed -n 's/.*"step":20,"val_loss":\([0-9.]*\).*/\1/p' run/metrics.jsonl)
    ok eval run --batches 2 --json
    json out "j['loss'] == $val and j['step'] == 20 and j['split'] == 'validation' and j['domains'] == [] and j['interrupted'] is False"
    json out "j['checkpoint'] == 'run/checkpoints/step-00000020'"
    ok eval run --set eval.batches=2 --json
    json out "j['loss'] == $val"
done

# ---- all of a part, each sample once: whatever the batches
tiny
ok train tiny.yaml --out tiny
ok eval tiny --json
loss=$(field loss)
json out 'j["tokens"] == 124 * 16 and j["bytes"] == j["tokens"]'
for size in 1 7 200; do
    ok eval tiny --json --set eval.batch_size=$size --set data.workers=$((size % 3))
    close loss $loss
    json out 'j["tokens"] == 124 * 16'
done
json out 'abs(j["perplexity"] - 2.718281828459045 ** j["loss"]) < 1e-4 and abs(j["bits_per_token"] - j["loss"] / 0.6931471805599453) < 1e-6'
json out 'abs(j["above_entropy"] - (j["loss"] - j["entropy"])) < 1e-7 and 0.3 < j["entropy"] < 0.6'
ok eval tiny/checkpoints/step-00000020 --split train --json
json out 'j["split"] == "train" and j["tokens"] == 1124 * 16'
[ ! -s err ] || fail "the training data is what it was, and yet: $(cat err)"

# ---- as text
ok eval tiny
sed -E 's/[0-9]+\.[0-9]+/X/g' out >said
cat >wanted <<'END'
checkpoint  tiny/checkpoints/step-00000020, step 20
data        built-in prose: 18000 training and 2000 validation tokens, vocabulary of 49 characters
part        validation
loss        X (X above the best possible, X)
perplexity  X
bits        X per token, X per byte
tokens      1984
END
same "hone eval" said wanted
[ ! -s err ] || fail "hone eval wrote to stderr: $(cat err)"

# ---- a file in the vocabulary of the model: fewer characters are fine, others are named
for i in $(seq 300); do echo "größer, schöner, weiter $i"; done >text.txt
cp text.txt copy.txt
ok train tiny.yaml --set data.source=text --set data.path=text.txt --out text
ok eval text --json && cp out own
[ ! -s err ] || fail "the data is what it was, and yet: $(cat err)"
ok eval text --split train
[ ! -s err ] || fail "the training data is what it was, and yet: $(cat err)"
# a file that has grown is split elsewhere: what is validation now may have been trained on
echo 'größer' >>text.txt
not="data is not what the run had: its loss is not that of the run"
ok eval text
echo "warning: the validation $not, and some of it may have been trained on" >wanted
same "what is said of other validation data" err wanted
ok eval text --split train --set data.workers=1
echo "warning: the training $not" >wanted
same "what is said of other training data" err wanted
ok eval text copy.txt
[ ! -s err ] || fail "DATA is not the run's, and yet: $(cat err)"
rm text.txt
refused 2 "hone: 'text/checkpoints/step-00000020': data.path: cannot open 'text.txt': No such file or directory; relative paths start from 'WORK'" eval text
refused 2 "hone: --set data.path=\"nope.txt\": cannot open 'nope.txt': No such file or directory; relative paths start from 'WORK'" \
    eval tiny --set data.source=text --set data.path=nope.txt
ok eval text --set data.path=copy.txt --json
same "the loss on a copy" out <(sed 's/text\.txt/copy.txt/' own)
json out 'j["bytes"] > j["tokens"] and j["entropy"] is None and j["above_entropy"] is None'
json out 'abs(j["bits_per_byte"] * j["bytes"] - j["bits_per_token"] * j["tokens"]) < 1e-3'
for i in $(seq 100); do echo "weiter 1$i"; done >few.txt
ok eval text --set data.path=few.txt --set data.val_fraction=0 --split train --json
json out 'j["tokens"] > 900'
printf 'Straße 7 für Éva und ихней, weit und breit, und weiter\n%.0s' 1 2 3 4 5 6 7 8 >other.txt
refused 2 "hone: 'other.txt' holds 14 characters that the vocabulary of 25 does not have: 'S' (U+0053), 'a' (U+0061), 'b' (U+0062), 'd' (U+0064), 'f' (U+0066), ...; take them out, or train with them" \
    eval text --set data.path=other.txt
refused 2 "hone: data.tokens is byte, and the model was trained on characters; set data.tokens to char" eval text --set data.path=copy.txt --set data.tokens=byte
refused 2 "hone: there is no validation data; set data.val_fraction or data.val_path, or take --split train" \
    eval text --set data.path=copy.txt --set data.val_fraction=0
ok train tiny.yaml --set data.tokens=byte --out bytes
ok eval bytes --set data.source=text --set data.path=copy.txt --json       # any text is bytes
json out 'j["bytes"] == j["tokens"]'

# ---- with a tokenizer data.tokens says nothing
ok tokenizer train copy.txt --vocab 270 --out own.json
ok train tiny.yaml --set data.source=text --set data.path=copy.txt --set data.tokenizer=own.json --set data.tokens=byte --out pairs
ok eval pairs --json
json out 'j["bytes"] > j["tokens"]'

# ---- all of a text, a folder of texts, compressed ones
ok eval text --set data.path=few.txt --set data.val_fraction=0 --split train --json && cp out by-keys
ok eval text few.txt --json
same "hone eval with DATA" out <(sed 's/"split": "train"/"split": "all"/' by-keys)
mkdir texts && cp few.txt texts/1.txt && cp few.txt texts/2.txt && gzip texts/2.txt
ok eval text texts --json && cp out folder
json folder "$(field tokens by-keys) * 2 <= j['tokens'] <= $(field tokens by-keys) * 2 + 16 and j['split'] == 'all'"
ok eval text 'texts/*.gz' --json
json out "j['loss'] == $(field loss by-keys) and j['tokens'] == $(field tokens by-keys)"
ok eval text few.txt --batches 1
sed -E 's/[0-9]+\.[0-9]+/X/g' out >said
cat >wanted <<'END'
checkpoint  text/checkpoints/step-00000020, step 20
data        text 'few.txt': 1092 tokens, vocabulary of 25 characters
part        all, in whole windows, the first 1 batch
loss        X
perplexity  X
bits        X per token, X per byte
tokens      32
END
same "hone eval with DATA as text" said wanted
ok train tiny.yaml --set data.samples=lines --set data.source=text --set data.path=copy.txt --out by-lines
ok eval by-lines few.txt
grep -qx 'part        all, by lines' out || fail "lines are told as windows: $(cat out)"
# all of it, also where the run had a part of its own data; a part that is asked for
ok train tiny.yaml --set data.source=text --set data.path=copy.txt --set data.max_chars=1000 --out part
ok eval part few.txt --json
json out 'j["tokens"] > 1000 and "cut" not in j["data"]'
ok eval part few.txt --set data.max_chars=100 --json
json out 'j["tokens"] < 100 and "cut" in j["data"]'
refused 2 "hone: cannot open 'nosuch.txt': No such file or directory" eval text nosuch.txt
refused 2 "hone: --split is for the run's own data; DATA is looked at whole" eval text few.txt --split train
for set in data.path=copy.txt data.val_path=copy.txt data.val_fraction=0.5 data.source=corpus data.domains=prose,code; do
    refused 2 "hone: --set ${set%%=*} is for the run's own data; DATA is looked at whole: leave out one of the two" eval text few.txt --set $set
done
printf 'weiter' >short.txt
run eval text short.txt
[ "$code" = 2 ] && grep -q "short.txt" err && [ ! -s out ] || fail "a text that is too short: $code $(cat err)"
refused 2 "hone: 'short.txt' has 6 tokens, and one sequence of model.seq 16 needs 17; give more data" eval text short.txt
printf 'weiter\377' >latin.txt
refused 2 "hone: 'latin.txt' is not UTF-8 text at byte 6 (0xFF); convert the file: the model reads characters" eval text latin.txt
# in a folder it is the file that is named, and the place in it
mkdir mix && cp few.txt mix/a.txt && : >mix/b.txt && cp latin.txt mix/c.txt && cp few.txt mix/d.txt
refused 2 "hone: 'mix/c.txt' is not UTF-8 text at byte 6 (0xFF); convert the file: the model reads characters" eval text mix
gzip mix/a.txt
refused 2 "hone: 'mix/c.txt' is not UTF-8 text at byte 6 (0xFF); set data.tokens: byte, or convert the file" train tiny.yaml --set data.source=text --set data.path=mix --set data.samples=lines --out no
refused 2 "hone: 'mix/c.txt' is not UTF-8 text at byte 6 (0xFF); set data.tokens: byte, or convert the file" train tiny.yaml --set data.domains=code,mix --out no

# ---- token ids
python3 - <<'PY'
import struct
for name, most in (("raw", 50), ("large", 90)):
    open(name + ".bin", "wb").write(struct.pack("<3000H", *[i * i % most for i in range(3000)]))
PY
ok train tiny.yaml --set data.source=bin --set data.path=raw.bin --out raw
ok eval raw --json
json out 'j["bytes"] is None and j["bits_per_byte"] is None and j["loss"] > 0'
ok eval raw --set data.val_fraction=0 --split train --json && cp out by-keys
ok eval raw raw.bin --json
same "hone eval with shards" out <(sed 's/"split": "train"/"split": "all"/' by-keys)
mkdir shards && cp raw.bin shards/1.bin && cp raw.bin shards/2.bin
ok eval raw shards --json
json out "j['tokens'] == 2 * $(field tokens by-keys) and abs(j['loss'] - $(field loss by-keys)) < 1e-3"
head -c 20 raw.bin >shards/3.bin
ok eval raw shards --json
json out "j['tokens'] == 2 * $(field tokens by-keys)"
echo "warning: 'shards/3.bin' has 10 tokens, and model.seq 16 needs at least 17: the shard is left out" >wanted
same "a shard that is too short" err wanted
rm shards/3.bin
# names are meant as they are: what a pattern, a quote or a YAML value would be otherwise
for name in 's[1]' 'a*b' 'q?' 'back\slash'; do
    cp -r shards "$name"
    mkdir -p s1 && cp raw.bin s1/other.bin
    ok eval raw "$name" --json
    json out "j['tokens'] == 2 * $(field tokens by-keys)"
done
for name in ' lead.txt' '"quoted"' null '~' 'sp ace' "it's"; do
    cp few.txt "$name"
    ok eval text "$name" --json
    json out 'j["tokens"] == 1092 or j["tokens"] > 1000'
done
refused 2 "hone: 'large.bin' holds token 85 (at place 25), and the model has a vocabulary of 50: it was trained on other tokens" \
    eval raw --set data.path=large.bin
refused 2 "hone: the model's tokens are ids without a text, and data.source text 'copy.txt' has text; give data of the same kind" \
    eval raw --set data.source=text --set data.path=copy.txt
refused 2 "hone: the model's tokens are pieces of text, and data.source bin 'raw.bin' has ids without a text; give data of the same kind" \
    eval text --set data.source=bin --set data.path=raw.bin
mkdir mixed && cp copy.txt raw.bin mixed               # a folder with shards is one of shards
refused 2 "hone: the model's tokens are pieces of text, and data.source bin 'mixed/*.bin' has ids without a text; give data of the same kind" eval text mixed

# ---- domains: those of the run, others, one alone
ok train tiny.yaml --set data.domains=prose,code,formulas --out domains
ok eval domains --json && cp out all
json all '[d["name"] for d in j["domains"]] == ["prose", "code", "formulas"] and j["tokens"] == sum(d["tokens"] for d in j["domains"])'
json all 'abs(j["loss"] - sum(d["loss"] * d["tokens"] for d in j["domains"]) / j["tokens"]) < 1e-7'
of_code=$(python3 -c 'import sys; j = eval(open("all").read(), {"true": True, "false": False, "null": None}); print(j["domains"][1]["loss"])')
ok eval domains --set data.domain=code --json
json out "j['loss'] == $of_code and j['domains'] == []"
ok eval domains --set "data.domains=[code]" --json
json out "j['loss'] == $of_code and len(j['domains']) == 1"
ok eval domains --batches 2 --json
last=$(tr -d '\n ' <domains/forgetting.json | sed 's/.*,\(\[[0-9.,]*\]\)\],"forgetting_percent.*/\1/')
json out "[d['loss'] for d in j['domains']] == $last"
ok eval domains
sed -E 's/[0-9]+\.[0-9]+/X/g; s/ +/ /g' out >said
cat >wanted <<'END'
checkpoint domains/checkpoints/step-00000060, step 60
data prose, then code, then formulas: 54000 training and 6000 validation tokens, vocabulary of 74 characters
part validation
 loss above best perplexity bits/token bits/byte tokens
prose X X X X X 1984
code X X X X X 1984
formulas X X X X X 1984
all X X X X X 5952
END
same "hone eval of domains" said wanted
refused 2 "hone: 'copy.txt' holds 2 characters that the vocabulary of 74 does not have: 'ß' (U+00DF), 'ö' (U+00F6); take them out, or train with them" \
    eval domains --set data.domains=code,copy.txt

printf 'the sea and the river\n%.0s' $(seq 50) >stages.txt
# a run over domains is looked at on fewer of them and on other data, also where its warm-up is longer than one stage
sed 's/, warmup: 5//; s/steps: 20/steps: 50/' tiny.yaml >stages.yaml
ok train stages.yaml --set data.domains=prose,code,formulas --out stages
ok eval stages --set data.domain=code
ok eval stages stages.txt
ok eval stages --set 'data.domains=[code]'
ok generate stages --prompt a --tokens 2

# ---- what is wrong
as="the model is as it was trained; set keys of data, eval, optimize or backend, device or threads"
refused 2 "hone: --set model.dim=64: $as" eval tiny --set model.dim=64
refused 2 "hone: --set train.seed=3: $as" eval tiny --set train.seed=3
refused 2 "hone: --set data.domains=cod: data.domains holds 'cod', and there is no such file; choose prose, code, formulas or a text file; did you mean 'code'?" \
    eval tiny --set data.domains=cod
refused 2 "hone: --set data.domain=kode: data.domain is 'kode'; choose prose, code or formulas; did you mean 'code'?" eval tiny --set data.domain=kode
refused 2 "hone: 'the built-in corpus' holds 19 characters that the vocabulary of 49 does not have: '%' (U+0025), '(' (U+0028), ')' (U+0029), '*' (U+002A), '+' (U+002B), ...; set data.domain to one that it was trained on, or train with this one" \
    eval tiny --set data.domain=code
refused 2 "hone eval: --split is 'test'; choose train or validation" eval tiny --split test
refused 2 "hone: --batches must be at least 1, not 0" eval tiny --batches 0
refused 2 "hone eval: --device is 'gpu'; choose cpu or cuda; did you mean 'cuda'?" eval tiny --device gpu
refused 2 "hone eval: --device is 'tpu'; choose cpu or cuda; did you mean 'cpu'?" eval tiny --device tpu
refused 2 "hone: no checkpoint at 'nosuch': No such file or directory" eval nosuch
refused 2 "hone: 'tiny.yaml' is a file; expected a checkpoint's folder or a run's folder" eval tiny.yaml
refused 2 "hone eval: CHECKPOINT is missing; \`hone eval --help\` shows examples" eval

# Samples that a last batch repeats to be full count once, in training as here.
ok train tiny.yaml --steps 2 --set eval.every=2 --set eval.batch_size=7 --set eval.batches=100000 --out once --json
cp out trained.json
ok eval once --json
python3 -c 'import json; a=json.load(open("trained.json"))["val_loss"]; b=json.load(open("out"))["loss"]; assert abs(a - b) < 1e-6 * b, (a, b)' || fail "training and eval disagree"

# All of DATA is looked at, in windows from its beginning on, whatever seed the model was trained with.
tiny
python3 -c 'print("the cat sat on the mat and " * 40, end="")' >cats.txt
for seed in 1 2; do
    ok train tiny.yaml --steps 1 --set train.seed=$seed --set train.init=tiny --set train.lr=0 --set train.weight_decay=0 --set eval.every=0 --out seed$seed
    ok eval seed$seed cats.txt --json
    json out 'j["tokens"] == (27 * 40 - 1) // 16 * 16'
    field loss >seed$seed.loss
done
python3 -c 'a, b = (float(open("seed%d.loss" % i).read()) for i in (1, 2)); assert abs(a - b) < 1e-6 * a, (a, b)' || fail "the same weights have two losses"
