# hone runs: the table of runs that finished, were stopped, failed, were killed or go on; damaged folders; the order; JSON.
. "$(dirname "$0")/lib"
tiny

# masked: the table with speeds, times and losses of this machine taken out, and one space between columns
masked() {
    sed -E -e 's/20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}/WHEN/' -e 's/  +/  /g' -e 's/  [0-9]+(\.[0-9]+)?( [kM])?  (cpu|–)/  SPEED  \3/' -e 's/\b[0-9]\.[0-9]{4}\b/LOSS/g' \
        -e 's/  / /g' out
}

refused 2 "hone: 'runs' does not exist; runs are made by hone train, in runs/ unless --out says otherwise" runs
refused 2 "hone: 'tiny.yaml' is a file; expected a folder of runs" runs tiny.yaml
refused 2 "hone: --sort is 'los'; choose a key of the config, name, state, step, loss, val_loss, speed, memory or when; did you mean 'loss'?" runs --sort los
mkdir runs
ok runs
[ "$(cat out)" = "no runs below 'runs'" ] || fail "$(cat out)"
ok runs --json
json out 'j["runs"] == [] and j["keys"] == [] and j["best"] is null'

for lr in 0.001 0.01; do ok train tiny.yaml --out runs/lr-$lr --set train.lr=$lr; done
run train tiny.yaml --steps 20 --set train.lr=10 --set train.clip=0 --set train.weight_decay=10 --set train.decay=all --set eval.every=0 --out runs/bad/nan
[ "$code" = 2 ] || fail "the run did not fail: $(cat out)"
start train tiny.yaml --steps 100000 --set log.every=1 --set eval.every=0 --out runs/long
until_step 30
ok runs --json
json out '[(r["name"], r["state"]) for r in j["runs"]] == [("bad/nan", "nan"), ("long", "running"), ("lr-0.001", "finished"), ("lr-0.01", "finished")]'
json out 'j["runs"][1]["step"] >= 29 and j["runs"][1]["steps"] == 100000 and j["runs"][1]["loss"] > 0 and j["runs"][1]["tokens_per_s"] > 0 and j["best"] == "lr-0.01"'
json out 'j["keys"] == ["train.steps", "train.lr", "train.weight_decay", "train.decay", "train.clip", "eval.every", "log.every"] and j["runs"][3]["config"]["train.lr"] == "0.01"'
kill -KILL $pid
finish 2>/dev/null
ok runs --json
json out 'j["runs"][1]["state"] == "crashed"'
rm -r runs/long
start train tiny.yaml --steps 100000 --set log.every=1 --out runs/long
until_step 30
kill -INT $pid
finish
at=$(sed -n 's/^stopped after \([0-9]*\) steps.*/\1/p' rest)

ok runs --sort train.lr
masked >said
cat >wanted <<TABLE
run state step loss val loss tokens/s device when train.steps train.lr train.weight_decay train.decay train.clip eval.every
long stopped $at/100000 LOSS LOSS SPEED cpu ×2 WHEN 100000 0.001 0.1 matrices 1 10
lr-0.001 finished 20/20 LOSS LOSS SPEED cpu ×2 WHEN 20 0.001 0.1 matrices 1 10
lr-0.01 finished 20/20 LOSS LOSS SPEED cpu ×2 WHEN 20 0.01 0.1 matrices 1 10
bad/nan nan 10/20 nan – SPEED cpu ×2 WHEN 20 10 10 all 0 0
also differ (--json has them): log.every
TABLE
head -n 6 said >table
same "the table" table wanted
grep -qE '^bad/nan: step [0-9]+: loss is -?nan and the gradient norm -?nan' out || fail "no reason: $(cat out)"
grep -qE '^best of the 2 that finished with a validation loss: lr-0.01, validation loss [0-9.]+$' out || fail "no best: $(cat out)"

# ---- losses of other data, and of other tokens of the same, are other numbers
for tokens in char byte; do ok train tiny.yaml --out kinds/$tokens --set data.tokens=$tokens; done
ok train tiny.yaml --out kinds/slow --set data.tokens=byte --set train.lr=1e-5 --set data.workers=1
ok runs kinds
masked | tail -n 3 >said
cat >wanted <<'TEXT'
best of those that finished, for each data (losses of different data or tokens cannot be compared):
 data.tokens byte: byte, validation loss LOSS (of 2)
 data.tokens char: char, validation loss LOSS (the only one)
TEXT
same "the best of each data" said wanted
ok runs kinds --json
json out 'j["best"] is null and [(b["data"], b["run"], b["runs"], b["by"]) for b in j["bests"]] == [("data.tokens byte", "byte", 2, "val_loss"), ("data.tokens char", "char", 1, "val_loss")]'
json out 'all(type(r[k]) == int for r in j["runs"] for k in ("planned_bytes", "peak_bytes"))'
# the same weights have another loss on four samples than on all: who is told which run is the best is told that
may="their validation losses may be of different samples, as eval.batches × eval.batch_size × model.seq differ; hone eval RUN takes all there are"
for batches in 2 1000; do ok train tiny.yaml --out looks/$batches --set eval.batches=$batches; done
ok runs looks
[ "$(tail -1 out)" = "$may" ] || fail "nothing is said of other samples: $(tail -2 out)"
ok runs looks --json
json out '[b["unlike_samples"] for b in j["bests"]] == [true]'
ok compare looks --out looks/compare
tr '\n' ' ' <out | grep -q 'Their validation losses may be of different samples, as eval.batches × eval.batch_size × model.seq differ; hone eval RUN takes all there are' || fail "compare: $(cat out)"
grep -q 'Their validation losses may be of different samples' looks/compare/report.md || fail "the report: $(head -5 looks/compare/report.md)"
ok runs kinds
! grep -q 'different samples' out || fail "as many samples, and yet: $(tail -1 out)"
# the length of the built-in corpus is nothing of a file's; a resume does not ask for it either
for i in $(seq 300); do echo "a line, and then the line $i"; done >lines.txt
for chars in 20000 30000; do ok train tiny.yaml --out files/$chars --set data.source=text --set data.path=lines.txt --set data.chars=$chars; done
ok runs files
grep -q '^best: 20000 and 30000 are tied, validation loss ' out || fail "the same data twice: $(tail -3 out)"
ok train tiny.yaml --out files/20000 --set data.source=text --set data.path=lines.txt --set data.chars=40000 --resume --steps 25
json kinds/byte/run.json 'type(j["planned_bytes"]) == int and type(j["peak_bytes"]) == int'
ok compare kinds/char kinds/byte --out kinds/compare
grep -q '^2 runs on 2 kinds of data or tokens, whose losses cannot be compared with each other; the' out || fail "$(cat out)"

# ---- lines that are garbage are told of
mkdir garbage
cp -r runs/lr-0.01 garbage/lines
sed -i -e '2s/.*/garbage/' -e '3s/.*/{"step": /' garbage/lines/metrics.jsonl
ok runs garbage
grep -qx "lines: 2 lines at the end of metrics.jsonl could not be read, and are left out" out || fail "garbage in metrics.jsonl: $(cat out)"
ok runs garbage --json
grep -q '2 lines at the end of metrics.jsonl could not be read' out || fail "garbage in metrics.jsonl: $(cat out)"

# ---- folders that are damaged, half written, of a version without run.json, or no runs
mkdir -p odd/empty odd/half odd/cut
cp -r runs/lr-0.01 odd/old
rm odd/old/run.json
cp -r runs/lr-0.01 odd/garbled
printf '{"step":25,"loss":0.' >>odd/garbled/metrics.jsonl
printf 'model: [\n' >odd/garbled/config.yaml
head -c 40 runs/lr-0.01/run.json >odd/garbled/run.json
head -c 100 runs/lr-0.01/metrics.jsonl >odd/half/metrics.jsonl
cp runs/lr-0.01/run.json odd/cut/run.json
: >odd/cut/metrics.jsonl
printf '{"state": "finished", "step": 3, "steps": 9, "device": "\\u001b[2J", "name": 7}' >odd/half/run.json
ok runs odd
! grep -q "$(printf '\033')" out || fail "something steers the terminal: $(od -c out)"
masked >said
cat >wanted <<'TABLE'
run state step loss val loss tokens/s device when
cut finished 20/20 LOSS LOSS SPEED cpu ×2 WHEN
garbled stopped 20 LOSS LOSS SPEED – WHEN
half finished 3/9 – – – �[2J WHEN
old finished 20/20 LOSS LOSS SPEED – WHEN
cut: cannot open 'odd/cut/config.yaml': No such file or directory
TABLE
head -n 6 said >table
grep -q "^garbled: run.json cannot be read: 'odd/garbled/run.json' is not JSON at line" out || fail "$(cat out)"
same "the table of damaged runs" table wanted
