# Several ranks on device: cuda. Without a GPU they are refused with clear words; with one, a rank that sums by NCCL has the bits of one that
# does not, and two that share the GPU through MPI have those of one with as many shards; stops and losses are as on CPUs.
. "$(dirname "$0")/lib"
. "$HONE_SOURCE/tests/cli/lib-ranks"
tiny
sed -i -e 's/batch_size: 2, steps: 20/batch_size: 8, steps: 20/' -e 's/chars: 20000, workers: 0/chars: 20000, workers: 1, samples: lines/' \
    -e 's/seq: 16/seq: 16, dropout: 0.1/' tiny.yaml

refused 2 "hone: --set dist.transport=nccl: dist.transport is nccl, and device is auto: NCCL sums from GPU to GPU; choose mpi, or device: cuda" \
    train tiny.yaml --set dist.transport=nccl --out none
echo "device: cuda" >>tiny.yaml
ok train tiny.yaml --set dist.transport=nccl --print-program
grep -q 'reduce_start .*ranks.bucket.0 .* last micro-batch$' out || fail "no sums of one rank in the program: $(cat out)"
ok train tiny.yaml --set dist.shards=4 --print-program
grep -q 'sum_shards .*ranks.count' out || fail "no sums of shards in the program: $(cat out)"
CUDA_VISIBLE_DEVICES='' run train tiny.yaml --set dist.transport=nccl --out none
[ "$code" = 3 ] && grep -q '^hone: device is cuda, and .*; try device: cpu$' err || fail "no GPU: exit code $code: $(cat err)"
[ ! -e none ] || fail "no GPU: left something behind"

run bench tiny.yaml --device cuda --seconds 0.01
[ "$code" = 0 ] || { echo "the rest is skipped: $(cat err)"; exit 0; }

# ---- one rank, and NCCL in its graph
BF16="--set optimize.precision=bf16"
HONE_NCCL=0 run train tiny.yaml --set dist.transport=nccl --out none
[ "$code" = 3 ] || fail "no NCCL: exit code $code"
grep -q '^hone: dist.transport is nccl, and .*; install NCCL 2, or choose dist.transport: mpi$' err || fail "no NCCL: $(cat err)"
[ ! -e none ] || fail "no NCCL: left something behind"
run train tiny.yaml --set dist.transport=nccl --out nccl
if [ "$code" = 3 ] && grep -q 'knows no NCCL\|NCCL cannot be' err; then
    echo "NCCL is left out: $(cat err)"
else
    [ "$code" = 0 ] || fail "NCCL: exit code $code: $(cat err)"
    ok train tiny.yaml --out plain
    same_checkpoint plain nccl 20
    n=0
    for set in "$BF16" "--set train.accumulate=2" "--set optimize.passes=none" "--set model.arch=llama --set model.dim=24 $BF16"; do
        n=$((n + 1))
        ok train tiny.yaml $set --out "plain$n"
        ok train tiny.yaml $set --set dist.transport=nccl --set dist.bucket_mb=1 --out "nccl$n"
        same_checkpoint "plain$n" "nccl$n" 20
    done
    ok profile tiny.yaml --set dist.transport=nccl --steps 4 --out seen
fi

# ---- two ranks on one GPU, through MPI
run launch -n 1 train tiny.yaml --out alone
! grep -q 'has no MPI module' err || { echo "the rest is skipped: $(cat err)"; exit 0; }
[ "$code" = 0 ] || fail "one rank: exit code $code: $(cat err)"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HONE_RANKS_TEST=$WORK
SHARDS="--set dist.shards=2"
n=0
for set in "" "$BF16" "--set train.accumulate=2" "--set optimize.passes=none" "--set dist.shards=4 --set dist.bucket_mb=1"; do
    n=$((n + 1))
    ok train tiny.yaml $SHARDS $set --out "one$n"
    ok launch -n 2 train tiny.yaml $SHARDS $set --out "two$n"
    same_checkpoint "one$n" "two$n" 20
    for w in one two; do sed -n 's/.*"val_loss":\([0-9.]*\).*/\1/p' "$w$n/metrics.jsonl" >"val$w"; done
    [ -s valone ] || fail "no evaluation"
    same "the validation loss on 2 ranks" valtwo valone
    ! grep -q gpu_busy_percent "two$n/metrics.jsonl" || grep -q '"gpus":\[{"gpu_busy_percent".*},{"gpu_busy_percent"' "two$n/metrics.jsonl" ||
        fail "the GPU of one rank alone: $(grep -m 1 gpu_busy "two$n/metrics.jsonl")"
done
HONE_CUDA_GRAPH=0 ok launch -n 2 train tiny.yaml $SHARDS --out plain2r
same_checkpoint one1 plain2r 20

# Where they divide the optimizer, too: the bits of one rank that has all of it, and an evaluation waits for weights that are still on their way.
n=0
for set in "" "$BF16" "--set optimize.precision=f16" "--set train.accumulate=2 --set dist.bucket_mb=1" "--set optimize.passes=none" \
    "--set optimize.passes=none $BF16" "--set data.bucket=4" "--set data.pack=on $BF16" "--set model.arch=llama --set model.dim=24 --set dist.shards=4" \
    "--set model.arch=llama --set model.dim=24 --set train.accumulate=2 $BF16"; do
    n=$((n + 1))
    ok train tiny.yaml $SHARDS $set --out "whole-$n"
    ok launch -n 2 train tiny.yaml $SHARDS $set --set dist.shard=optimizer --out "slices-$n"
    same_checkpoint "whole-$n" "slices-$n" 20
    for w in whole slices; do sed -n 's/.*"val_loss":\([0-9.]*\).*/\1/p' "$w-$n/metrics.jsonl" >"val$w"; done
    [ -s valwhole ] || fail "no evaluation"
    same "the validation loss with slices, $set" valslices valwhole
done
HONE_CUDA_GRAPH=0 ok launch -n 2 train tiny.yaml $SHARDS --set dist.shard=optimizer --out slices-plain
same_checkpoint whole-1 slices-plain 20
cat >k1.yaml <<'YAML'
model: {arch: k1, dim: 32, heads: 2, seq: 16, tree: [2, 2], dropout: 0.1}
k1: {k: 2, every: 2}
data: {chars: 20000, workers: 0, samples: lines}
train: {batch_size: 4, steps: 20}
dist: {shards: 2}
device: cuda
YAML
ok train k1.yaml --out k1
ok launch -n 2 train k1.yaml --set dist.shard=optimizer --out k2
same_checkpoint k1 k2 20
ok train k1.yaml $BF16 --out k1n
ok launch -n 2 train k1.yaml $BF16 --set dist.shard=optimizer --out k2n
same_checkpoint k1n k2n 20
# Saved with slices on two ranks, continued on one.
cp -r slices-1 on && rm -r on/checkpoints/step-00000020
ok train tiny.yaml $SHARDS --out on --resume
same_checkpoint whole-1 on 20

# Without shards dropout is drawn by the sample's place in the whole batch, whoever has it: one rank and two agree but for rounding.
ok train tiny.yaml --set log.every=1 --out whole1
ok launch -n 2 train tiny.yaml --set log.every=1 --out whole2
for w in whole1 whole2; do sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' "$w/metrics.jsonl" >"loss$w"; done
paste losswhole1 losswhole2 | awk '{d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4 * $1) bad = 1; n++} END {exit bad || n < 20}' ||
    fail "dropout of two ranks is not that of one: $(paste losswhole1 losswhole2)"

# Saved on two ranks, continued on one.
cp -r two1 half && rm -r half/checkpoints/step-00000020
ok train tiny.yaml $SHARDS --out half --resume
same_checkpoint one1 half 20

gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
if [ "$gpus" = 1 ]; then
    run launch -n 2 train tiny.yaml --set dist.transport=nccl --out none
    [ "$code" = 3 ] && grep -q '^hone: dist.transport is nccl, and .*choose dist.transport: mpi' err || fail "two ranks and one GPU: $code: $(cat err)"
    [ ! -e none ] || fail "two ranks and one GPU: left something behind"
fi

# under_way FOLDER: starts two ranks, and waits for a checkpoint behind the first step.
under_way() {
    "$HONE" launch -n 2 train tiny.yaml $SHARDS --steps 100000 --set train.schedule=constant --set eval.every=0 --set log.every=1000 \
        --out "$1" >out 2>err </dev/null &
    pid=$!
    until_saved "$1"
}

under_way stopped
kill -INT "$(rank_process 1)"
wait $pid || fail "SIGINT on one rank: exit code $?: $(cat err)"
at=$(sed -n 's/^stopped after \([0-9]*\) steps, .*; continue with --resume$/\1/p' out)
[ -d "stopped/checkpoints/$(printf 'step-%08d' "$at")" ] || fail "SIGINT on one rank: $(tail -3 out)"

export HONE_RANKS_PATIENCE=3
under_way killed
kill -KILL "$(rank_process 1)"
code=0; wait $pid || code=$?
[ "$code" = 3 ] || fail "kill -9: exit code $code: $(cat err)"
grep -q '^hone: rank 1 (.*, process [0-9]*) was not heard of for [0-9]* s; it was in step [0-9]*' err || fail "kill -9: $(cat err)"
