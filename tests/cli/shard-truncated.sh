# A shard that is cut off while training maps it: an error that names it, a checkpoint of what was done, nothing lost.
. "$(dirname "$0")/lib"
tiny
python3 - <<'PY'
import struct
n = 4000000                                             # 8 MB: reads come from many pages
tokens = b"".join(struct.pack("<8H", *[i * k % 50 for k in range(1, 9)]) for i in range(n // 8))
open("whole.bin", "wb").write(struct.pack("<256i", 20240520, 1, n, *([0] * 253)) + tokens)
PY
N=1500

for workers in 0 2; do
    set -- train tiny.yaml --steps $N --set data.source=bin --set data.path=shard.bin --set data.workers=$workers --set log.every=1 \
        --set train.accumulate=2 --set model.dropout=0.1 --set eval.every=0 --set checkpoint.every=0
    cp whole.bin shard.bin
    start "$@" --out cut-$workers
    until_step 20
    truncate -s 5000 shard.bin
    finish
    [ "$code" = 2 ] || [ "$code" = 3 ] || fail "workers $workers: exit code $code: $(cat err)"
    grep -qE "^hone: 'shard.bin' was 8001024 bytes when it was opened and has been cut since: bytes [0-9]+ to [0-9]+ cannot be read; restore it and start again$" err ||
        fail "workers $workers: $(cat err)"
    at=$(ls cut-$workers/checkpoints | sed 's/step-0*//')
    [ "$at" -ge 20 ] && [ "$at" -lt $N ] || fail "workers $workers: checkpoints: $(ls cut-$workers/checkpoints)"

    # With the shard back, the run goes on to where it would have come without the accident.
    refused 2 "hone: 'shard.bin' says in its header that it holds 4000000 tokens of 2 bytes, which would be 8001024 bytes in all; it has 5000: it is cut off or corrupt" \
        "$@" --out cut-$workers --resume
    cp whole.bin shard.bin
    ok "$@" --out cut-$workers --resume
    [ -d whole ] || ok "$@" --out whole
    same_checkpoint whole cut-$workers $N
done

# The same for the validation data, at the very end of a run: the steps are not lost.
cp whole.bin shard.bin
cp whole.bin val.bin
start train tiny.yaml --steps 700 --set data.source=bin --set data.path=shard.bin --set data.val_path=val.bin --set log.every=1 \
    --set eval.every=1000000 --set checkpoint.every=0 --out val
until_step 5
truncate -s 0 val.bin
finish
[ "$code" = 2 ] || fail "the validation data: exit code $code: $(cat err)"
grep -q "^hone: 'val.bin' was 8001024 bytes when it was opened and has been cut since" err || fail "the validation data: $(cat err)"
[ "$(ls val/checkpoints)" = step-00000700 ] || fail "the validation data: checkpoints: $(ls val/checkpoints)"
