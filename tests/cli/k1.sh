# K-1, a tree of which some nodes learn: what is shown and written of them, that a run goes on as if it had not stopped, that passes,
# threads and micro-batches change no choice, and what is refused.
. "$(dirname "$0")/lib"

# tree [MORE]: writes tiny.yaml of a small tree; MORE are keys of k1.
tree() {
    cat >tiny.yaml <<YAML
model: {arch: k1, tree: [3, 2], dim: 16, heads: 2, ffn: 24, seq: 8}
k1: {k: 5${1:+, $1}}
data: {chars: 20000, workers: 0}
train: {batch_size: 2, steps: 20, lr: 1.0e-3, warmup: 5}
eval: {every: 10, batches: 2}
checkpoint: {every: 10}
log: {every: 5}
threads: 2
YAML
}

# ---- the log line, nodes.jsonl, TensorBoard, and text from it
tree
ok train tiny.yaml --out run --tensorboard
grep -qE '^\[20\] loss .* \| nodes( [0-9]){5}$' out || fail "no nodes in the log line: $(cat out)"
lines run/nodes.jsonl '[l["step"] for l in j] == [5, 10, 15, 20] and all(l["steps"] == 5 for l in j)'
lines run/nodes.jsonl 'all(len(l[k]) == 10 for l in j for k in ("norm_mean", "norm_max", "selected", "n"))'
lines run/nodes.jsonl 'all(sum(l["selected"]) == 25 and all(0 <= n <= 5 for n in l["selected"]) for l in j)'
lines run/nodes.jsonl 'j[3]["n"] == [sum(l["selected"][i] for l in j) for i in range(10)]'
lines run/nodes.jsonl 'all(0 < m <= x for l in j for m, x in [(l["norm_mean"][i], l["norm_max"][i]) for i in range(10)])'
grep -qa 'nodes/norm of 9' run/tensorboard/* || fail "no nodes for TensorBoard"
ok generate run --tokens 5
[ -s out ] || fail "no text from a tree"

# ---- stopped between two logs and resumed: the same files and bytes
for more in "score: sum" "select: random" "every: 3" "select: random, every: 4, score: sum"; do
    tree "$more"
    rm -rf whole parts
    set -- train tiny.yaml --set log.every=7 --set train.schedule=constant --set checkpoint.keep=9
    ok "$@" --steps 40 --out whole
    ok "$@" --steps 24 --out parts
    lines parts/nodes.jsonl '[l["step"] for l in j] == [7, 14, 21, 24]'
    ok "$@" --steps 40 --out parts --resume
    same "nodes.jsonl after a resume ($more)" parts/nodes.jsonl whole/nodes.jsonl
    same_checkpoint whole parts 40
done

# ---- passes and other numbers of micro-batches and threads
tree "score: sum"
set -- train tiny.yaml --set model.dropout=0.1 --set train.accumulate=2 --set train.steps=23 --set log.every=7
ok "$@" --set optimize.passes=none --out none
for passes in fused-optimizer async-metrics group-levels hoist-constants,fused-optimizer,async-metrics,no-zero-fill; do
    ok "$@" --set optimize.passes=$passes --out $passes
    same_checkpoint none $passes 23
    same "nodes.jsonl with $passes" $passes/nodes.jsonl none/nodes.jsonl
done
ok "$@" --set optimize.passes=none --set optimize.group-levels=on --set threads=1 --out rows          # whatever the size and the threads
grep -q "group-levels ×" out || fail "nodes of a level are not in rows: $(cat out)"
ok "$@" --set optimize.passes=none --set threads=1 --out no-rows
same_checkpoint rows no-rows 23
ok train tiny.yaml --set optimize.autotune=off --set threads=1 --out one
ok train tiny.yaml --set optimize.autotune=off --set threads=2 --out two
grep -o '"n":.*' one/nodes.jsonl >one.n
grep -o '"n":.*' two/nodes.jsonl >two.n
same "the nodes that one and two threads select" two.n one.n

# ---- a run that breaks: no node has learned from it
tree
run train tiny.yaml --steps 200 --set train.lr=10 --set train.clip=0 --set train.weight_decay=10 --set train.schedule=constant --set train.decay=all \
    --set train.on_nan=skip --set eval.every=0 --set log.every=20 --out broken
[ "$code" = 2 ] || fail "exit code $code, expected 2: $(cat err)"
lines broken/nodes.jsonl 'any(sum(l["selected"]) < 100 for l in j) and j[-1]["n"] == [sum(l["selected"][i] for l in j) for i in range(10)]'

# ---- what cannot change, and what is refused
tree
sums run >before
keep="keep it, or start a new run with another --out"
no() { refused 2 "hone: cannot resume 'run/checkpoints/step-00000020': $1; $keep" train tiny.yaml --out run --resume --set "$2"; }
no "k1.k was 5 and is now 4" k1.k=4
no "k1.score was l2 and is now sum" k1.score=sum
no "k1.select was norm and is now random" k1.select=random
no "k1.every was 1 and is now 2" k1.every=2
no "model.tree was [3, 2] and is now [2, 3]" model.tree=2,3
sums run >after
same "the folder after refusals" after before
refused 2 "hone: --set k1.k=11: k1.k is 11, and model.tree [3, 2] has 10 nodes; it must be at most that" train tiny.yaml --set k1.k=11
refused 2 "hone: --set k1.k=0: k1.k is 0; it must be from 1 to 1024" train tiny.yaml --set k1.k=0
refused 2 "hone: --set model.layers=4: model.layers is 4, and model.tree [3, 2] has 10 nodes; remove layers or make it 10" \
    train tiny.yaml --set model.layers=4

# ---- a choice that is kept for some steps, behind constants that the setup makes
tree "every: 2"
for passes in "optimize.passes=none" "optimize.flash-attention=off"; do
    ok train tiny.yaml --steps 4 --set $passes --set eval.every=0 --set log.every=1 --out "kept-$passes"
done
python3 - <<'PY' || fail "k1.every: passes change the losses"
import json, sys
a, b = ([json.loads(l)["loss"] for l in open("kept-%s/metrics.jsonl" % p) if "grad_norm" in l] for p in ("optimize.passes=none", "optimize.flash-attention=off"))
sys.exit(len(a) != 4 or any(abs(x - y) > 1e-4 * x for x, y in zip(a, b)))
PY
