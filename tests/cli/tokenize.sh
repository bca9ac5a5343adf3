# Text becomes tokens: a tokenizer is made, shards are written, a model is trained on them, and its checkpoint writes text. scripts/check-tokenizers.py
# made the fixtures.
. "$(dirname "$0")/lib"
BPE=$(realpath "$HONE_SOURCE")/tests/fixtures/bpe
for i in $(seq 400); do echo "The miller went to the river and the river went to the sea, $i times. Größer und schöner; 你好 $((i * 37))!"; done >text.txt

# ---- ids are those of Hugging Face's tokenizers, whatever the shards and threads
for name in gpt2 llama3 digits prefix llama2 mistral; do
    text=$BPE/text.txt
    case $name in llama2|mistral) text=$BPE/spaced.txt ;; esac
    ok tokenize "$text" --tokenizer "$BPE/$name.json" --out "shards-$name" --shard 1000 --threads 2
    python3 - "$name" "$BPE/$name.ids" <<'PY' || fail "$name: other tokens than tokenizers has"
import glob, struct, sys
ids = []
for path in sorted(glob.glob("shards-%s/tokens-*.bin" % sys.argv[1])):
    data = open(path, "rb").read()
    magic, version, n = struct.unpack("<3i", data[:12])
    assert (magic, version) == (20240520, 1) and len(data) == 1024 + 2 * n
    ids += struct.unpack("<%dH" % n, data[1024:])
sys.exit(ids != [int(i) for i in open(sys.argv[2]).read().split()])
PY
    cmp "$BPE/$name.json" "shards-$name/tokenizer.json" || fail "the tokenizer beside the shards is another one"
done

# ---- a tokenizer of our own: the same on any number of threads, from a file, a folder, a pattern or gzip
ok tokenizer train text.txt --vocab 400 --out own.json --threads 1
sed -E 's/[0-9]+\.[0-9]+ s/X s/' out >said
cat >wanted <<'END'
text        42.8 kB in 1 file
vocabulary  400 tokens, 1 of them special
written     own.json
time        X s
END
same "hone tokenizer train" said wanted
[ ! -s err ] || fail "hone tokenizer train wrote to stderr: $(cat err)"
printf 'a rose is a rose is a rose\n' >few.txt
ok tokenizer train few.txt --vocab 5000 --out few-own.json
grep -qxE 'warning: the vocabulary has 2[0-9]{2} tokens, and --vocab is 5000: no other pair comes 2 times in the text \(--least\)' err || fail "fewer tokens: $(cat err)"
mkdir -p many/below
head -n 150 text.txt >many/a.txt
tail -n +151 text.txt | head -n 150 >many/below/b.txt
tail -n +301 text.txt | gzip >many/below/c.txt.gz
echo hidden >many/.hidden
ok tokenizer train many --vocab 400 --out again.json --threads 3 --json
cmp own.json again.json || fail "a folder gives another tokenizer"
json out 'j["files"] == 3 and j["vocab"] == 400 and j["bytes"] > 42000'
ok tokenizer train 'many/*.txt' 'many/below/*' --vocab 400 --out pattern.json
cmp own.json pattern.json || fail "patterns give another tokenizer"

ok tokenize text.txt --tokenizer own.json --out one --json
json out 'j["vocab"] == 400 and j["shards"] == 1 and j["token_bytes"] == 2 and j["files"] == 1 and not j["interrupted"]'
tokens=$(sed -n 's/^  "tokens": \([0-9]*\).*/\1/p' out)
ok tokenize many --tokenizer own.json --out parts
sed -E 's/[0-9]+\.[0-9]+ (s|MB|kB|GB)/X \1/; s/, .* of text per second/, X of text per second/' out >said
cat >wanted <<END
text      X kB in 3 files
tokens    $tokens of a vocabulary of 400: $(python3 -c "print('%.2f' % ($(wc -c <text.txt) / $tokens))") bytes of text each
shards    1 of 2-byte tokens in parts, with tokenizer.json beside them
time      X s, X of text per second
END
same "hone tokenize" said wanted
cmp one/tokens-000000.bin parts/tokens-000000.bin || fail "a folder gives other tokens"
ok tokenize many --tokenizer own.json --out ended --between '<|endoftext|>' --json
json out "j['tokens'] == $tokens + 3"

# ---- train on shards: the checkpoint carries the tokenizer, and writes text
tiny
ok train tiny.yaml --set data.source=bin --set data.path='one/*.bin' --out run
grep -q "^data    1 shard 'one/\*.bin': [0-9]* training and [0-9]* validation tokens, vocabulary of 400 byte pairs$" out || fail "hone train: $(cat out)"
mv one moved
ok generate run --prompt "The miller" --tokens 5 --temperature 0
grep -q '^The miller' out || fail "hone generate writes no text: $(cat out)"

# ---- of SentencePiece's kind, from text: the space that it puts before a prompt is not shown
cat >spaced.yaml <<END
model: {arch: llama, dim: 16, layers: 1, heads: 2, seq: 16}
data:  {source: text, path: text.txt, tokenizer: $BPE/llama2.json}
train: {steps: 2}
END
ok train spaced.yaml --out spaced
ok generate spaced --prompt "The miller" --tokens 5 --temperature 0 --json
json out 'j["prompt"] == "The miller" and len(j["prompt_tokens"]) > 2'
ok eval run --set data.source=text --set data.path=text.txt --set data.val_fraction=0 --split train --json && cp out of-text
json of-text 'j["bytes"] > 2 * j["tokens"] and j["bits_per_byte"] < j["bits_per_token"]'
# marks between texts are no bytes of text
mkdir short
for i in $(seq 80); do echo "text $i" >short/$i.txt; done
ok tokenize short --tokenizer own.json --out marked --between '<|endoftext|>'
ok eval run marked --json
json out "j['tokens'] > 160 and 0 < j['bytes'] <= $(cat short/*.txt | wc -c)"
ok eval run --set data.path='moved/*.bin' --set data.val_fraction=0 --split train --json
json out "j['loss'] == $(sed -n 's/^  "loss": \([0-9.]*\).*/\1/p' of-text)"
ok export run --to hf --out hf
cmp hf/tokenizer.json own.json || fail "the exported tokenizer is another one"
ok import hf --out imported
grep -qx 'tokens      byte pairs, 400 of them' out || fail "hone import: $(cat out)"
ok generate imported --prompt "The miller" --tokens 5 --temperature 0
grep -q '^The miller' out || fail "hone generate writes no text: $(cat out)"
cp -r hf odd && sed -i 's/"normalizer": null/"normalizer": {"type": "NFC"}/' odd/tokenizer.json
ok import odd --out imported-odd
grep -qx "tokens      ids: 'odd/tokenizer.json': the normalizer is of type 'NFC'; hone reads tokenizers that change no character" out || fail "hone import: $(cat out)"

# ---- lines of one file do not go on in the next
mkdir unended
for i in $(seq 10 40); do printf 'line %d of some words' "$i" >unended/$i.txt; done
ok train tiny.yaml --set data.source=text --set data.path=unended --set data.samples=lines --set data.val_fraction=0 --set eval.every=0 --set train.batch_size=1 --set train.epochs=1 --out lines
grep -q '^done: 31 steps' out || fail "31 files with a line each: $(cat out)"

# ---- the same from text, tokenized when the run starts; characters of folders and gzip, too
ok train tiny.yaml --set data.source=text --set data.path=many --set data.tokenizer=own.json --out text
grep -q "vocabulary of 400 byte pairs$" out || fail "hone train: $(cat out)"
ok train tiny.yaml --set data.source=text --set data.path=many --out chars
grep -q "vocabulary of [0-9]* characters$" out || fail "hone train: $(cat out)"
ok train tiny.yaml --set data.source=text --set data.path=many --set data.tokenizer=own.json --out text --resume --steps 25
refused 2 "hone: data.samples is lines, and tokens of byte pairs may go on from one line to the next; set it to windows" \
    train tiny.yaml --set data.source=text --set data.path=many --set data.tokenizer=own.json --set data.samples=lines --out x

# ---- vocab.json and merges.txt of GPT-2
mkdir pair
python3 - <<'PY'
shown = [chr(c) for c in list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))] + [chr(256 + i) for i in range(68)]
quote = lambda t: '"' + t.replace("\\", "\\\\").replace('"', '\\"') + '"'
words = shown + ["th", "the", "<|endoftext|>"]
open("pair/vocab.json", "w", encoding="utf-8").write("{" + ", ".join("%s: %d" % (quote(w), i) for i, w in enumerate(words)) + "}")
open("pair/merges.txt", "w", encoding="utf-8").write("#version: 0.2\nt h\nth e\n")
PY
ok tokenize text.txt --tokenizer pair --out from-pair --between '<|endoftext|>' --json
json out 'j["vocab"] == 259'
grep -q '"content": "<|endoftext|>"' from-pair/tokenizer.json || fail "the special token is lost"

# ---- ids beyond 65535 take four bytes
sed 's/"added_tokens": \[/"added_tokens": [{"id": 70000, "content": "<far>"},/' own.json >far.json
ok tokenize text.txt --tokenizer far.json --out far --between '<far>' --json
json out "j['vocab'] == 70001 and j['token_bytes'] == 4 and j['tokens'] == $tokens + 1"
ok train tiny.yaml --set data.source=bin --set data.path=far/tokens-000000.bin --steps 2 --out far-run
grep -q "vocabulary of 70001 byte pairs$" out || fail "hone train: $(cat out)"

# ---- what is wrong
refused 2 "hone: --tokenizer is missing: a tokenizer.json, such as \`hone tokenizer train\` makes" tokenize text.txt --out x
refused 2 "hone: --out is missing: the folder for the shards, such as --out shards" tokenize text.txt --tokenizer own.json
refused 2 "hone: 'many' holds neither tokenizer.json nor vocab.json and merges.txt" tokenize text.txt --tokenizer many --out x
refused 2 "hone: cannot open the tokenizer 'nosuch': No such file or directory" tokenize text.txt --tokenizer nosuch --out x
refused 2 "hone: 'text.txt' is not JSON at line 1 column 3: '[' or '{' expected near 'The'" tokenize text.txt --tokenizer text.txt --out x
refused 2 "hone: cannot open 'nosuch.txt': No such file or directory" tokenize nosuch.txt --tokenizer own.json --out x
refused 2 "hone: no file matches 'no*such' (text)" tokenize 'no*such' --tokenizer own.json --out x
refused 2 "hone: --between is '</s>', and the tokenizer has no such special token" tokenize text.txt --tokenizer own.json --out x --between '</s>'
run tokenize text.txt --tokenizer pair --out parts
[ "$code" = 2 ] && grep -qE "^hone: 'parts' holds '[^']*' already; give an --out that is empty or not there yet$" err || fail "a folder that is used: $(cat err)"
refused 2 "hone: --shard must be 1 to 2147483647" tokenize text.txt --tokenizer own.json --out x --shard 0
head -c 300 many/below/c.txt.gz >cut.gz
refused 2 "hone: cannot inflate 'cut.gz': the end is missing" tokenize cut.gz --tokenizer own.json --out x
: >empty.txt
refused 2 "hone: 'empty.txt' is empty; it should hold text" tokenize empty.txt --tokenizer own.json --out x
refused 2 "hone: 'empty.txt' is empty; it should hold text" tokenizer train empty.txt --out x.json
refused 2 "hone: --out is missing: the file to write, such as --out tokenizer.json" tokenizer train text.txt
refused 2 "hone: 'own.json' is there already; give another --out" tokenizer train text.txt --out own.json
refused 2 "hone: --vocab is 100; it must be 257 (the bytes and the special tokens) to 1048576" tokenizer train text.txt --vocab 100 --out x.json
refused 2 "hone tokenizer: --cut is 'bert'; choose gpt2 or llama3" tokenizer train text.txt --cut bert --out x.json
refused 2 "hone: --special is '<s>', which is there twice" tokenizer train text.txt --special '<s>' --special '<s>' --out x.json
refused 2 "hone: --special is '$(printf '\357\277\275')', which is not UTF-8" tokenizer train text.txt --special "$(printf '\377')" --out x.json
refused 2 "hone: the special token 'a' would be a token of the text, too, or is too long; choose one that no text has, such as <|a|>" \
    tokenizer train text.txt --special a --out x.json
refused 2 "hone: cannot write 'nosuch/x.json': No such file or directory" tokenizer train text.txt --out nosuch/x.json
refused 2 "hone: hone tokenizer knows train, not 'make'" tokenizer make text.txt --out x.json
refused 2 "hone tokenizer: train TEXT... is missing; \`hone tokenizer --help\` shows examples" tokenizer
refused 2 "hone: 'moved/tokens-000000.bin' holds tokens up to 399, and the tokenizer has 259: the shards were written with another one" \
    train tiny.yaml --set data.source=bin --set data.path=moved/tokens-000000.bin --set data.tokenizer=pair --out x
refused 2 "hone: --set data.tokenizer=\"nosuch\": cannot open the tokenizer 'nosuch': No such file or directory; relative paths start from 'WORK'" train tiny.yaml --set data.source=text --set data.path=text.txt --set data.tokenizer=nosuch --out x
printf 'caf\351 \377\376 au lait %.0s' $(seq 50) >latin.txt
mkdir torn
echo '{"a": 0, "b": 1}' >torn/vocab.json
printf '#version: 0.2\na \377b\n' >torn/merges.txt
refused 2 "hone: 'torn/merges.txt': the line 'a �b' is not UTF-8 text" tokenize latin.txt --tokenizer torn --out x
sed 's/"merges"/"\xffmerges"/' own.json >torn.json
run tokenize latin.txt --tokenizer torn.json --out x
[ "$code" = 2 ] && grep -q "^hone: 'torn.json' is not JSON at line .*: unable to decode byte 0xff" err || fail "a tokenizer that is no UTF-8: $code $(cat err)"
ok tokenize latin.txt --tokenizer own.json --out latin              # bytes that are no UTF-8 are tokens like any others
[ ! -e x ] && [ ! -e x.json ] || fail "what was refused left something"


# ---- another tokenizer than the one beside the shards is used, and told of
ok tokenizer train text.txt --vocab 410 --cut llama3 --out other.json
ok train tiny.yaml --set data.source=bin --set data.path='moved/*.bin' --set data.tokenizer=other.json --steps 1 --out other
grep -qx "warning: data.tokenizer 'other.json' is another one than the tokenizer beside the shards, 'moved': if they were written with that, their ids mean other text; leave data.tokenizer out" err ||
    fail "another tokenizer: $(cat err)"
ok train tiny.yaml --set data.source=bin --set data.path='moved/*.bin' --set data.tokenizer=own.json --steps 1 --out alike
! grep -q "another one than" err || fail "the same tokenizer: $(cat err)"
# of a model that is there: other data that another tokenizer wrote is refused, its own is told of, as in training
ok tokenizer train text.txt --vocab 300 --cut llama3 --out few.json
ok tokenize text.txt --tokenizer few.json --out few
run eval run few
[ "$code" = 2 ] && grep -qE "^hone: the tokenizer beside the shards, 'few', is another one than that of the model, 'run/checkpoints/step-00000020': token [0-9]+ is '.*' there and '.*' here, so their ids mean other text; give the text itself, or shards that the model's tokenizer wrote$" err ||
    fail "shards of another tokenizer: $code $(cat err)"
ok tokenizer train text.txt --vocab 390 --out shorter.json
ok tokenize text.txt --tokenizer shorter.json --out shorter
ok eval run shorter
grep -qx "warning: the tokenizer beside the shards, 'shorter', has 390 tokens, and that of the model, 'run/checkpoints/step-00000020', has 400: the text is cut otherwise than the model would" err ||
    fail "shards of a tokenizer that ended before: $(cat err)"
ok eval run moved
[ ! -s err ] || fail "shards of its own tokenizer: $(cat err)"
ok eval other
grep -q "^warning: the tokenizer beside the shards, 'moved', is another one than that of the model" err || fail "its own shards: $(cat err)"
printf '\n\011\n\005<unk>\025' >tokenizer.model
refused 2 "hone: 'tokenizer.model' is no tokenizer.json; transformers makes a tokenizer.json of tokenizer.model: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)" \
    tokenize text.txt --tokenizer tokenizer.model --out x

# ---- who is stopped keeps the text so far, in whole shards, and does not end as one that is done
yes "the river and the sea" | head -c 40000000 >long.txt
"$HONE" tokenize $(for i in $(seq 60); do echo long.txt; done) --tokenizer own.json --out stopped >out 2>err &
pid=$!
until [ $(( 0x$(sed -n 's/^SigCgt:\s*//p' /proc/$pid/status) & 2 )) != 0 ]; do sleep 0.02; done
sleep 0.3
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] && grep -q '^stopped   before the end of the text' out || fail "a tokenize that was stopped: exit code $code: $(cat out err)"
