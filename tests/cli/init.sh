# Weights that PyTorch saved can be trained on: their loss on a shard of tokens is the one that PyTorch computed, and
# training goes on from there. scripts/make-fixtures.py made the files.
. "$(dirname "$0")/lib"
FIXTURES=$(realpath "$HONE_SOURCE")/tests/fixtures

# config ARCH MODEL
config() {
    cat >"$1.yaml" <<YAML
model: {arch: $1, $2}
data: {source: bin, path: $FIXTURES/weights_$1.bin, val_path: $FIXTURES/weights_$1.bin, workers: 0}
train: {batch_size: 2, steps: 1, lr: 1.0e-12, warmup: 0, init: $FIXTURES/weights_$1.safetensors}
eval: {every: 1, batches: 3, batch_size: 2}
threads: 2
YAML
}
config gpt "vocab: 37, dim: 24, layers: 2, heads: 3, ffn: 56, seq: 10"
config llama "vocab: 41, dim: 32, layers: 2, heads: 4, kv_heads: 2, ffn: 48, seq: 9"

for arch in gpt llama; do
    ok train $arch.yaml --out same-$arch --json
    json out "abs(j['val_loss'] - $(cat "$FIXTURES/weights_$arch.loss")) < 2e-5"
    ok train $arch.yaml --out on-$arch --json --set train.lr=1e-2 --steps 30
    json out "j['val_loss'] < $(cat "$FIXTURES/weights_$arch.loss") - 0.5"
done

# ---- weights of 16 bits: what was loaded is said, and the loss is that of their numbers
python3 - "$FIXTURES/weights_gpt.safetensors" half.safetensors <<'PY'
import re, struct, sys
data = open(sys.argv[1], "rb").read()
n, = struct.unpack("<Q", data[:8])
header, numbers = data[8:8 + n].decode(), data[8 + n:]
halves = struct.pack(f"<{len(numbers) // 4}e", *struct.unpack(f"<{len(numbers) // 4}f", numbers))
header = header.replace('"F32"', '"F16"')
header = re.sub(r'("data_offsets": *\[)(\d+)( *, *)(\d+)', lambda m: f"{m[1]}{int(m[2]) // 2}{m[3]}{int(m[4]) // 2}", header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(header)) + header + halves)
PY
ok train gpt.yaml --set train.init=half.safetensors --out half
grep -qxF "init    36 tensors of hone, f16, from 'half.safetensors'" out || fail "what was loaded is not said: $(cat out)"
ok train gpt.yaml --set train.init=half.safetensors --out half-json --json
json out "abs(j['val_loss'] - $(cat "$FIXTURES/weights_gpt.loss")) < 1e-3"
