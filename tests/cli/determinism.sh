# The same seed and threads give the same bytes; another seed does not; plain and tuned kernels learn the same.
. "$(dirname "$0")/lib"
for arch in gpt llama postln; do
    tiny $arch
    set -- train tiny.yaml --steps 60 --set model.dropout=0.1 --set train.accumulate=2
    ok "$@" --out $arch-a
    ok "$@" --out $arch-b --set data.workers=3
    same_checkpoint $arch-a $arch-b 60
    ok "$@" --out $arch-c --set train.seed=43
    cmp -s $arch-a/checkpoints/step-00000060/weights.safetensors $arch-c/checkpoints/step-00000060/weights.safetensors &&
        fail "$arch: two seeds gave the same weights"

    set -- train tiny.yaml --steps 60 --json
    ok "$@" --out $arch-tuned && cp out tuned.json
    ok "$@" --out $arch-reference --set backend.kernels=reference && cp out reference.json
    for f in tuned reference; do sed -n 's/^ *"loss": \([0-9.]*\),$/\1/p' $f.json; done >losses
    python3 - $(cat losses) <<'PY' || fail "$arch: losses of tuned and plain kernels: $(cat losses)"
import sys
tuned, plain = map(float, sys.argv[1:])
sys.exit(not (1 < tuned < 4 and abs(tuned - plain) < 1e-3))
PY
    ok "$@" --out $arch-reference-2 --set backend.kernels=reference
    same_checkpoint $arch-reference $arch-reference-2 60
done

# A learning rate of 0 leaves the weights as they were drawn: the seed alone decides them.
tiny
ok train tiny.yaml --set train.lr=0 --steps 10 --out still-10
ok train tiny.yaml --set train.lr=0 --steps 20 --out still-20
cmp still-10/checkpoints/step-00000010/weights.safetensors still-20/checkpoints/step-00000020/weights.safetensors ||
    fail "weights moved with a learning rate of 0"
