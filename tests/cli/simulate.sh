# hone simulate: the step on many ranks, from a fixture of measured op times, with exact output; from a step measured here; refusals.
. "$(dirname "$0")/lib"
FROM=$(realpath "$HONE_SOURCE")/tests/fixtures/simulate/report.json
LINKS="--net 10,10 --intra 2,80 --gpus-per-node 4"

ok simulate --from "$FROM" --ranks 2,4,...,64,3 $LINKS
same "the table" out "$EXPECTED/simulate.txt"
[ ! -s err ] || fail "it wrote to stderr: $(cat err)"
# one rank's step and its parts make the step that stands there, to the digits that are shown
awk 'function us(at) { return $(at + 1) == "ms" ? $at * 1000 : $at }
    /^ +1 / { one = us(2) }
    /^ +64 / { seen = 1; off = us(2) - one - us(8) - us(10) - us(12) }
    END { exit !seen || off < -100 || off > 100 }' out || fail "the columns do not add up to the step: $(grep '^ *64 ' out)"
D=simulations/fixture
for f in report.html report.md report.json; do [ -s $D/$f ] || fail "no $f"; done
grep -q '^| 64 | 16 | 30.4 ms | 60.9 % | ' $D/report.md || fail "report.md: $(cat $D/report.md)"
json $D/report.json 'all(abs(p["compute_us"] + p["packing_us"] + p["exposed_us"] + p["slowest_us"] - p["step_us"]) < 1e-6 for p in j["points"])'
json $D/report.json 'all(p["best_step_us"] <= p["step_us"] and all(p["best_step_us"] <= 1.0011 * b["step_us"] for b in p["by_bucket"]) for p in j["points"])'

# A sum of n bytes over two ranks takes 2 a + n / b, each bucket; two within a machine.
ok simulate --from "$FROM" --ranks 2 $LINKS --json --out two
json out 'j["points"][1]["ranks"] == 2 and abs(j["points"][1]["sums_us"] - (j["points"][1]["buckets"] - 1) * 4 - 2 - (j["points"][1]["bytes"] - 12) / 1e4 - 12 / 1e4) < 1e-6'

# The ring of GPUs: 2 (W - 1) (a + n / (W b)); another bucket size is another number of sums.
sed -e 's/"gpu":null/"gpu":{"name":"a GPU"}/' "$FROM" >gpu.json
ok simulate --from gpu.json --ranks 8 --intra 2,80 --net 5,400 --json --out ring
json out 'j["links"]["sum"] == "ring" and j["links"]["ranks_per_machine"] == 8 and j["device"] == "a GPU"'
json out 'abs(j["points"][1]["sums_us"] - 14 * (2 * j["points"][1]["buckets"] + j["points"][1]["bytes"] / 8e4)) < 1e-6'
ok simulate --from gpu.json --ranks 8 --intra 2,80 --net 5,400 --json --out ring --set dist.bucket_mb=1
json out 'j["bucket_mb"] == 1 and j["points"][1]["buckets"] > 4 and abs(j["points"][1]["sums_us"] - 14 * (2 * j["points"][1]["buckets"] + j["points"][1]["bytes"] / 8e4)) < 1e-6'
ok simulate --from gpu.json --ranks 64 --intra 0,80 --net 0,400 --json --out ring       # within 8, then between 8
json out 'abs(j["points"][1]["sums_us"] - 14 / 8 * j["points"][1]["bytes"] * (1 / 1e4 + 1 / 5e4)) < 1e-6'

# Ranks that take all cores: nothing is hidden.
sed -e 's/"usable_cores":8/"usable_cores":2/' "$FROM" >full.json
ok simulate --from full.json --ranks 2 --intra 2,80 --gpus-per-node 2 --json --out full
json out 'j["shares_cores"] and j["points"][1]["exposed_us"] == j["points"][1]["sums_us"]'
ok simulate --from full.json --ranks 1 --json --out full
json out 'not j["shares_cores"]'            # one rank has no sums
ok simulate --from "$FROM" --ranks 2,8 --intra 2,80 --gpus-per-node 8 --json --out some
json out 'not j["shares_cores"] and j["points"][2]["exposed_us"] == j["points"][2]["sums_us"]'      # of two there is a core for it, of eight none

# Where threads are not given, nobody can be asked how many ranks share a machine.
sed -e 's/threads: 1/threads: 0/' "$FROM" >free.json
# What was wrong with the machine when that was measured stands on every page.
python3 -c 'import json,sys; j=json.load(open(sys.argv[1])); j["answers"]={"warning": "Other work took the cores"}; json.dump(j, open("busy.json", "w"))' "$FROM"
ok simulate --from busy.json --ranks 2 $LINKS --out busy
grep -q "warning.*Other work took the cores" out || fail "no warning: $(cat out)"
grep -q "^| warning | Other work took the cores |$" busy/report.md || fail "no warning in report.md"
json busy/report.json 'j["warning"] == "Other work took the cores"'
ok simulate --from free.json --ranks 4 $LINKS --json --out free
json out '[p["ranks"] for p in j["points"]] == [1, 4]'

# Threads of ranks that share a core take longer than was measured; whoever is measured here has its part of the cores.
refused 2 "hone: the rank that was measured has 1 thread, and 4 such ranks are too many for the 2 cores of a machine: give --gpus-per-node 2" \
    simulate --from full.json --ranks 4 --intra 2,80 --gpus-per-node 4
sed -e 's/"threads":1/"threads":2/' full.json >both.json
refused 2 "hone: the rank that was measured has 2 threads, and 2 such ranks are too many for the 2 cores of a machine: give --gpus-per-node 1, or measure with --set threads=1" \
    simulate --from both.json --ranks 2 --intra 2,80 --gpus-per-node 2

# From a step that is measured here.
tiny
ok simulate tiny.yaml --ranks 2,4 --net 30,10 --steps 3 --json --out here
json out '[p["ranks"] for p in j["points"]] == [1, 2, 4] and j["points"][0]["efficiency"] == 1 and 0 < j["points"][2]["efficiency"] < 1 and j["steps"] == 3'
sed -i -e 's/threads: 2/threads: 0/' tiny.yaml
cores=$(nproc)
ok simulate tiny.yaml --ranks 2 --net 30,10 --steps 3 --json --out here
json out 'j["threads"] == '$cores' and not j["links"]["between"]["measured"]'
if [ "$cores" -gt 1 ]; then
    ok simulate tiny.yaml --ranks 2 --intra 3,80 --gpus-per-node 2 --steps 3 --json --out here
    json out 'j["threads"] == '$((cores / 2))
fi

# What cannot be is refused.
# a profile has rows of one length, whatever data.bucket says
seq 400 | sed 's/.*/line & of a text, some longer than others &/' >lines.txt
ok profile tiny.yaml --steps 3 --set threads=1 --set data.source=text --set data.path=lines.txt --set data.samples=lines --set data.bucket=8 --out bucketed
ok simulate --from bucketed/report.json --ranks 2 $LINKS --out rows

refused 2 "hone: a CONFIG is missing, or --from report.json of a profile" simulate
refused 2 "hone: a CONFIG and --from were given; one of them says what is simulated" simulate tiny.yaml --from "$FROM"
for ranks in 0 2,x 2, ,2 ... 2,...  2,4,... 3000000 -4 ''; do
    refused 2 "hone: --ranks is '$ranks'; it takes numbers of ranks from 1 to 1048576, as 2,4,8 or 2,4,...,1024" simulate --from "$FROM" --ranks "$ranks"
done
for link in 5 5,0 -1,400 5,400,1 x,y 5,inf nan,4; do
    refused 2 "hone: --net is '$link'; it takes the latency in microseconds and the bandwidth in Gbit/s, as 5,400" simulate --from "$FROM" --net $link
done
refused 2 "hone: --gpus-per-node is 0; it takes the ranks of a machine, 1 or more" simulate --from "$FROM" --gpus-per-node 0
refused 2 "hone: --ranks has 6, and machines of 4 ranks do not make that; try 4 or 8" simulate --from "$FROM" --ranks 2,6 $LINKS
refused 2 "hone: how fast machines talk is not known, and 4 ranks are more than the 2 of one machine: give --net US,GBPS, fewer --ranks or another --gpus-per-node, or measure it with \`mpirun --host a,b hone doctor\`" \
    simulate --from "$FROM" --ranks 2,4 --intra 2,80 --gpus-per-node 2
( export XDG_CACHE_HOME=$WORK/new            # and before anything is measured
  refused 2 "hone: how fast machines talk is not known, and 8 ranks are more than the 1 of one machine: give --net US,GBPS, fewer --ranks or another --gpus-per-node, or measure it with \`mpirun --host a,b hone doctor\`" \
      simulate tiny.yaml --ranks 8 --gpus-per-node 1
  [ ! -e new/hone/peaks.json ] || fail "simulate measured before it refused" )
refused 2 "hone: how fast ranks of one machine talk is not known: give --intra US,GBPS" simulate --from gpu.json --ranks 8 --net 5,400
refused 2 "hone: --set train.batch_size=8: what was measured cannot be changed; with --from only keys of dist can" simulate --from "$FROM" --set train.batch_size=8
echo '{"kind": "tune"}' >tune.json
refused 2 "hone: 'tune.json' is no report of \`hone profile\`; expected the report.json that its --out writes" simulate --from tune.json
sed -e 's/"ranks":\[\]/"ranks":[{},{}]/' "$FROM" >ranks.json
refused 2 "hone: 'ranks.json' is of 2 ranks, which wait for each other; profile one rank alone" simulate --from ranks.json
sed -e 's/"times_us":\[[^]]*\]/"times_us":[]/' "$FROM" >old.json
refused 2 "hone: 'old.json' has no step.times_us: an older hone wrote it; profile it again" simulate --from old.json
sed -e 's/"times_us":\[[^]]*\]/"times_us":[5, -1]/' "$FROM" >bad.json
refused 2 "hone: 'bad.json': step.times_us[1] is no time in microseconds" simulate --from bad.json
python3 - "$FROM" <<'END'
import json, sys
j = json.load(open(sys.argv[1]))
json.dump({**j, "model": {**j["model"], "name": "../../elsewhere"}}, open("path.json", "w"))
json.dump({**j, "ops": 3 * j["ops"]}, open("more.json", "w"))
json.dump({**j, "ops": j["ops"][:3]}, open("fewer.json", "w"))
END
refused 2 "hone: 'path.json': model.name is '../../elsewhere'; expected a name without '/'" simulate --from path.json --ranks 2 $LINKS
for f in more fewer; do
    run simulate --from $f.json --ranks 2 $LINKS
    [ "$code" = 2 ] && grep -q "^hone: '$f.json': its ops are not those of its config: .*; profile it again" err || fail "$f ops: $code $(cat err)"
done
head -c 500 "$FROM" >cut.json
touch file
refused 2 "hone: 'file' is a file, and a report is a folder; give another --out" simulate tiny.yaml --ranks 2 --net 30,10 --steps 100000 --out file       # before it measures
run simulate --from cut.json
[ "$code" = 2 ] && grep -q "^hone: 'cut.json' line " err || fail "half a report: $code $(cat err)"
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 run simulate --from "$FROM"
[ "$code" = 2 ] && grep -q '^hone: simulate runs on one rank, and mpirun started 2$' err || fail "under mpirun: $code $(cat err)"
