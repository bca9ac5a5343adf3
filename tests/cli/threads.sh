# Whole training runs on several threads, with products large enough for the BLAS library: twice the same bits, and on every number of
# threads the losses of one. A library that is not safe to call from several threads at once fails here.
. "$(dirname "$0")/lib"
export XDG_CACHE_HOME=/dev/null         # no choice of kernels: products go by size
cat >wide.yaml <<YAML
model: {arch: gpt, dim: 96, layers: 1, heads: 3, seq: 64}
data: {chars: 200000, workers: 0}
train: {batch_size: 8, lr: 1.0e-3, warmup: 20}
eval: {every: 0}
checkpoint: {every: 0}
log: {every: 1}
YAML
losses() { sed -n 's/.*"loss": \?\([0-9.e+-]*\),.*/\1/p' "$1/metrics.jsonl"; }
steps=300
ok train wide.yaml --steps $steps --set threads=1 --out one
[ "$(losses one | wc -l)" = $steps ] || fail "one thread logged $(losses one | wc -l) losses"
for threads in 2 4; do
    ok train wide.yaml --steps $steps --set threads=$threads --out $threads-a
    ok train wide.yaml --steps $steps --set threads=$threads --out $threads-b
    same_checkpoint $threads-a $threads-b $steps
    losses $threads-a >many
    losses $threads-b | cmp - many || fail "two runs on $threads threads differ in their losses"
    losses one | paste - many | awk '{d = $1 - $2; if (d < 0) d = -d; if (d > 0.02 * $1) {print "step " NR ": " $0; bad = 1}} END {exit bad}' ||
        fail "$threads threads do not learn as one"
done

# ---- more threads than cores: said, and done
cores=$(nproc)
ok train wide.yaml --steps 2 --set train.warmup=1 --set threads=$((cores + 62)) --out too-many
echo "warning: threads is $((cores + 62)) and this process may use $cores core$([ "$cores" = 1 ] || echo s); try 0 (cpu-oversubscribed)" >wanted
same "what is said of too many threads" err wanted
ok train wide.yaml --steps 2 --set train.warmup=1 --set threads=$cores --out enough
[ ! -s err ] || fail "as many threads as cores: $(cat err)"
