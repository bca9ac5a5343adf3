# Several ranks train one model: the same bits on 1, 2 and 4; checkpoints of any number; stops, losses and refusals. Needs MPI.
. "$(dirname "$0")/lib"
. "$HONE_SOURCE/tests/cli/lib-ranks"
tiny_of_ranks

# Commands that ranks do not share would each do all of it, and disturb the others. One of them says so.
for command in "verify tiny.yaml tiny.yaml" "bench tiny.yaml" "forget tiny.yaml"; do
    OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 run $command
    [ "$code" = 2 ] && [ ! -s out ] && grep -qx "hone: ${command%% *} runs on one rank, and mpirun started 2" err || fail "$command under mpirun: $code $(cat out err)"
    OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 run $command
    [ "$code" = 2 ] && [ ! -s out ] && [ ! -s err ] || fail "$command on the second rank: $code $(cat out err)"
done

# Without MPI there are words for it. The variables are what mpirun sets.
run launch -n 1 train tiny.yaml --out none
if grep -q 'has no MPI module' err; then
    [ "$code" = 3 ] || fail "no MPI: exit code $code"
    OMPI_COMM_WORLD_SIZE=2 run train tiny.yaml --out none
    [ "$code" = 3 ] && grep -q '^hone: mpirun started 2 ranks, and this build of hone has no MPI module: install' err || fail "no MPI: $(cat err)"
    skip "this build has no MPI module"
fi
[ "$code" = 0 ] || fail "one rank: exit code $code: $(cat err)"
MPIRUN=$(command -v mpirun) || skip "there is no mpirun"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HONE_RANKS_TEST=$WORK
ranks() { code=0; "$MPIRUN" -q --oversubscribe --bind-to none "$@" >out 2>err </dev/null || code=$?; }

# The same bits: padding, dropout, accumulation, evaluation.
ok train tiny.yaml --out w1
for n in 2 4; do
    ok launch -n $n train tiny.yaml --out w$n
    same_checkpoint w1 w$n 50
    [ "$(grep -c "^\[50\] loss .* s/it on $n ranks (compute .* slowest; waited .*)$" out)" = 1 ] || fail "$n ranks: $(cat out)"
done
for n in 1 2 4; do lines w$n/metrics.jsonl 'True'; sed -n 's/.*"val_loss":\([0-9.]*\).*/\1/p' w$n/metrics.jsonl >val$n; done
[ -s val1 ] || fail "no evaluation"
same "the validation loss on 2 ranks" val2 val1
same "the validation loss on 4 ranks" val4 val1
# A model as people have it, whose gradients are several buckets, two shards to a rank.
ok train quickstart --steps 3 --set dist.shards=4 --set threads=1 --set eval.every=0 --out quick1
ok launch -n 2 train quickstart --steps 3 --set dist.shards=4 --set threads=1 --set eval.every=0 --out quick2
same_checkpoint quick1 quick2 3
ok train tiny.yaml --set dist.shards=4 --print-program
grep -q 'sum_shards .*ranks.count' out || fail "no sums in the program"
ranks -n 2 "$HONE" train tiny.yaml --print-program
grep -q 'reduce_start .*ranks.bucket.0 .* last micro-batch$' out || fail "no communication in the program: $(cat err)"

# Saved on 4 ranks, continued on 1 and on 2.
ok launch -n 4 train tiny.yaml --out four --steps 20
cp -r four four2
ok train tiny.yaml --out four --resume
ok launch -n 2 train tiny.yaml --out four2 --resume
for f in weights state; do        # the schedule of the learning rate is that of 20 steps before, so not the bits of w1
    cmp four/checkpoints/step-00000050/$f.safetensors four2/checkpoints/step-00000050/$f.safetensors || fail "1 and 2 ranks went on differently"
done
# Without shards one rank sums micro-batches up otherwise than two: a checkpoint has no trace of that.
ok train tiny.yaml --set dist.shards=0 --out apart --steps 4
ok launch -n 2 train tiny.yaml --set dist.shards=0 --out apart --steps 8 --resume
ok train tiny.yaml --set dist.shards=0 --out apart --steps 12 --resume

# A checkpoint of the last step that cannot be written: all ranks know, and try again.
HONE_TEST_DELAY=1:100 "$HONE" launch -n 2 train tiny.yaml --set checkpoint.every=20 --set eval.every=0 --steps 20 --out hindered >out 2>err </dev/null &
pid=$!
until [ -e hindered/metrics.jsonl ]; do kill -0 $pid || fail "a hindered save: $(cat err)"; sleep 0.05; done
touch hindered/checkpoints
code=0
wait $pid || code=$?
[ "$code" = 2 ] && [ "$(grep -c "cannot make the folder 'hindered/checkpoints'" err)" = 2 ] || fail "a hindered save: exit code $code: $(cat err)"

# A rank that is asked to stop: all do, after the same step, and the run goes on as if nothing had been.
LONG="--steps 100000 --set train.schedule=constant --set eval.every=0 --set log.every=1000"
"$HONE" launch -n 2 train tiny.yaml $LONG --out stopped >out 2>err </dev/null &
pid=$!
until_saved stopped
kill -INT "$(rank_process 1)"
wait $pid || fail "SIGINT on one rank: exit code $?: $(cat err)"
at=$(sed -n 's/^stopped after \([0-9]*\) steps, .*; continue with --resume$/\1/p' out)
[ -d "stopped/checkpoints/$(printf 'step-%08d' "$at")" ] || fail "SIGINT on one rank: $(tail -3 out)"

export HONE_RANKS_PATIENCE=3
# A rank that is killed is named, with what it did, and the run goes on from the newest checkpoint with the bits of one that was not.
"$HONE" launch -n 2 --retry 1 train tiny.yaml $LONG --steps $((at + 200)) --out killed >out 2>err </dev/null &
pid=$!
until_saved killed
kill -KILL "$(rank_process 1)"
wait $pid || fail "kill -9: exit code $?: $(cat err)"
grep -q '^hone: rank 1 (.*, process [0-9]*) was not heard of for [0-9]* s; it was in step [0-9]*' err || fail "kill -9: $(cat err)"
grep -q '^hone: rank 1 ended without a word; retry 1 of 1, from the newest checkpoint$' err || fail "kill -9: $(cat err)"
ok launch -n 2 train tiny.yaml $LONG --steps $((at + 200)) --out stopped --resume
same_checkpoint stopped killed $((at + 200))
# And rank 0, where ranks divide the optimizer. (scripts/soak kills every rank, many times.)
"$HONE" launch -n 4 --retry 1 train tiny.yaml $LONG --steps $((at + 200)) --set dist.shard=optimizer --out killed0 >out 2>err </dev/null &
pid=$!
until_saved killed0
kill -KILL "$(rank_process 0)"
wait $pid || fail "kill -9 of rank 0: exit code $?: $(cat err)"
grep -q '^hone: rank 0 ended without a word; retry 1 of 1, from the newest checkpoint$' err || fail "kill -9 of rank 0: $(cat err)"
step=$(printf 'step-%08d' $((at + 200)))
for f in weights state; do
    cmp stopped/checkpoints/$step/$f.safetensors killed0/checkpoints/$step/$f.safetensors || fail "kill -9 of rank 0: other $f"
done

# A rank that is stopped is named, too, and does not stay behind.
"$HONE" launch -n 2 train tiny.yaml $LONG --out still >out 2>err </dev/null &
pid=$!
until_saved still
kill -STOP "$(rank_process 0)"
code=0; wait $pid || code=$?
[ "$code" = 3 ] || fail "SIGSTOP: exit code $code: $(cat err)"
grep -q '^hone: rank 0 (.*) was not heard of' err || fail "SIGSTOP: $(cat err)"
! rank_process 0 || fail "SIGSTOP: the process is still there"

# Where who launched them is killed, ranks do not go on alone.
"$HONE" launch -n 2 train tiny.yaml $LONG --out orphans >out 2>err </dev/null &
pid=$!
until_saved orphans
kill -KILL $pid
wait $pid || true
for i in $(seq 100); do rank_process 0 || rank_process 1 || break; sleep 0.1; done
! rank_process 0 && ! rank_process 1 || fail "kill -9 of launch: ranks are still there"

unset HONE_RANKS_PATIENCE

# A rank whose weights are not those of the others is named where a checkpoint would be saved, and none is.
for way in '1:5 2 memory or a device of one of them' '2:5 4 its memory or its device' '0:5 4 its memory or its device'; do
    set -- $way
    rank=${1%:*} n=$2
    shift 2
    HONE_TEST_FLIP=$rank:5 run launch -n $n train tiny.yaml --set checkpoint.every=10 --out parted
    [ "$code" = 3 ] || fail "another weight on rank $rank: exit code $code: $(cat err)"
    [ "$(grep -c "^hone: rank $rank (.*, process [0-9]*) has another 'emb.weight' than rank . (.*) after step 10, though .*: $* has failed; " err)" = 1 ] ||
        fail "another weight on rank $rank: $(cat err)"
    [ ! -e parted/checkpoints ] || fail "another weight on rank $rank: saved all the same"
    rm -r parted
done

# What cannot be is refused once, by rank 0, and before anything is written.
refused_ranks() {
    local want_code=$1 want=$2
    shift 2
    ranks "$@"
    grep '^hone: ' err | sed -e 's/rank \([0-9]\) ([^)]*)/rank \1 (WHO)/' -e 's/[0-9a-f]\{16\}/HASH/g' >said || true
    echo "hone: $want" >wanted
    same "the message of: mpirun $*" said wanted
    [ "$code" = "$want_code" ] || fail "mpirun $*: exit code $code, expected $want_code"
    [ ! -e no ] || fail "mpirun $*: a folder was made"
}
refused_ranks 2 "train.batch_size is 9, and 2 ranks cannot have equal parts of that; make it 8 or 10" \
    -n 2 "$HONE" train tiny.yaml --set dist.shards=0 --set train.batch_size=9 --out no
refused_ranks 2 "train.batch_size is 2, and there are 4 ranks, which get a sample each at least; make it 4, or start 2 ranks" \
    -n 4 "$HONE" train tiny.yaml --set dist.shards=0 --set train.batch_size=2 --out no
refused_ranks 2 "dist.shards is 2, and 4 ranks cannot have equal parts of that; start 1, 2, 4... up to 2 ranks, or leave dist.shards out" \
    -n 4 "$HONE" train tiny.yaml --set dist.shards=2 --out no
refused_ranks 2 "rank 1 (WHO): train.lr is 0.002 here, and 0.001 on rank 0; all ranks have one config" \
    -n 1 "$HONE" train tiny.yaml --out no : -n 1 "$HONE" train tiny.yaml --set train.lr=2e-3 --out no
cp "$HONE" other && echo >>other
refused_ranks 2 "rank 1 (WHO): this is another build of hone (0.1.0, HASH) than rank 0 runs (HASH); start the same one everywhere" \
    -n 1 "$HONE" train tiny.yaml --out no : -n 1 ./other train tiny.yaml --out no
mkdir a b
for i in $(seq 400); do echo "line $i"; done >a/text; sed 's/7/8/' a/text >b/text
TEXT="--set data.source=text --set data.path=text --set data.chars=2000000"
refused_ranks 2 "rank 1 (WHO): the data is not that of rank 0 (HASH, and HASH there); bring the same files everywhere" \
    -n 1 -wdir "$WORK/a" "$HONE" train ../tiny.yaml $TEXT --out ../no : -n 1 -wdir "$WORK/b" "$HONE" train ../tiny.yaml $TEXT --out ../no

# A module that cannot be loaded.
mkdir -p installed/bin installed/lib/hone
cp "$HONE" installed/bin/hone && echo nothing >installed/lib/hone/libhone_mpi.so
code=0; OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 installed/bin/hone train tiny.yaml --out no >out 2>err || code=$?
[ "$code" = 3 ] && grep -q "^hone: mpirun started 2 ranks, and the MPI module '.*libhone_mpi.so' cannot be loaded: " err || fail "a broken module: $code $(cat err)"

# mpirun's word is checked against what MPI sees.
OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0 run train tiny.yaml --out no
[ "$code" = 3 ] && grep -q '^hone: mpirun started 3 ranks, and MPI sees 1; ' err || fail "a wrong number of ranks: $code $(cat err)"

SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 run train tiny.yaml --out no
[ "$code" = 3 ] && grep -q '^hone: srun started 2 ranks, and told none of them of the others; start them with srun --mpi=pmix$' err || fail "srun without PMIx: $code $(cat err)"

# An mpirun that starts nothing is not tried again, and no rank is blamed.
OMPI_MCA_plm=nothing run launch -n 2 --retry 2 train tiny.yaml --out no
echo "hone: 'MPIRUN' has started no rank; see what 'MPIRUN -n 2 true' says" >wanted
grep '^hone: ' err | sed "s#'/[^' ]*#'MPIRUN#g" >said || true
same "an mpirun that starts nothing" said wanted
[ "$code" = 3 ] || fail "an mpirun that starts nothing: exit code $code"
[ ! -e no ] || fail "an mpirun that starts nothing: a folder was made"

refused 2 "hone: -n is missing; it takes the number of ranks: hone launch -n 2 train CONFIG" launch train tiny.yaml
refused 2 "hone: -n is 0; it takes the number of ranks, 1 to 4096" launch -n 0 train tiny.yaml
refused 2 "hone: a command is missing: hone launch -n 2 train CONFIG" launch -n 2
refused 2 "hone: 'bench' is not a command that ranks share; train, profile, tune and doctor are" launch -n 2 bench tiny.yaml
refused 2 "hone: --retry is for train: 'doctor' has no checkpoint to go on from" launch -n 2 --retry 1 doctor
run launch -n 2 train tiny.yaml --out none2 --nonsense
[ "$code" = 2 ] && ! grep -q 'it was killed' err || fail "a wrong option: exit code $code: $(cat err)"
[ "$(grep -c "no option '--nonsense'" err)" = 1 ] || fail "a wrong option is not told once: $(cat err)"
run launch -n 2 train tiny.yaml --out none2 --steps 0
[ "$code" = 2 ] && [ "$(grep -c -- '--steps is 0; it must be at least 1' err)" = 1 ] || fail "--steps 0: exit code $code: $(cat err)"
