# The live page in a real browser: it follows a run that goes on, asks nobody else, and says when the run has ended.
. "$(dirname "$0")/lib"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "there is no Chromium here"
python3 -c 'import base64, fcntl, json, select, subprocess' 2>python.err || skip "this Python has too few modules: $(tail -1 python.err)"
tiny
mkdir pages
start train tiny.yaml --steps 1000000 --set log.every=10 --set eval.every=200 --set checkpoint.every=400 --live --samples 30 --out run
read -r line <&5
port=$(printf '%s\n' "$line" | sed -n 's#^live    http://127.0.0.1:\([0-9]*\)/.*#\1#p')
cat <&5 >rest &
reader=$!
PYTHONDONTWRITEBYTECODE=1 python3 "$HONE_SOURCE/tests/cli/live-chromium.py" "$browser" pages "$port" "$pid" || { kill -KILL $pid; fail "the page is not as expected"; }
code=0
wait $pid || code=$?
wait $reader
[ "$code" = 0 ] || fail "the run: exit code $code: $(cat err)"
