# Wrong input gets an exact message and exit code, and leaves nothing behind.
. "$(dirname "$0")/lib"
tiny
set_() { refused "$1" "$2" train tiny.yaml --out none --set "$3" ${4+--set "$4"} ${5+--set "$5"}; }

# ---- configs
refused 2 "hone: there is no file 'nosuch.yaml' in 'WORK'; shipped configs are $(shipped)" train nosuch.yaml
refused 2 "hone: there is no file 'quikstart.yaml' in 'WORK'; did you mean 'quickstart'?" train quikstart.yaml
refused 2 "hone: a config is wanted: a file, or a name like quickstart" train ''
refused 2 "hone: '.': this is a folder; name a YAML file in it" train .
: >empty.yaml
refused 2 "hone: 'empty.yaml': there is nothing in it; a config has at least 'model: {arch: gpt}'" train empty.yaml
printf 'model: {arch: gpt\ntrain: [\n' >broken.yaml
refused 2 "hone: 'broken.yaml' line 2: not valid YAML at column 6: did not find expected ',' or '}' (while parsing a flow mapping that starts in line 1)" \
    train broken.yaml
printf 'model: {arch: gpt}\ntrain:\n  bach_size: 3\n' >unknown.yaml
refused 2 "hone: 'unknown.yaml' line 3: there is no key 'train.bach_size'; did you mean 'train.batch_size'?" \
    train unknown.yaml
printf 'model: {arch: gpt}\ntrain:\n  batch_size: many\n' >type.yaml
refused 2 "hone: 'type.yaml' line 3: train.batch_size is 'many'; a whole number is wanted" train type.yaml
printf 'train: {steps: 3}\n' >no-model.yaml
refused 2 "hone: 'no-model.yaml': there is no section model; a config has at least 'model: {arch: gpt}'" \
    train no-model.yaml
head -c 3000 /dev/urandom >noise.yaml
run train noise.yaml
[ "$code" = 2 ] && grep -q "^hone: 'noise.yaml'" err || fail "noise.yaml: $code $(cat err)"
set_ 2 "hone: --set model.hats=3: there is no key 'model.hats'; section model has arch, vocab, dim, layers, heads, kv_heads, ffn, seq, segments, positions, dropout, rope_base, rope_scaling, rope_factor, rope_low, rope_high, rope_context, norm_eps, head and tree" \
    model.hats=3
set_ 2 "hone: --set nonsense: write it as key=value, like --set train.lr=1e-3" nonsense
set_ 2 "hone: --set =: write it as key=value, like --set train.lr=1e-3" =
set_ 2 "hone: --set model.heads=6: model.heads is 6, and 6 does not divide model.dim 32; try 4 or 8" model.heads=6
set_ 2 "hone: --set train.batch_size=-1: train.batch_size is -1; it must be from 1 to 1048576" train.batch_size=-1
set_ 2 "hone: --set train.lr=-0.1: train.lr is -0.1; it must be from 0 to 10" train.lr=-0.1
set_ 2 "hone: --set train.lr=nan: train.lr is 'nan'; a number is wanted" train.lr=nan
set_ 2 "hone: --set threads=-1: threads is -1; it must be from 0 to 4096" threads=-1
set_ 2 "hone: --set model.dropout=1: model.dropout is 1; it must be at least 0 and below 1" model.dropout=1
refused 2 "hone: --steps is 0; it must be at least 1" train tiny.yaml --out none --steps 0
refused 2 "hone: --steps is -5; it must be at least 1" train tiny.yaml --out none --steps -5

# ---- data files
text() { set_ 2 "$1" data.source=text data.path="$2" ${3+"$3"}; }
bin() { set_ 2 "$1" data.source=bin data.path="$2" ${3+"$3"}; }
from="relative paths start from 'WORK'"
text "hone: --set data.path=\"nosuch.txt\": cannot open 'nosuch.txt': No such file or directory; $from" nosuch.txt
text "hone: --set data.path=\"/nosuch.txt\": cannot open '/nosuch.txt': No such file or directory" /nosuch.txt
: >empty.txt
text "hone: 'empty.txt' is empty; it should hold text" empty.txt
mkdir folder
text "hone: the folder 'folder' (text) holds no files" folder
printf 'too short' >short.txt
text "hone: 'short.txt' leaves 9 tokens for training, and one sequence of model.seq 16 needs 17; give more data, or set a smaller model.seq" \
    short.txt
printf 'abc\xff%.0s' $(seq 100) >latin.txt
text "hone: 'latin.txt' is not UTF-8 text at byte 3 (0xFF); set data.tokens: byte, or convert the file" latin.txt
seq 1000 >numbers.txt
text "hone: 'numbers.txt' has a vocabulary of 11 characters, and model.vocab is 10; set it to 11, or to 0 to take the data's" \
    numbers.txt model.vocab=10
set_ 2 "hone: 'the built-in corpus' has a vocabulary of 49 characters, and model.vocab is 10; set it to 49, or to 0 to take the data's" \
    model.vocab=10
bin "hone: --set data.path=\"nosuch.bin\": cannot open 'nosuch.bin': No such file or directory; $from" nosuch.bin
bin "hone: --set data.path=\"nosuch-*.bin\": no file matches 'nosuch-*.bin'; $from" 'nosuch-*.bin'
# The line of the config, wherever that lies.
mkdir configs
named() {       # MESSAGE KEYS: of line 2 of a config
    sed "2s/.*/data: {workers: 0, $2}/" tiny.yaml >configs/named.yaml
    refused 2 "hone: 'configs/named.yaml' line 2: $1" train configs/named.yaml --out none
}
named "data.path: cannot open 'nosuch.txt': No such file or directory; $from" 'source: text, path: nosuch.txt'
named "data.path: no file matches 'no*such' (text); $from" 'source: text, path: no*such'
named "data.val_path: cannot open 'nosuch.txt': No such file or directory; $from" 'source: text, path: numbers.txt, val_path: nosuch.txt'
named "data.tokenizer: cannot open the tokenizer 'nosuch.json': No such file or directory; $from" 'source: text, path: numbers.txt, tokenizer: nosuch.json'
named "data.domains holds 'nosuch.txt', and there is no such file; choose prose, code, formulas or a text file; $from" 'domains: [prose, nosuch.txt]'
: >empty.bin
bin "hone: 'empty.bin' is empty; it should hold tokens" empty.bin
head -c 1001 /dev/zero >odd.bin
bin "hone: 'odd.bin' has 1001 bytes, an odd number; a file of uint16 tokens has 2 bytes for each: it is cut off, or not a token file" \
    odd.bin
head -c 20 /dev/zero >short.bin
bin "hone: 'short.bin' has 10 tokens; model.seq 16 needs at least 17: leave the shard out, or set model.seq to 9 or less" \
    short.bin
python3 - <<'PY'
import struct
def shard(name, magic, version, said, tokens, cut=0):
    data = struct.pack("<256i", magic, version, said, *([0] * 253)) + struct.pack("<%dH" % len(tokens), *tokens)
    open(name, "wb").write(data[:len(data) - cut])
tokens = [i % 50 for i in range(1000)]
shard("truncated.bin", 20240520, 1, 1000, tokens, 100)
shard("head.bin", 20240520, 1, 1000, [], 500)
shard("lying.bin", 20240520, 1, 2000000000, tokens)
shard("negative.bin", 20240520, 1, -5, tokens)
shard("version.bin", 20240520, 9, 1000, tokens)
shard("big-token.bin", 20240520, 1, 1000, tokens[:-1] + [60000])
PY
bin "hone: 'truncated.bin' says in its header that it holds 1000 tokens of 2 bytes, which would be 3024 bytes in all; it has 2924: it is cut off or corrupt" \
    truncated.bin
bin "hone: 'head.bin' starts like an llm.c shard but has 524 bytes; its header alone is 1024: it is cut off" head.bin
bin "hone: 'lying.bin' says in its header that it holds 2000000000 tokens of 2 bytes, which would be 4000001024 bytes in all; it has 3024: it is cut off or corrupt" \
    lying.bin
bin "hone: 'negative.bin' says in its header that it holds -5 tokens of 2 bytes, which would be 1024 bytes in all; it has 3024: it is cut off or corrupt" \
    negative.bin
bin "hone: 'version.bin' is an llm.c shard of version 9; with the magic number 20240520 only version 1 can be read" \
    version.bin
bin "hone: 'big-token.bin' holds token 60000 (at place 999), and model.vocab is 50; tokens must be below it: set model.vocab to 60001 or more" \
    big-token.bin model.vocab=50

# ---- sizes that no machine has
set_ 2 "hone: --set model.dim=1000000000: model.dim is 1000000000; it must be from 1 to 65536" model.dim=1000000000
set_ 2 "hone: --set model.dim=99999999999999999999: model.dim is 99999999999999999999; it must be from 1 to 65536" \
    model.dim=99999999999999999999
set_ 2 "hone: train.epochs is 1000000000, and one epoch has 562 steps; at most 2147483647 steps can be counted" train.epochs=1000000000
sed 's/^train: {/&epochs: 1000000000, /' tiny.yaml >epochs.yaml
refused 2 "hone: train.epochs is 1000000000, and one epoch has 562 steps; at most 2147483647 steps can be counted" train epochs.yaml --print-program
run doctor epochs.yaml
[ "$code" = 1 ] && grep -q '!! data: train.epochs is 1000000000, and one epoch has 562 steps; at most 2147483647 steps can be counted' out || fail "doctor: $code, $(cat out)"
set_ 2 "hone: --set train.batch_size=1000000000000: train.batch_size is 1000000000000; it must be from 1 to 1048576" \
    train.batch_size=1000000000000
set_ 2 "hone: --set model.layers=1000: the model has 5.2e+13 parameters, and the most is 1.1e+12; make model.dim 65536, model.layers 1000, model.ffn 262144 or model.vocab 0 smaller" \
    model.dim=65536 model.layers=1000
set_ 2 "hone: --set model.seq=1048576: the feed-forward layer would hold train.batch_size 1048576 x model.seq 1048576 x model.ffn 128 = 1.4e+14 numbers, and the most is 1.1e+12; make one of them smaller" \
    train.batch_size=1048576 model.seq=1048576
refused 2 "hone: --set model.seq=1048576: the attention scores would hold train.batch_size 2 x model.heads 2 x model.seq 1048576 x model.seq 1048576 = 4.4e+12 numbers, and the most is 1.1e+12; make one of them smaller, or set optimize.flash-attention to on" \
    bench tiny.yaml --set model.seq=1048576 --set optimize.passes=none

# More than the machine's memory: refused before any of it is touched.
memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
batch=$((memory / 8192 + 1))            # of sequences whose attention scores, kept whole, take 8 MB each
for command in "train tiny.yaml --out none" "bench tiny.yaml"; do
    run $command --set model.seq=1024 --set train.batch_size=$batch --set optimize.passes=none
    [ "$code" = 3 ] || fail "a step larger than memory: exit code $code: $(cat err)"
    remedy='train\.batch_size: [0-9]+ with train\.accumulate: [0-9]+ \([0-9]+ MB\)'
    grep -qE "^hone: out of memory: the workspace of activations and gradients needs [0-9.]+ MB, and [0-9]+ MB are free; try (optimize.recompute: on \([0-9]+ MB\) or )?$remedy\$" err ||
        fail "a step larger than memory: $(cat err)"
    python3 - "$(cat err)" $batch <<'PY' || fail "the advice makes another step: $(cat err), batch $batch"
import re, sys
n, k = map(int, re.search(r"batch_size: (\d+) with train.accumulate: (\d+)", sys.argv[1]).groups())
batch = int(sys.argv[2])
sys.exit(not (k >= 2 and 0 <= n * k - batch < k))
PY
done
run train tiny.yaml --out none --set model.dim=65536 --set model.layers=20
[ "$code" = 3 ] && grep -qE '^hone: out of memory: parameters and optimizer state needs [0-9.]+ MB, and [0-9]+ MB are free; try a smaller model.seq, model.dim or model.layers: not even a train.batch_size of 1 fits' err ||
    fail "a huge model: $code $(cat err)"
python3 - "$HONE" train tiny.yaml --out none --set model.seq=1024 --set train.batch_size=$batch --set optimize.passes=none <<'PY' ||
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], capture_output=True).returncode
mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
sys.exit(0 if code == 3 and mb < 200 else f"exit code {code}, {mb:.0f} MB")
PY
    fail "memory was touched before a step that does not fit was refused"
[ ! -e none ] || fail "a refused run left a folder: $(find none)"
[ ! -e runs ] || fail "a refused run left a folder: $(find runs)"

# ---- output folders
out() { refused "$1" "$2" train tiny.yaml --out "$3"; }
out 2 "hone: --out has 0 bytes; expected 1 to 896" ''
out 2 "hone: --out has 1600 bytes; expected 1 to 896" "$(printf 'a/%.0s' $(seq 800))"
out 2 "hone: cannot make the folder 'tiny.yaml': a file of that name is there" tiny.yaml
out 2 "hone: cannot make the folder 'tiny.yaml': a file of that name is there" tiny.yaml/run
out 2 "hone: cannot make the folder '/proc/xyz': No such file or directory" /proc/xyz
if [ "$(id -u)" != 0 ]; then
    mkdir -m 555 locked
    out 2 "hone: cannot make the folder 'locked/run': Permission denied" locked/run
fi

# ---- initial weights
init() { set_ 2 "hone: --set train.init=\"$2\": ${1#hone: }" train.init="$2" ${3+"$3"}; }
ok train tiny.yaml --out run
weights=run/checkpoints/step-00000020/weights.safetensors
init "hone: cannot open 'nosuch.safetensors': No such file or directory; $from" nosuch.safetensors
printf 'PK\003\004 a pickle' >init.pt
sed '3s/{/{init: init.pt, /' tiny.yaml >pickled.yaml
refused 2 "hone: 'pickled.yaml' line 3: train.init: 'init.pt' is a pickle, which may run any program when it is opened; save it as safetensors: python3 -c \"import torch; from safetensors.torch import save_file; c = torch.load('init.pt', map_location='cpu', weights_only=True); c = c.get('model', c); save_file({k: v.clone().contiguous() for k, v in c.items()}, 'init.pt.safetensors')\"" \
    train pickled.yaml --out none
init "hone: no checkpoint in 'cache': expected folders such as step-00000500" cache
init "hone: 'tiny.yaml' claims a header of 8872155503151837037 bytes in a file of 229: truncated, or not safetensors" \
    tiny.yaml
init "hone: 'run/checkpoints/step-00000020/weights.safetensors': tensor 'emb.weight' is (49, 32), and this model needs (49, 64)" \
    $weights model.dim=64
init "hone: 'run/checkpoints/step-00000020/weights.safetensors' does not fit this model: it lacks 'blocks.0.g.weight' (nearest: 'blocks.0.u.bias'), it has too much: 'blocks.0.attn.k.bias', 'blocks.0.attn.o.bias', 'blocks.0.attn.q.bias', 'blocks.0.attn.v.bias' and 6 more" \
    $weights model.arch=llama
init "hone: 'run/checkpoints/step-00000020/weights.safetensors' does not fit this model: it lacks 'blocks.1.n1.weight', 'blocks.1.n1.bias', 'blocks.1.attn.q.weight', 'blocks.1.attn.q.bias' and 12 more" \
    $weights model.layers=2
init "hone: 'run/checkpoints/step-00000020/state.safetensors' holds 41 tensors, such as 'adam.m.blocks.0.attn.k.bias', 'adam.m.blocks.0.attn.k.weight', 'adam.m.blocks.0.attn.o.bias', 'adam.m.blocks.0.attn.o.weight': these are names of no family that is known here; expected GPT-2 ('h.0.attn.c_attn.weight'), nanoGPT, LLaMA ('layers.0.self_attn.q_proj.weight' or 'layers.0.attention.wq.weight') or hone ('blocks.0.attn.q.weight')" \
    run/checkpoints/step-00000020/state.safetensors
head -c 1000 $weights >cut.safetensors
init "hone: 'cut.safetensors' claims a header of 1656 bytes in a file of 1000: truncated, or not safetensors" \
    cut.safetensors
ok train tiny.yaml --out from --set train.init=$weights

# ---- damaged checkpoints: every reader says which file and why, and changes nothing
damaged() {     # MESSAGE (a pattern); the checkpoint is in bad/
    sums bad >before
    for command in "generate bad" "eval bad" "train tiny.yaml --out bad --resume --steps 30"; do
        run $command
        [ "$code" = 2 ] || fail "$1: hone $command: exit code $code: $(cat err)"
        grep -qE "^hone: $1" err || fail "hone $command: $(cat err)"
        [ ! -s out ] || fail "hone $command: wrote $(cat out)"
    done
    rm -f bad/.lock
    sums bad >after
    same "the folder of a damaged checkpoint" after before
    rm -rf bad
}
again() { rm -rf bad; cp -r run bad; rm -rf bad/checkpoints/step-00000010 bad/.lock; at=bad/checkpoints/step-00000020; }
flip() {        # FILE OFFSET: flips the lowest bit of a byte
    python3 - "$1" "$2" <<'PY'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]))
    byte = f.read(1)[0]
    f.seek(int(sys.argv[2]))
    f.write(bytes([byte ^ 1]))
PY
}
for file in weights state; do
    for offset in 0 9 5000; do
        again; flip $at/$file.safetensors $offset
        damaged "'$at/$file.safetensors' is damaged: its checksum is [0-9a-f]{16}, the manifest says [0-9a-f]{16}"
    done
    again; truncate -s -4 $at/$file.safetensors
    damaged "'$at/$file.safetensors' is truncated: it is [0-9]+ bytes, the manifest says [0-9]+"
    again; echo more >>$at/$file.safetensors
    damaged "'$at/$file.safetensors' is too long: it is [0-9]+ bytes, the manifest says [0-9]+"
    again; rm $at/$file.safetensors
    damaged "cannot open '$at/$file.safetensors': No such file or directory"
done
again; sed -i 's/"step": 20/"step": 21/' $at/manifest.json
damaged "'$at/manifest.json': checksum mismatch: it says [0-9a-f]{16}, its fields give [0-9a-f]{16}: damaged or edited"
again; sed -i 's/lr: 0.001/lr: 0.002/' $at/manifest.json
damaged "'$at/manifest.json': checksum mismatch"
again; truncate -s 100 $at/manifest.json
damaged "'$at/manifest.json'"
again; rm $at/manifest.json
damaged "cannot open '$at/manifest.json': No such file or directory"
again; echo '{}' >$at/manifest.json
damaged "'$at/manifest.json': format is not \"hone-checkpoint\": not a checkpoint of hone"
again; head -c 100000 /dev/zero | tr '\0' '[' >$at/manifest.json
damaged "'$at/manifest.json'"

# ---- a checkpoint of another architecture
refused 2 "hone: cannot resume 'run/checkpoints/step-00000020': model.arch was gpt and is now llama; keep it, or start a new run with another --out" \
    \
    train tiny.yaml --set model.arch=llama --out run --resume
