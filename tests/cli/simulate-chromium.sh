# The page of hone simulate in a real browser: it loads without an error or a request, its curve has content, keys reach it.
. "$(dirname "$0")/lib"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "there is no Chromium here"
python3 -c 'import base64, fcntl, json, select, subprocess' 2>python.err || skip "this Python has too few modules: $(tail -1 python.err)"

FROM=$HONE_SOURCE/tests/fixtures/simulate/report.json
ok simulate --from "$FROM" --ranks 2,4,...,64 --net 10,10 --intra 2,80 --gpus-per-node 4 --out reports/sample
sed -e 's/"name":"fixture"/"name":"<img src=x onerror=alert(1)>"/' "$FROM" >hostile.json
ok simulate --from hostile.json --ranks 1 --out reports/hostile
PYTHONDONTWRITEBYTECODE=1 python3 "$HONE_SOURCE/tests/cli/simulate-chromium.py" "$browser" reports || fail "the page is not as expected"
