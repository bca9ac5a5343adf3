# Weights that others wrote become a checkpoint, and a checkpoint weights of others; what does not fit is named. scripts/make-hf-fixtures.py made
# the models.
. "$(dirname "$0")/lib"
HF=$(realpath "$HONE_SOURCE")/tests/fixtures/hf
cp -r "$HF"/gpt2 "$HF"/llama "$HF"/shards "$HF"/meta "$HF"/nano.safetensors .
chmod -R u+w .

# ---- what is said, exactly
ok import gpt2/ --out runs/gpt2
cat >wanted <<'END'
from        gpt2/, GPT-2 of Hugging Face, 1 file of f32
model       gpt with 7.42 k parameters in 36 tensors
sizes       vocab 40, dim 16, layers 2, heads 2, kv_heads 2, ffn 64, seq 12, head tied
tokens      ids: no tokenizer lies beside the weights
checkpoint  runs/gpt2/checkpoints/step-00000000
END
same "hone import" out wanted
[ ! -s err ] || fail "hone import wrote to stderr: $(cat err)"
ok import shards --out runs/shards --json
json out 'j["family"] == "LLaMA of Hugging Face" and j["files"] == 2 and j["types"] == "bf16" and j["tensors"] == 20 and j["note"] is None'
json out 'j["model"] == {"arch": "llama", "vocab": 40, "dim": 16, "layers": 2, "heads": 4, "kv_heads": 2, "ffn": 24, "seq": 12, "tied_head": True}'
ok import nano.safetensors --set model.heads=2 --out runs/nano
grep -q '^note        nanoGPT computes GELU by the error function' out || fail "hone import of nanoGPT: $(cat out)"
ok import meta --out runs/meta
ok import llama --set model.seq=8 --out runs/llama

# ---- it is a checkpoint like any other: generate, eval, train.init
ok generate runs/gpt2 --prompt "1 2 3" --tokens 4 --temperature 0
grep -qE '^1 2 3( [0-9]+){4} $' out || fail "hone generate: $(cat out)"
python3 -c 'import struct; open("t.bin", "wb").write(struct.pack("<60H", *[i * i % 40 for i in range(60)]))'
data="--set data.source=bin --set data.path=t.bin --set data.val_path=t.bin"
refused 2 "hone: 'runs/gpt2/checkpoints/step-00000000' was imported, and has no data of its own; give DATA, or --set data.source and data.path" eval runs/gpt2
ok eval runs/gpt2 t.bin --json
ok eval runs/gpt2 $data --json
loss=$(sed -n 's/^  "loss": \([0-9.]*\).*/\1/p' out)
for init in gpt2 gpt2/model.safetensors runs/gpt2 runs/gpt2/checkpoints/step-00000000 runs/gpt2/checkpoints/step-00000000/weights.safetensors; do
    rm -rf run
    ok train runs/gpt2/config.yaml $data --set train.init=$init --set train.lr=1e-12 --set train.batch_size=2 --set eval.every=1 --steps 1 --out run
    said=$(sed -n 's/.*"val_loss":\([0-9.]*\).*/\1/p' run/metrics.jsonl)
    python3 -c "import sys; sys.exit(not abs($said - $loss) < 1e-5)" || fail "train.init=$init: loss $said, and hone eval says $loss"
    cp out "out-$(echo $init | tr / -)"
done
grep -qx "init    36 tensors of GPT-2 of Hugging Face, f32, from 'gpt2'" out-gpt2 || fail "train.init is not told: $(cat out-gpt2)"
grep -qx "init    36 tensors of hone, f32, from 'runs/gpt2'" out-runs-gpt2 || fail "train.init is not told: $(cat out-runs-gpt2)"
ok train runs/gpt2/config.yaml $data --set train.init=gpt2 --set train.batch_size=2 --set model.norm_eps=1e-4 --set model.heads=4 --set model.kv_heads=4 --steps 1 --out otherwise
grep -q "^warning: train.init: these weights were made with model.heads 2 (config.json of 'gpt2'), and here it is 4$" err && grep -q 'made with model.norm_eps 1' err ||
    fail "weights that are used otherwise than they were made: $(cat err)"

# ---- export, and the same again
for model in gpt2 shards; do
    ok export runs/$model --to hf --out back-$model
    ok import back-$model --out again-$model
    cmp runs/$model/checkpoints/step-00000000/weights.safetensors again-$model/checkpoints/step-00000000/weights.safetensors || fail "$model changed on the way"
done
json back-gpt2/config.json 'j["bos_token_id"] == 0 and j["eos_token_id"] == 0'
ok export runs/gpt2 --to hf --out files --json
json out 'j["files"] == ["config.json", "model.safetensors"]'

# ---- what texts begin and end with: as config.json said, through training and resuming; else by the tokenizer's names
cp -r gpt2 ends
sed -i -e 's/"bos_token_id": 0/"bos_token_id": 7/' -e 's/"eos_token_id": 0/"eos_token_id": [9, 11]/' ends/config.json
ok import ends --out runs/ends
ok train runs/ends/config.yaml $data --set train.init=runs/ends --set train.batch_size=2 --steps 1 --out runs/further
ok train runs/ends/config.yaml $data --set train.init=runs/ends --set train.batch_size=2 --steps 2 --out runs/further --resume
for run in ends further; do
    ok export runs/$run --to hf --out hf-$run
    json hf-$run/config.json 'j["bos_token_id"] == 7 and j["eos_token_id"] == [9, 11]'
done
sed -i -e 's/"bos_token_id": 7/"bos_token_id": 40/' -e 's/"eos_token_id": \[9, 11\]/"eos_token_id": "x"/' ends/config.json
ok import ends --out runs/wrong
ok export runs/wrong --to hf --out hf-wrong
json hf-wrong/config.json 'j["bos_token_id"] is null and j["eos_token_id"] is null'
# ---- so does the length that a model was made for, which its samples may not have; where they are longer, theirs counts
cp -r llama long
sed -i 's/"max_position_embeddings": 12/"max_position_embeddings": 131072/' long/config.json
ok import long --set model.seq=8 --out runs/long
ok train runs/long/config.yaml $data --set train.init=runs/long --set train.batch_size=2 --steps 1 --out runs/longer
ok train runs/long/config.yaml $data --set train.init=runs/long --set train.batch_size=2 --steps 2 --out runs/longer --resume
ok train runs/long/config.yaml $data --set train.init=long --set train.batch_size=2 --steps 1 --out runs/at-once
for run in long longer at-once; do
    ok export runs/$run --to hf --out hf-$run
    json hf-$run/config.json 'j["max_position_embeddings"] == 131072'
done
ok train runs/llama/config.yaml $data --set train.init=runs/llama --set train.batch_size=2 --set model.seq=20 --steps 1 --out runs/outgrown
ok export runs/outgrown --to hf --out hf-outgrown
json hf-outgrown/config.json 'j["max_position_embeddings"] == 20'
ok import meta --set model.seq=8 --out runs/short-meta
ok export runs/short-meta --to hf --out hf-short-meta
json hf-short-meta/config.json 'j["max_position_embeddings"] == 12'
ok import gpt2 --set model.seq=5 --out runs/short
ok export runs/short --to hf --out hf-short
json hf-short/config.json 'j["n_positions"] == 12'
for i in $(seq 200); do echo "some words and some other words $i"; done >words.txt
tiny
ok tokenizer train words.txt --vocab 280 --out own.json
ok train tiny.yaml --set data.source=text --set data.path=words.txt --set data.tokenizer=own.json --out runs/own
ok export runs/own --to hf --out hf-own
printf 'checkpoint  runs/own/checkpoints/step-00000020\nwritten     hf-own: config.json, model.safetensors, tokenizer.json, tokenizer_config.json\n' >wanted
same "hone export" out wanted
json hf-own/tokenizer_config.json 'j == {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}'
json hf-own/config.json 'j["bos_token_id"] == j["eos_token_id"] and type(j["eos_token_id"]) is int'

# ---- characters and bytes come along, and come back
ok train tiny.yaml --out runs/chars
ok export runs/chars --to hf --out hf-chars
grep -qE '^written     hf-chars: config.json, model.safetensors, tokens.json$' out && grep -qE '^tokens      [0-9]+ characters, which tokenizers of others have no form for; tokens.json has them by id, and hone import reads it$' out ||
    fail "what became of the characters: $(cat out)"
ok import hf-chars --out runs/back
grep -qE '^tokens      characters, [0-9]+ of them$' out || fail "characters are lost: $(cat out)"
ok generate runs/chars --prompt "the " --temperature 0 --tokens 20 && cp out wanted
ok generate runs/back --prompt "the " --temperature 0 --tokens 20
same "what a model writes that was exported and imported" out wanted
refused 2 "hone: 'runs/back/checkpoints/step-00000000' was imported, and has no data of its own; give DATA, or --set data.source and data.path" eval runs/back
ok eval runs/back --set data.source=corpus --set data.chars=20000 --batches 1
ok train tiny.yaml --set data.tokens=byte --out runs/bytes
ok export runs/bytes --to torch --out torch-bytes
grep -q '^tokens      256 bytes, ' out || fail "what became of the bytes: $(cat out)"
ok export runs/bytes --to hf --out hf-bytes
for wrong in '' '--set data.tokens=char'; do
    rm -rf runs/back-bytes
    ok import hf-bytes $wrong --out runs/back-bytes
    ok eval runs/back-bytes words.txt --json && cp out wanted
    ok eval runs/bytes words.txt --json
    for f in out wanted; do sed -n 's/^  "loss": \([0-9]*\.[0-9]\{4\}\).*/\1/p' $f >$f.loss; done
    same "the loss of bytes that were imported" wanted.loss out.loss
done
refused 2 "hone: data.tokens is char, and the model was trained on bytes; set data.tokens to byte" eval runs/back-bytes words.txt --set data.tokens=char

# what --to torch writes has hone's names: train.init reads it, with its tokens, and import does not
ok train tiny.yaml --steps 1 --out runs/chars-1
ok export runs/chars-1 --to torch --out torch-chars
grep -qE '^tokens      [0-9]+ characters, which tokenizers of others have no form for; tokens.json has them by id, and train.init reads it$' out || fail "what became of the characters: $(cat out)"
ok train tiny.yaml --set train.init=torch-chars --steps 1 --out runs/from-torch
[ ! -s err ] && grep -qE "^init    [0-9]+ tensors of hone, f32, from 'torch-chars'$" out || fail "train.init of --to torch: $(cat out err)"
tr 'a-y' 'b-z' <words.txt >shifted.txt
run train tiny.yaml --set data.source=text --set data.path=shifted.txt --set model.vocab=49 --set train.init=torch-chars --steps 1 --out runs/other-tokens
grep -q "^warning: train.init: the weights of 'torch-chars' are for other characters than the data has: " err || fail "train.init does not read tokens.json: $(cat err)"

# ---- train.init: where the data has other tokens than the weights were made with, as many of them, that is told; where it has the same, nothing is
sed 's/some words/alte Zeiten/g; s/other/weite/' words.txt >worte.txt
ok tokenizer train worte.txt --vocab 280 --out theirs.json
other="so rows of the embedding stand for other symbols"
# told INIT UNIT ADVICE ARGS...
told() {
    local init=$1 unit=$2 advice=$3
    shift 3
    rm -rf run
    ok train tiny.yaml --set data.source=text --set train.init=$init --steps 1 --out run "$@"
    sed -E "s/token [0-9]+ is ('[^']*'( \(U\+[0-9A-F]{4,}\))?|0x[0-9A-F]{2}) there and ('[^']*'( \(U\+[0-9A-F]{4,}\))?|0x[0-9A-F]{2}) here/token X/" err >said
    echo "warning: train.init: the weights of '$init' are for other $unit than the data has: token X, $other; $advice" >wanted
    same "train.init with other tokens" said wanted
}
told runs/own "byte pairs" "make the tokens with its tokenizer.json (data.tokenizer), which \`hone export 'runs/own' --to hf\` writes" --set data.path=words.txt --set data.tokenizer=theirs.json
told hf-own "byte pairs" "make the tokens with the tokenizer in 'hf-own' (data.tokenizer)" --set data.path=words.txt --set data.tokenizer=theirs.json
file=$(ls runs/own/checkpoints/*/weights.safetensors | tail -1)
told "$file" "byte pairs" "make the tokens with its tokenizer.json (data.tokenizer), which \`hone export '${file%/*}' --to hf\` writes" --set data.path=words.txt --set data.tokenizer=theirs.json
tr '0-9' 'A-J' <words.txt >letters.txt
ok train tiny.yaml --set data.source=text --set data.path=letters.txt --out runs/letters
n=$(($(fold -w1 letters.txt | sort -u | wc -l) + 1))       # and the newline
told runs/letters characters "train on text of the same $n characters, or leave train.init out" --set data.path=words.txt
# a tab and a space look alike
tr ' ' '\t' <words.txt >tabs.txt
ok train tiny.yaml --set data.source=text --set data.path=tabs.txt --steps 1 --out runs/tabs
told runs/tabs characters "train on text of the same $(($(fold -w1 tabs.txt | sort -u | wc -l) + 1)) characters, or leave train.init out" --set data.path=words.txt
grep -qF "token 0 is '?' (U+0009) there and '?' (U+000A) here" err || fail "a tab and a newline: $(cat err)"
rm -rf run
for init in runs/own hf-own "$file"; do
    rm -rf run
    ok train tiny.yaml --set data.source=text --set data.path=words.txt --set data.tokenizer=own.json --set train.init=$init --steps 1 --out run
    [ ! -s err ] || fail "the same tokens: $(cat err)"
done
sed -i 's/"vocab": *[0-9]*/"vocab": 2/' hf-chars/tokens.json
ok import hf-chars --out runs/damaged
grep -qx "tokens      ids: 'hf-chars/tokens.json': the tokenizer is missing or damaged" out || fail "a damaged tokens.json: $(cat out)"
ok export runs/gpt2 --to torch --out torch
printf 'checkpoint  runs/gpt2/checkpoints/step-00000000\nwritten     torch: config.json, model.safetensors, model.py\n' >wanted
same "hone export" out wanted
json torch/config.json 'j["arch"] == "gpt" and j["positions"] == 12 and j["tied_head"] is True and j["tree"] == []'
python3 -m py_compile torch/model.py 2>/dev/null || python3 -c 'compile(open("torch/model.py").read(), "model.py", "exec")'
tiny postln
ok train tiny.yaml --out runs/tiny
refused 2 "hone: arch postln has no counterpart in Hugging Face's transformers; choose --to torch" export runs/tiny --to hf --out x
refused 2 "hone: 'torch' holds 'model.py' already; give an --out that is empty or not there yet" export runs/gpt2 --to hf --out torch
refused 2 "hone export: --to is 'onnx'; choose hf or torch" export runs/gpt2 --to onnx --out y
refused 2 "hone: --to is missing; choose hf (Hugging Face's transformers) or torch (plain PyTorch)" export runs/gpt2 --out y
refused 2 "hone: --out is missing: the folder to write, such as --out mine-hf" export runs/gpt2 --to hf

# ---- what is wrong
refused 2 "hone: --out is missing: the folder for the checkpoint, such as --out runs/mine" import gpt2
refused 2 "hone: 'runs/gpt2' already holds a run; give an --out that is empty or not there yet" import gpt2 --out runs/gpt2
refused 2 "hone: cannot open 'nosuch': No such file or directory" import nosuch --out x
refused 2 "hone: 'nano.safetensors' does not say how many heads attention has, and no config.json lies beside it; give --set model.heads=N, where N divides 16" \
    import nano.safetensors --out x
refused 2 "hone: 'runs/gpt2/checkpoints/step-00000000/weights.safetensors' has hone's own names, which do not say what model it is; train it with a config that does: --set train.init=runs/gpt2/checkpoints/step-00000000/weights.safetensors" \
    import runs/gpt2/checkpoints/step-00000000/weights.safetensors --out x
# safetensors whose first bytes, the length of their head, look like a pickle
python3 - looks.safetensors <<'PY'
import struct, sys
head = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'.ljust(0x0480)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + struct.pack("<f", 1))
PY
run import looks.safetensors --out x
grep -q pickle err && fail "safetensors are called a pickle: $(cat err)"
mkdir pickled
printf 'PK\003\004and so on' >pickled/pytorch_model.bin
echo '{"model_type": "gpt2"}' >pickled/config.json
refused 2 "hone: 'pickled/pytorch_model.bin' is a pickle, which may run any program when it is opened; save it as safetensors: python3 -c \"import torch; from safetensors.torch import save_file; c = torch.load('pickled/pytorch_model.bin', map_location='cpu', weights_only=True); c = c.get('model', c); save_file({k: v.clone().contiguous() for k, v in c.items()}, 'pickled/pytorch_model.bin.safetensors')\"" \
    import pickled --out x
for ours in runs/tiny runs/tiny/ runs/gpt2/checkpoints runs/gpt2/checkpoints/step-00000000; do
    refused 2 "hone: '$ours' is a run of hone already; use it as it is: hone generate, eval and export take it, and so does train.init" import $ours --out x
done
mkdir empty
refused 2 "hone: 'empty' holds neither model.safetensors nor model.safetensors.index.json; name the safetensors file" import empty --out x

# a shard that is cut off, or missing; an index that lies
cp -r shards cut
truncate -s -100 cut/model-00002-of-00002.safetensors
run import cut --out x
[ "$code" = 2 ] && grep -q "^hone: 'cut/model-00002-of-00002.safetensors': the data of tensor .* truncated or damaged$" err || fail "a truncated shard: $(cat err)"
rm cut/model-00002-of-00002.safetensors
refused 2 "hone: cannot open 'cut/model-00002-of-00002.safetensors': No such file or directory" import cut --out x
cp -r shards lies
sed -i 's#"model.norm.weight": "[^"]*"#"model.norm.weight": "../gpt2/model.safetensors"#' lies/model.safetensors.index.json
refused 2 "hone: 'lies/model.safetensors.index.json': the file of tensor 'model.norm.weight' is '../gpt2/model.safetensors'; expected the name of a file beside the index" \
    import lies --out x
echo '{"weight_map": []}' >lies/model.safetensors.index.json
refused 2 "hone: 'lies/model.safetensors.index.json' has no weight_map, which says where each tensor is" import lies --out x
echo '{"weight_map": ' >lies/model.safetensors.index.json
refused 2 "hone: 'lies/model.safetensors.index.json' is not JSON at line 2 column 0: unexpected token near end of file" import lies --out x

# config.json: each by name
config() { sed "s/\"$2\": [^,]*/\"$2\": $3/" "$HF/$1/config.json" >"$1/config.json"; }
config gpt2 n_embd 24
refused 2 "hone: 'gpt2': tensor 'wte.weight' is (40, 16), and this model needs (40, 24)" import gpt2 --out x
config gpt2 n_head '"two"'
refused 2 "hone: 'gpt2/config.json': n_head is 'two'; expected a whole number from 1 up" import gpt2 --out x
config gpt2 n_head 3
refused 2 "hone: 'gpt2/config.json': n_head is 3, and 3 does not divide n_embd 16" import gpt2 --out x
config gpt2 vocab_size 1000000000000000
refused 2 "hone: 'gpt2/config.json': vocab_size is 1e+15; expected at most 2147483647" import gpt2 --out x
config gpt2 n_layer 3
run import gpt2 --out x
[ "$code" = 2 ] && grep -qx "hone: 'gpt2' does not fit this model: it lacks 'h.2.ln_1.weight', 'h.2.ln_1.bias', 'h.2.attn.c_attn.weight', 'h.2.attn.c_attn.bias' and 8 more" err \
    || fail "a layer too many: $(cat err)"
config gpt2 activation_function '"relu"'
refused 2 "hone: 'gpt2/config.json': activation_function is 'relu'; expected gelu_new, gelu_pytorch_tanh or gelu_fast" import gpt2 --out x
config gpt2 scale_attn_by_inverse_layer_idx true
refused 2 "hone: 'gpt2/config.json': scale_attn_by_inverse_layer_idx is true, and that cannot be read so far: scores are scaled alike in all layers" import gpt2 --out x
config gpt2 model_type '"bert"'
refused 2 "hone: 'gpt2/config.json': model_type is 'bert'; expected gpt2 or llama" import gpt2 --out x
config llama rope_type '"llama3"'
refused 2 "hone: 'llama/config.json': factor is missing" import llama --out x
config llama rope_type '"linear", "factor": 0'
refused 2 "hone: 'llama/config.json': factor is 0; expected a number above 0" import llama --out x
config llama rope_type '"llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0, "original_max_position_embeddings": 8192'
refused 2 "hone: 'llama/config.json': model.rope_low is 4, and model.rope_high is 1; it must be less than that" import llama --out x
config llama mlp_bias 'false, "rope_scaling": 8'
refused 2 "hone: 'llama/config.json': rope_scaling is not an object" import llama --out x
config llama rope_type '"yarn"'
refused 2 "hone: 'llama/config.json': rope_type is 'yarn'; expected default, linear or llama3" import llama --out x
config llama attention_bias true
refused 2 "hone: 'llama/config.json': attention_bias is true, and that cannot be read so far: arch llama has no biases" import llama --out x
config llama head_dim 8
refused 2 "hone: 'llama/config.json': head_dim is 8, and hidden_size 16 has 4 heads; heads whose width is not hidden_size / num_attention_heads cannot be read so far" \
    import llama --out x
# a head beside embeddings that it is said to be tied to: with other numbers, it is none that may be lost
config llama tie_word_embeddings true
ok import llama --out runs/tied
cmp runs/tied/checkpoints/step-00000000/weights.safetensors runs/llama/checkpoints/step-00000000/weights.safetensors || fail "a head is lost"
grep -q '^sizes .* head own$' out &&
    grep -qx 'note        config.json ties the head to the embeddings, and the files have a head with other numbers: it is imported as a head of its own' out ||
    fail "a head beside tied embeddings is not told of: $(cat out)"
differs="tensor 'lm_head.weight' has other numbers than 'embed_tokens.weight', and this model's head is tied to the embeddings; set model.head to own"
refused 2 "hone: 'llama': $differs" import llama --set model.head=tied --out x
refused 2 "hone: --set train.init=\"llama\": 'llama': $differs" train runs/llama/config.yaml $data --set train.init=llama --set model.head=tied --out x
[ ! -e x ] || fail "a refused import left a folder"

# names that are nobody's, and a model of another size as train.init
python3 - <<'PY'
import struct
text = b'{"encoder.w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
open("other.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(8))
PY
refused 2 "hone: 'other.safetensors' holds 1 tensors, such as 'encoder.w': these are names of no family that is known here; expected GPT-2 ('h.0.attn.c_attn.weight'), nanoGPT, LLaMA ('layers.0.self_attn.q_proj.weight' or 'layers.0.attention.wq.weight') or hone ('blocks.0.attn.q.weight')" \
    import other.safetensors --out x
refused 2 "hone: --set train.init=\"runs/gpt2\": 'runs/gpt2/checkpoints/step-00000000': tensor 'emb.weight' is (40, 16), and this model needs (40, 32)" \
    train runs/gpt2/config.yaml $data --set train.init=runs/gpt2 --set model.dim=32 --out x
refused 2 "hone: --set train.init=\"runs/gpt2\": 'runs/gpt2/checkpoints/step-00000000' does not fit this model: it has too much: 'blocks.1.attn.k.bias', 'blocks.1.attn.k.weight', 'blocks.1.attn.o.bias', 'blocks.1.attn.o.weight' and 12 more" \
    train runs/gpt2/config.yaml $data --set train.init=runs/gpt2 --set model.layers=1 --out x
