# The progress bar on screens of any width: it shrinks, goes where there is no room for it, and no line is ever so wide that it wraps.
. "$(dirname "$0")/lib"
command -v script >/dev/null || skip "there is no script(1) to make a terminal with"
tiny
sed -i 's/every: 10, batches: 2/every: 0/' tiny.yaml

# drawn COLUMNS: a run on a screen of that width; the file screen gets one line for every time that the bar was drawn.
drawn() {
    rm -rf run
    SHELL=$(command -v bash) script -qec "stty rows 20 cols $1; $(printf '%q ' "$HONE" train tiny.yaml --steps 300 --out run) >out" /dev/null >screen.raw </dev/null || fail "$(cat screen.raw)"
    python3 - "$1" <<'PY' || fail "$1 columns: $(cat -v screen.raw)"
import re, sys
columns = int(sys.argv[1])
text = open("screen.raw", encoding="utf-8", newline="").read()             # fails where a character was cut in two
bars = [b for b in re.findall(r"\r\033\[K([^\r\n\033]*)", text) if "%" in b]
assert bars and any("step" in b for b in bars) and all(len(b) < columns for b in bars), bars
wide = max(b.count("\u2588") + b.count("\u2591") for b in bars if "step" in b)
least, most = {120: (28, 28), 50: (6, 27), 24: (0, 0)}[columns]
assert least <= wide <= most, (wide, bars)
PY
}
drawn 120
drawn 50
drawn 24
