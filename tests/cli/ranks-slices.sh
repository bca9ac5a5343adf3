# dist.shard: optimizer. Ranks divide AdamW's moments: the same bits on 1, 2 and 4, and checkpoints that go on on any number of them, divided or
# not. Needs MPI.
. "$(dirname "$0")/lib"
. "$HONE_SOURCE/tests/cli/lib-ranks"
tiny_of_ranks
run launch -n 1 train tiny.yaml --out none
! grep -q 'has no MPI module' err || skip "this build has no MPI module"
MPIRUN=$(command -v mpirun) || skip "there is no mpirun"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# The same bits, with less of the optimizer's state on each rank.
ok train tiny.yaml --out w1
sed -n 's/^memory .* optimizer state \([0-9.]* [kM]*B\).*/\1/p' out >state1
for n in 2 4; do
    ok launch -n $n train tiny.yaml --out s$n --set dist.shard=optimizer
    for f in weights state; do
        cmp w1/checkpoints/step-00000050/$f.safetensors s$n/checkpoints/step-00000050/$f.safetensors || fail "$n ranks with slices: other $f"
    done
    sed -n 's/^memory .* optimizer state \([0-9.]* [kM]*B\).*/\1/p' out >state$n
done
[ "$(cat state1 state2 state4 | sort -u | wc -l)" = 3 ] || fail "the state of 1, 2 and 4 ranks: $(cat state1 state2 state4)"

# Its ops are in the program, and weights are waited for before anything reads them.
"$MPIRUN" -q --oversubscribe --bind-to none -n 2 "$HONE" train tiny.yaml --set dist.shard=optimizer --print-program >out 2>err </dev/null || fail "print: $(cat err)"
for op in 'gather_wait .* slices=2' 'reduce_start .* slices=2 .*ranks.bucket.0' square_blocks sum_blocks 'gather_start .* slices=2'; do
    grep -q " $op" out || fail "no $op in the program: $(cat err)"
done
[ "$(grep -n ' gather_wait' out | head -1 | cut -d: -f1)" -lt "$(grep -n ' embed ' out | head -1 | cut -d: -f1)" ] || fail "weights are read before they are there"

# K-1: the same nodes learn, with slices and without.
cat >k1.yaml <<'YAML'
model: {arch: k1, dim: 32, heads: 2, seq: 16, tree: [2, 2], dropout: 0.1}
k1: {k: 2, every: 2}
data: {chars: 20000, workers: 0, samples: lines}
train: {batch_size: 4, steps: 50}
threads: 1
dist: {shards: 4}
YAML
ok train k1.yaml --out k1
ok launch -n 4 train k1.yaml --out k4
same_checkpoint k1 k4 50
ok launch -n 2 train k1.yaml --out k2 --set dist.shard=optimizer
for f in weights state; do
    cmp k1/checkpoints/step-00000050/$f.safetensors k2/checkpoints/step-00000050/$f.safetensors || fail "K-1 with slices: other $f"
done

# Narrow copies of weights are made where the weights of others have come; and batches of several shapes have programs that wait for each other's weights,
# in an evaluation too.
NARROW="--set backend.kernels=reference --steps 6 --set eval.every=3 --set optimize.precision"
cat >regions.yaml <<'YAML'
model: {arch: regions, dim: 16, layers: 2, heads: 2, seq: 43, positions: 64, segments: 3}
data: {source: regions, region: 20, bucket: 8, group: 2, workers: 0}
train: {batch_size: 8, steps: 20, warmup: 5}
eval: {every: 5, batches: 2}
threads: 1
dist: {shards: 4}
YAML
PACKED="regions.yaml --set data.group=1 --set data.bucket=0 --set data.pack=on --set model.seq=64"
for of in "tiny.yaml $NARROW=bf16" "tiny.yaml $NARROW=f16" regions.yaml "$PACKED" "$PACKED --set model.dropout=0.1 --set train.batch_size=16 --set train.accumulate=2"; do
    ok train $of --out of1
    ok launch -n 2 train $of --set dist.shard=optimizer --out of2
    for f in weights state; do
        cmp of1/checkpoints/step-*/$f.safetensors of2/checkpoints/step-*/$f.safetensors || fail "$of with slices: other $f"
    done
    for w in of1 of2; do sed -n 's/.*"val_loss":\([0-9.]*\).*/\1/p' "$w/metrics.jsonl" >"val$w"; done
    [ -s valof1 ] || fail "$of: no evaluation"
    same "the validation loss of $of with slices" valof2 valof1
    rm -r of1 of2
done

# From any number of ranks to any, with slices and without.
for way in '4 optimizer 1 none' '4 optimizer 2 optimizer' '4 optimizer 2 none' '1 none 4 optimizer' '2 optimizer 4 none' '2 none 1 none'; do
    set -- $way
    [ -d "from-$1-$2" ] || ok launch -n $1 train tiny.yaml --set dist.shard=$2 --steps 10 --out "from-$1-$2"
    rm -rf on
    cp -r "from-$1-$2" on
    ok launch -n $3 train tiny.yaml --set dist.shard=$4 --steps 20 --out on --resume
    [ -e first ] || cp -r on first
    for f in weights state; do
        cmp first/checkpoints/step-00000020/$f.safetensors on/checkpoints/step-00000020/$f.safetensors || fail "$way: other $f"
    done
done
