# A small stack is enough for every product: blocks are packed elsewhere. Results are the same to the last bit.
. "$(dirname "$0")/lib"
cat >wide.yaml <<YAML
model: {arch: gpt, dim: 192, layers: 1, heads: 3, seq: 64}
data: {chars: 20000, workers: 1}
train: {batch_size: 4, steps: 2, warmup: 1}
eval: {every: 2, batches: 1}
threads: 2
YAML
export XDG_CACHE_HOME=/dev/null                         # no kernel is timed: two runs may choose differently
for precision in f32 bf16; do
    set -- train wide.yaml --set optimize.precision=$precision
    ok "$@" --out large-$precision
    (ulimit -s 256; ok "$@" --out small-$precision)
    (ulimit -s 256; ok generate small-$precision --tokens 5)
    same_checkpoint large-$precision small-$precision 2
done
