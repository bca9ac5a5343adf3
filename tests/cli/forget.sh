# hone forget: a tiny comparison from beginning to end, its files, runs that are kept, stopped, killed and damaged, and what is refused.
. "$(dirname "$0")/lib"

# write NAME MODEL K1
write() {
    cat >"$1.yaml" <<YAML
model: {$2, dim: 16, heads: 2, seq: 16}
data: {chars: 20000, workers: 0, domains: [prose, code]}
train: {batch_size: 4, steps: 20, lr: 5.0e-3, warmup: 2}
${3:+k1: {$3\}}
eval: {every: 0, batches: 4}
checkpoint: {every: 10}
log: {every: 5}
threads: 1
YAML
}
write chain 'arch: postln, layers: 2' ''
write norm 'arch: k1, tree: [2]' 'k: 1, select: norm'
write random 'arch: k1, tree: [2]' 'k: 1, select: random'
write all 'arch: k1, tree: [2]' 'k: 3'
configs="norm.yaml random.yaml all.yaml chain.yaml"

ok forget $configs --seeds 2 --out made
[ ! -s err ] || fail "something was written to stderr: $(cat err)"
[ "$(head -n 1 out)" = "report: made/report.html   (also report.md, report.json)" ] || fail "$(cat out)"
grep -q '^At equal learning, choosing nodes by gradient ' out || fail "there is no verdict: $(cat out)"
[ "$(echo $(ls made))" = "report.html report.json report.md runs" ] || fail "$(ls made)"
[ "$(ls made/runs | wc -l)" = 8 ] || fail "$(ls made/runs)"
json made/report.json '(j["kind"] == "forget" and j["runs_done"] == 8 and j["warnings"] == [] and not j["interrupted"] and j["steps_per_domain"] == 20
    and [c["choice"] for c in j["configs"]] == ["gradient", "random", "all", "none"] and [c["k"] for c in j["configs"]] == [1, 1, 3, 0]
    and [d["name"] for d in j["domains"]] == ["prose", "code"] and all(0.4 < d["entropy"] < 0.5 for d in j["domains"])
    and all(len(c["matrix"]) == 3 and c["new_loss"]["n"] == 2 for c in j["configs"]))'
# a node is chosen in every step; by domain and over time they add up to k; who chooses all updates all
json made/report.json '(all(abs(sum(c["node_use"]["share"]) - c["k"]) < 1e-9 for c in j["configs"][:3]) and j["configs"][2]["node_use"]["share"] == [1, 1, 1]
    and j["configs"][3]["node_use"] == null and j["configs"][0]["node_use"]["parents"] == [null, 0, 0]
    and all(d["steps"] == 40 and abs(sum(d["share"]) - c["k"]) < 1e-9 for c in j["configs"][:3] for d in c["node_use"]["by_domain"])
    and [t["step"] for t in j["configs"][0]["node_use"]["time"]] == [5, 10, 15, 20, 25, 30, 35, 40]
    and [t["domain"] for t in j["configs"][1]["node_use"]["time"]] == 4 * ["prose"] + 4 * ["code"])'
# its numbers are those of the runs
json made/runs/norm-seed2/forgetting.json 'len(j["loss"]) == 3'
cp made/runs/norm-seed2/forgetting.json one
json made/report.json '(lambda r: abs(r["forgotten_nats"] - (r["loss"][2][0] - r["loss"][1][0])) < 1e-9 and abs(r["backward_transfer"] + r["forgotten_nats"]) < 1e-12
    and abs(r["new_loss"] - (r["loss"][2][1] - j["domains"][1]["entropy"])) < 1e-9)(j["configs"][0]["runs"][1])'
grep -q '^| norm | 1 of 3 by gradient | 2 | ' made/report.md || fail "$(cat made/report.md)"
python3 - made <<'PY' || fail "the page is not as expected"
import re, sys
page = open(sys.argv[1] + "/report.html").read()
assert page.rstrip().endswith("</html>") and "{{" not in page and '"kind":"forget"' in page
for outside in (r"<script[^>]*\ssrc", r'<link[^>]*href="(?!data:)', r"@import", r"url\(", r"<img", r"<iframe"):
    assert not re.search(outside, page), outside
PY

# another learning rate is no other choice of nodes: no verdict of it, and the page says why
sed -e 's/lr: 5.0e-3/lr: 5.0e-2/; s/steps: 20/steps: 10/' random.yaml >hasty.yaml
ok forget norm.yaml hasty.yaml all.yaml --seeds 2 --out unlike
json unlike/report.json 'j["verdicts"][0]["beats_random"] == "cannot be said" and j["verdicts"][0]["random"] is None and j["steps_per_domain"] is None'
grep -q 'is the same otherwise (norm and hasty: train.steps is 20 and 10)' unlike/report.md || fail "$(cat unlike/report.md)"
grep -q '^| steps per domain | not the same in all |' unlike/report.md || fail "$(cat unlike/report.md)"

# what is done is kept: nothing in the runs changes, and a third seed comes to the two; --json is report.json
sums made/runs >before
ok forget $configs --seeds 2 --out made/
sums made/runs >after
same "the runs" after before
ok forget $configs --seeds 3 --out made --json
cp out printed.json
same "report.json" made/report.json printed.json
sums made/runs | grep -v seed3 >after
same "the runs of two seeds" after before
json out 'j["runs_done"] == 12'

# one that lost its losses, or was cut off in them, is mended; one that lost its checkpoint is made again, with the same bits
rm made/runs/all-seed1/forgetting.json
head -c 50 one >made/runs/norm-seed2/forgetting.json
rm -r made/runs/chain-seed2/checkpoints
ok forget $configs --seeds 2 --out made
cmp one made/runs/norm-seed2/forgetting.json || fail "a damaged forgetting.json was not mended"
for f in all-seed1/forgetting.json chain-seed2/forgetting.json; do
    grep -F "$(cd made/runs && sha256sum ./$f)" before >/dev/null || fail "$f is not as it was"
done
# a nodes.jsonl that is cut off: what is left of it counts, and that is said
truncate -s 300 made/runs/norm-seed1/nodes.jsonl
ok forget $configs --seeds 2 --out made
grep -q "^warning: 'made/runs/norm-seed1/nodes.jsonl' is cut off or damaged in line 2: what is before it counts$" err || fail "$(cat err)"
json made/report.json 'len(j["warnings"]) == 1 and j["runs_done"] == 8'

# stopped on the way: nothing is lost, and the same command goes on to what one that was not stopped has
"$HONE" forget $configs --seeds 2 --out stopped --set train.steps=400 --set checkpoint.every=0 >out 2>err &
pid=$!
for i in $(seq 200); do [ -e stopped/runs/random-seed1/metrics.jsonl ] && break; sleep 0.05; done
kill -INT $pid
wait $pid || fail "a stopped forget ended with $?: $(cat err)"
grep -q '^the same command goes on from here; runs are kept in stopped/runs$' out || fail "$(cat out)"
[ ! -e stopped/runs/chain-seed2 ] || fail "it did not stop"
ok forget norm.yaml random.yaml --seeds 1 --out stopped --set train.steps=400 --set checkpoint.every=0
ok forget random.yaml --seeds 1 --out straight --set train.steps=400 --set checkpoint.every=0
cmp stopped/runs/random-seed1/forgetting.json straight/runs/random-seed1/forgetting.json || fail "it went on to other losses"
json stopped/report.json 'j["runs_done"] == 2 and not j["interrupted"] and j["verdicts"][0]["beats_random"] == "cannot be said"'

# stopped before a run is done: there is no result yet
"$HONE" forget random.yaml --seeds 1 --out early --set train.steps=1000000 --set checkpoint.every=0 --json >out 2>err &
pid=$!
for i in $(seq 200); do [ -s early/runs/random-seed1/metrics.jsonl ] && break; sleep 0.05; done
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] && [ ! -e early/report.json ] || fail "a forget that was stopped before a run was done ended with $code: $(cat err)"
json out 'j["interrupted"] and j["runs_done"] == 0'

# refused before anything is trained
rm -rf none
refused 2 "hone forget: CONFIG... is missing; \`hone forget --help\` shows examples" forget
refused 2 "hone: --seeds is 0; expected 1 to 100; a verdict needs 2, and 3 or more are better" forget norm.yaml --seeds 0 --out none
refused 2 "hone: 'quick.yaml': data.domains is empty, and hone forget needs domains that are learned one after the other; try data.domains: [prose, code, formulas]" \
    forget norm.yaml $(tiny && mv tiny.yaml quick.yaml && echo quick.yaml) --out none
refused 2 "hone: 'norm.yaml': data.domains has one domain, and nothing is learned after it; try [prose, code]" \
    forget norm.yaml --set data.domains=prose --out none
mkdir -p other
sed 's/chars: 20000/chars: 30000/' norm.yaml >other/more.yaml
refused 2 "hone: 'norm.yaml' and 'other/more.yaml' learn from other data: data.chars is 20000 and 30000; losses can be compared on the same data only" \
    forget norm.yaml other/more.yaml --out none
cp norm.yaml other/norm.yaml
refused 2 "hone: 'norm.yaml' and 'other/norm.yaml' have the same name, and runs are kept by name; rename one" \
    forget norm.yaml other/norm.yaml --out none
[ ! -e none ] || fail "what was refused left something: $(find none)"
refused 2 "hone: 'made/runs/norm-seed1' holds a run with train.lr 0.005, and it is 0.001 now; give another --out" \
    forget $configs --seeds 2 --out made --set train.lr=1e-3
mkdir taken
touch taken/report.md
refused 2 "hone: 'taken/report.md' is there, and no report that is known here wrote it; move it away, or give another --out" \
    forget norm.yaml --out taken
# what is not a run's is not removed: a config.yaml of somebody's own, also of the same words, and files without one
for mine in config.yaml metrics.jsonl nodes.jsonl forgetting.json; do
    rm -rf foreign
    mkdir -p foreign/runs/norm-seed1
    cp norm.yaml "foreign/runs/norm-seed1/$mine"
    refused 2 "hone: 'foreign/runs/norm-seed1' holds files that are not of a run; give another --out" forget norm.yaml --seeds 1 --out foreign
    cmp norm.yaml "foreign/runs/norm-seed1/$mine" || fail "$mine was written over"
done
# and what a killed run has left before its first checkpoint is
rm -rf foreign
mkdir -p foreign/runs/norm-seed1
cp made/runs/norm-seed1/config.yaml foreign/runs/norm-seed1
echo '{"step": 5}' >foreign/runs/norm-seed1/metrics.jsonl
ok forget norm.yaml --seeds 1 --out foreign
cmp foreign/runs/norm-seed1/forgetting.json made/runs/norm-seed1/forgetting.json || fail "a killed run was not made again"
