# hone train --live and --samples: the page and its data, who may ask for them, the terminal, and that the run is the same.
. "$(dirname "$0")/lib"
tiny
set -- train tiny.yaml --steps 3000 --set log.every=1 --set eval.every=100 --set checkpoint.every=1000

# get PATH [HOST] [METHOD]: the answer in the file answer, its first line in $status and its body in the file body
get() {
    exec 6<>"/dev/tcp/127.0.0.1/$port"
    printf '%s %s HTTP/1.1\r\nHost: %s\r\n\r\n' "${3:-GET}" "$1" "${2:-127.0.0.1:$port}" >&6
    cat <&6 >answer
    exec 6<&-
    status=$(head -n 1 answer | tr -d '\r')
    sed '1,/^\r$/d' answer >body
}

# ---- the run is held by its reader, so that it is still there
start "$@" --live --samples 40 --out run
read -r line <&5
port=$(printf '%s\n' "$line" | sed -n 's#^live    http://127.0.0.1:\([0-9]*\)/ follows the run, on this machine alone$#\1#p')
[ -n "$port" ] || fail "no address: $line"
until_step 50
sleep 0.5                               # numbers are handed over a few times in a second
until_step 900
get /
[ "$status" = "HTTP/1.1 200 OK" ] || fail "the page: $status"
grep -q "connect-src 'self';" body && grep -q '<title>tiny · hone live</title>' body && ! grep -q '{{' body || fail "the page is not as expected: $(head -c 600 body)"
get /data
[ "$status" = "HTTP/1.1 200 OK" ] || fail "the data: $status"
json body '(j["state"] == "running" and j["name"] == "tiny" and j["steps"] == 3000 and j["step"] >= 1 and j["device"] == "cpu" and j["memory_bytes"] > 1e6
    and 0.4 < j["entropy"] < 0.5 and len(j["curve"]["points"][0]) == 9)'
get "/data?seen=999999999"
[ "$status" = "HTTP/1.1 200 OK" ] || fail "data of another version: $status"
get / "example.com:$port"
[ "$status" = "HTTP/1.1 403 Forbidden" ] || fail "another host: $status"
get / "127.0.0.1:$port" POST
[ "$status" = "HTTP/1.1 405 Method Not Allowed" ] || fail "POST: $status"
get /run.json
[ "$status" = "HTTP/1.1 404 Not Found" ] || fail "another file: $status"
refused 2 "hone: --live: port $port of 127.0.0.1 is taken; give another, or --live alone for one that is free" train tiny.yaml --live=$port --out taken
[ ! -e taken ] || fail "what was refused left something"
finish
[ "$code" = 0 ] || fail "the run: exit code $code: $(cat err)"
grep -qE '^\[1000\] wrote: .' rest || fail "no sample is shown: $(grep -v loss rest)"

# ---- the same bits without; samples.jsonl has the text of every checkpoint
ok "$@" --out plain
same_checkpoint run plain 3000
lines run/samples.jsonl '[l["step"] for l in j] == [1000, 2000, 3000] and all(len(l["text"]) == 40 for l in j)'
[ ! -e plain/samples.jsonl ] || fail "samples that nobody asked for"
ok generate run --tokens 40 --seed 1
[ "$(lines run/samples.jsonl 'print(j[2]["text"]) or True' 2>/dev/null)" = "$(cat out)" ] || fail "the last sample is not what the model writes: $(cat out)"

# ---- stopped and resumed: samples go on, and so does the curve
start "$@" --live --samples 40 --out halves
until_step 1500
kill -INT $pid
finish
start "$@" --live --samples 40 --out halves --resume
read -r line <&5
port=$(printf '%s\n' "$line" | sed -n 's#^live    http://127.0.0.1:\([0-9]*\)/.*#\1#p')
sleep 0.5
until_step 2900
get /data
json body 'j["curve"]["points"][0][0] <= 8 and j["curve"]["points"][-1][0] > 1400 and len(j["curve"]["points"]) <= 600 and j["curve"]["lines_per_point"] > 1'
finish
same_checkpoint plain halves 3000
lines halves/samples.jsonl '[l["step"] for l in j] == [1000, 2000, 3000]'

# ---- what is wrong is said before anything is made
refused 2 "hone: --live is '0'; it takes a port from 1 to 65535, or nothing for one that is free" train tiny.yaml --live=0 --out none
refused 2 "hone: --live is '80x'; it takes a port from 1 to 65535, or nothing for one that is free" train tiny.yaml --live=80x --out none
refused 2 "hone: --samples is -1; it must not be negative" train tiny.yaml --samples -1 --out none
sed -e 's/arch: gpt/arch: regions/' -e 's/seq: 16/seq: 43, positions: 64, segments: 3/' -e 's/^data: .*/data: {source: regions, region: 20, workers: 0}/' tiny.yaml >regions.yaml
refused 2 "hone: --samples: a model of arch regions writes no text" train regions.yaml --samples 5 --out none
[ ! -e none ] || fail "what was refused left something"
ok train tiny.yaml --steps 5 --live --json --out document
json out 'j["steps"] == 5'
head -n 1 err | grep -q '^live    http://127.0.0.1:' || fail "with --json the address is not on stderr: $(cat err)"

# ---- in a terminal: curve, speed and memory, and nothing of them is left
command -v script >/dev/null || exit 0
SHELL=$(command -v bash) script -qec "stty rows 40 cols 120; $(printf '%q ' "$HONE" train tiny.yaml --steps 400 --live --out term)" /dev/null >screen.raw </dev/null || fail "$(cat screen.raw)"
grep -q 'speed   ' screen.raw && grep -q ' tokens/s' screen.raw && grep -q '| memory .* MB | http://127.0.0.1:' screen.raw || fail "no live view: $(cat -v screen.raw)"
grep -q "$(printf '\033\[15A\033\[J')" screen.raw || fail "the view is not drawn anew with its plot: $(cat -v screen.raw)"
SHELL=$(command -v bash) script -qec "stty rows 10 cols 60; $(printf '%q ' "$HONE" train tiny.yaml --steps 400 --live --out small)" /dev/null >screen.raw </dev/null || fail "$(cat screen.raw)"
grep -q "$(printf '\033\[2A\033\[J')" screen.raw || fail "the small view: $(cat -v screen.raw)"
python3 - <<'PY' || fail "lines of the small view are wider than the screen: $(cat -v screen.raw)"
import re
lines = re.findall(r"(speed   [^\r\n]*|loss    [^\r\n]*)\r?\n", open("screen.raw", encoding="utf-8").read())
assert lines and all(len(l) < 60 for l in lines), lines
PY

SHELL=$(command -v bash) script -qec "stty rows 10 cols 40; $(printf '%q ' "$HONE" train tiny.yaml --steps 400 --live --out narrow)" /dev/null >screen.raw </dev/null || fail "$(cat screen.raw)"
grep -qE "^(page    |.* [|] )http://127\.0\.0\.1:[0-9]+/.?$" screen.raw && grep -qE '^.*speed   .* tokens/s.?$' screen.raw || fail "at 40 columns: $(cat -v screen.raw)"

# A name that is not UTF-8 is shown as far as it is.
cp tiny.yaml "$(printf 'caf\351.yaml')"
ok train "$(printf 'caf\351.yaml')" --steps 2 --live --out odd
