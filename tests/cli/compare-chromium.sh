# The page of hone compare in a real browser: it loads without an error or a request, its curves have content, keys and buttons work.
. "$(dirname "$0")/lib"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "there is no Chromium here"
python3 -c 'import base64, fcntl, json, select, subprocess' 2>python.err || skip "this Python has too few modules: $(tail -1 python.err)"

# made NAME LR: a run of 50 logs and 5 evaluations, made by hand, so that all of it is known
made() {
    mkdir -p "$1"
    python3 - "$1" "$2" "$3" <<'PY'
import sys
folder, lr, state = sys.argv[1:]
with open(folder + "/metrics.jsonl", "w") as f:
    for i in range(1, 51):
        f.write('{"step":%d,"loss":%s,"steps_per_s":10,"tokens_per_s":%d,"seconds":%g}\n' % (10 * i, "null" if state == "nan" and i > 40 else 4 / (1 + float(lr) * i), 1000 + i, i))
        if i % 10 == 0:
            f.write('{"step":%d,"val_loss":%g}\n' % (10 * i, 4.5 / (1 + float(lr) * i)))
open(folder + "/run.json", "w").write('{"state":"%s","step":500,"steps":500,"device":"cpu","threads":2,"planned_bytes":4e6,"peak_bytes":9e6,"steps_per_s":10,"tokens_per_s":%g,"ended":"2026-01-02T03:04:05Z"}' % (state, 1025 + float(lr)))
PY
    printf 'model: {arch: gpt, dim: 32, layers: 1, heads: 2, seq: 16}\ntrain: {steps: 500, lr: %s}\n' "$2" >"$1/config.yaml"
}
made slow 0.01 finished
made fast 0.05 finished
made bad 0.5 nan
ok compare slow fast bad --out reports/sample
mkdir -p hostile
cp -r fast 'hostile/<img src=x onerror=alert(1)>'
i=0
while [ $i -lt 20 ]; do cp -r slow hostile/run-$i; i=$((i + 1)); done
ok compare hostile/* --out reports/hostile
PYTHONDONTWRITEBYTECODE=1 python3 "$HONE_SOURCE/tests/cli/compare-chromium.py" "$browser" reports || fail "the page is not as expected"
