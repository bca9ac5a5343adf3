# Text from a checkpoint: seeds, what can be drawn, where it stops, several samples, JSON, prompts, the three kinds of tokens.
. "$(dirname "$0")/lib"
tiny
ok train tiny.yaml --steps 200 --out run

# ---- the same seed gives the same text, another one another
ok generate run --tokens 100 && cp out a
ok generate run --tokens 100 && same "the text of the same seed" out a
ok generate run --tokens 100 --seed 1 && same "the text of the default seed" out a
ok generate run --tokens 100 --seed 2
cmp -s out a && fail "two seeds gave the same text"
[ "$(wc -c <a)" = 101 ] || fail "100 characters and a newline were asked for, $(wc -c <a) came"
ok generate run --tokens 40
[ "$(head -c 40 a)" = "$(head -c 40 out)" ] || fail "fewer tokens are not the start of more"

# ---- temperature 0 needs no seed
ok generate run --tokens 50 --temperature 0 --seed 1 && cp out cold
ok generate run --tokens 50 --temperature 0 --seed 2 && same "the text at temperature 0" out cold

# ---- what can be drawn: one token is the likeliest, all of them are as without
ok generate run --tokens 50 --top-k 1 && same "the text of the likeliest" out cold
ok generate run --tokens 50 --top-p 1e-9 --temperature 3 && same "the text of the likeliest by probability" out cold
ok generate run --tokens 100 --top-k 49 && same "the text drawn from all characters" out a
ok generate run --tokens 100 --top-p 1 && same "the text drawn from all probability" out a
ok generate run --tokens 100 --top-k 5 --top-p 0.9 && cp out some
cmp -s some a && fail "drawn from five characters as from all"
ok generate run --tokens 100 --top-k 5 --top-p 0.9 && same "the text of the same seed" out some
refused 2 "hone: --top-k must be at least 1; without it all tokens can be drawn" generate run --top-k 0
refused 2 "hone: --top-k must be at least 1; without it all tokens can be drawn" generate run --top-k -3
refused 2 "hone: --top-k is 50, and the vocabulary has 49 tokens; choose 1 to 49" generate run --top-k 50
refused 2 "hone: --top-p is 0; choose a probability above 0 and up to 1" generate run --top-p 0
refused 2 "hone: --top-p is 1.5; choose a probability above 0 and up to 1" generate run --top-p 1.5
refused 2 "hone: --top-p is -0.1; choose a probability above 0 and up to 1" generate run --top-p -0.1

# ---- a stop text, over the border of tokens: what comes is the text before it
for stop in "$(tail -c +30 a | head -c 1)" "$(tail -c +21 a | head -c 6)" "$(tail -c +60 a | head -c 20)"; do
    ok generate run --tokens 100 --stop "$stop"
    python3 - "$stop" <<'PY' || fail "--stop '$stop': $(cat out)"
import sys
whole = open("a", newline="").read()[:-1]
assert open("out", newline="").read() == whole[:whole.index(sys.argv[1])] + "\n"
PY
done
ok generate run --tokens 100 --stop "no such text" --stop "$(tail -c +41 a | head -c 9)" --stop "zzz"
[ "$(cat out)" = "$(head -c "$(($(wc -c <out) - 1))" a)" ] && [ "$(wc -c <out)" -le 41 ] || fail "several stop texts: $(cat out)"
ok generate run --tokens 100 --stop "no such text" && same "the text that nothing stops" out a
refused 2 "hone: --stop must not be empty" generate run --stop ""

# ---- several samples: each has a text of its own, the first is the one that comes alone
ok generate run --tokens 100 --samples 1 && same "one sample" out a
ok generate run --tokens 12 --samples 3 --prompt "the " && cp out three
python3 - <<'PY' || fail "samples: $(cat three)"
import re
texts = re.split(r"--- sample (\d) of 3\n", open("three", newline="").read())
assert texts[0] == "" and texts[1::2] == ["1", "2", "3"], texts
for i, text in enumerate(texts[2::2]):
    assert text.startswith("the ") and text.endswith("\n") and len(text) == 17, text
assert len(set(texts[2::2])) == 3
PY
ok generate run --tokens 12 --prompt "the "
{ echo "--- sample 1 of 3" && cat out; } | cmp -s -n "$(($(wc -c <out) + 18))" - three || fail "sample 1 of 3 is not the one of 1"
ok generate run --tokens 12 --samples 11 --prompt "the " --json && cp out eleven          # more than are made together
ok generate run --tokens 12 --samples 2 --prompt "the " --json
python3 - <<'PY' || fail "samples depend on their number"
read = lambda name: eval(open(name).read(), {"null": None, "true": True, "false": False})["samples"]
assert [s["text"] for s in read("eleven")][:2] == [s["text"] for s in read("out")] and len({s["text"] for s in read("eleven")}) > 8
PY
refused 2 "hone: --samples is 0; choose 1 to 10000" generate run --samples 0
refused 2 "hone: --samples is 10001; choose 1 to 10000" generate run --samples 10001

# ---- JSON: the same text, with tokens and what the model gave them
ok generate run --tokens 1 --json
json out 'j["tokens_per_s"] is None and len(j["samples"][0]["tokens"]) == 1'         # it came with the prompt
ok generate run --tokens 100 --json
[ ! -s err ] || fail "--json wrote to stderr: $(cat err)"
python3 - <<'PY' || fail "--json: $(cat out)"
import math
j = eval(open("out").read(), {"null": None, "true": True, "false": False})
assert list(j) == ["checkpoint", "step", "context", "prompt", "prompt_tokens", "tokens_per_s", "samples"], list(j)
assert j["checkpoint"] == "run/checkpoints/step-00000200" and j["step"] == 200 and j["context"] == 16
assert j["prompt"] == "" and j["prompt_tokens"] == [] and j["tokens_per_s"] > 0 and len(j["samples"]) == 1
s = j["samples"][0]
assert list(s) == ["text", "end", "logprob", "tokens"] and s["end"] == "tokens" and len(s["tokens"]) == 100
assert s["text"] + "\n" == open("a", newline="").read() == "".join(t["text"] for t in s["tokens"]) + "\n"
assert all(list(t) == ["id", "text", "logprob"] and 0 <= t["id"] < 49 and t["logprob"] <= 0 for t in s["tokens"])
assert abs(sum(t["logprob"] for t in s["tokens"]) - s["logprob"]) < 1e-6 and -389 < s["logprob"] < -50
PY
ok generate run --tokens 100 --json --prompt "the cat" --stop " " --temperature 0
json out 'j["prompt"] == "the cat" and len(j["prompt_tokens"]) == 7 and j["samples"][0]["end"] == "stop"'
json out 'j["samples"][0]["text"] + " " == "".join([t["text"] for t in j["samples"][0]["tokens"]])'

# a model that knows more tokens than its text has gives some of its probability to them: here all are about as likely
ok train tiny.yaml --set model.vocab=511 --steps 1 --out wide
ok generate wide --tokens 20 --json
json out '-6.5 < j["samples"][0]["logprob"] / 20 < -5.5'

# a document comes at the end: on a terminal it is seen how far it is, and nowhere else
if command -v script >/dev/null; then
    SHELL=$(command -v bash) script -qec "$(printf '%q ' "$HONE" generate run --tokens 300 --samples 3 --json) >out" /dev/null >screen </dev/null || fail "$(cat screen)"
    tr '\r' '\n' <screen | grep -q '% token 900/900' || fail "nothing is seen of it: $(cat -v screen)"
    json out '[len(s["tokens"]) for s in j["samples"]] == [300] * 3'
fi
ok generate run --tokens 9223372036854775807 --samples 2 --json --stop ' '
[ ! -s err ] || fail "off a terminal it said: $(cat err)"

# ---- the program of a token: what is kept, and where it is read
ok generate run --print-program --samples 2
grep -q '^  table  *%[0-9]*  *blocks.0.attn.keys  *f32  *(2, 16, ' out && grep -q ' store_kv ' out && grep -q ' attend_kv ' out || fail "--print-program: $(cat out)"

# ---- what may be named: the run, its checkpoints, one of them
ok generate run/checkpoints --tokens 100 && same "the text of run/checkpoints" out a
ok generate run/ --tokens 100 && same "the text of run/" out a
ok generate run/checkpoints/step-00000200 --tokens 100 && same "the text of the last checkpoint" out a
ok generate run/checkpoints/step-00000190 --tokens 100

# ---- prompts: shown first; one longer than model.seq is fine, the model sees its end
ok generate run --tokens 5 --prompt "the cat "
[ "$(head -c 8 out)" = "the cat " ] && [ "$(wc -c <out)" = 14 ] || fail "the prompt is not continued: $(cat out)"
long="the cat sat on the mat and the dog sat on the cat "
ok generate run --tokens 5 --prompt "$long" --temperature 0
[ "$(cat err)" = "warning: the prompt has 50 tokens, and the model sees the last 16 of them (model.seq)" ] || fail "a long prompt: $(cat err)"
[ "$(head -c ${#long} out)" = "$long" ] || fail "a long prompt is not shown whole: $(cat out)"
tail -c 6 out >end
ok generate run --tokens 5 --prompt "${long: -16}" --temperature 0
[ ! -s err ] || fail "a prompt that fits: $(cat err)"
tail -c 6 out >end2
same "the text after the last 16 characters of the prompt" end2 end
refused 2 "hone: --prompt: character 'é' (U+00E9) at byte 1 is not among the 49 characters of the vocabulary" generate run --prompt "aé"
refused 2 "hone: --prompt: byte 1 of the text, 0xFF, is not valid UTF-8" generate run --prompt $'a\xff'
refused 2 "hone: --tokens must be at least 1, not 0" generate run --tokens 0
refused 2 "hone: --tokens must be at least 1, not -5" generate run --tokens -5
refused 2 "hone: --temperature is -1; it must not be negative" generate run --temperature -1
refused 2 "hone: --seed is -1; it must not be negative" generate run --seed -1

# ---- nothing and rubbish
refused 2 "hone: no checkpoint at 'nosuch': No such file or directory" generate nosuch
refused 2 "hone: no checkpoint at '': No such file or directory" generate ''
refused 2 "hone: 'tiny.yaml' is a file; expected a checkpoint's folder or a run's folder" generate tiny.yaml
mkdir empty
refused 2 "hone: no checkpoint in 'empty': expected folders such as step-00000500" generate empty
mkdir -p rubbish/checkpoints/step-00000001
refused 2 "hone: cannot open 'rubbish/checkpoints/step-00000001/manifest.json': No such file or directory" generate rubbish
echo 'nonsense' >rubbish/checkpoints/step-00000001/manifest.json
run generate rubbish
[ "$code" = 2 ] && grep -q "^hone: 'rubbish/checkpoints/step-00000001/manifest.json'" err || fail "rubbish: $code $(cat err)"

# ---- bytes: any prompt will do
ok train tiny.yaml --set data.tokens=byte --steps 200 --out bytes
ok generate bytes --tokens 60 --prompt $'\xff\xfe' && cp out a
[ "$(head -c 2 a | od -An -tx1)" = " ff fe" ] && [ "$(wc -c <a)" = 63 ] || fail "bytes: $(od -c a | head)"

# A terminal gets what is safe to show, a file the bytes as they are.
if command -v script >/dev/null; then
    steering=$(printf 'a\033]0;x\a\302\233\342\200\256\303\251\377b')
    ok generate bytes --tokens 1 --temperature 0 --prompt "$steering"
    [ "$(head -c 16 out | od -An -c)" = "$(printf '%s' "$steering" | head -c 16 | od -An -c)" ] || fail "not as they are: $(od -c out)"
    SHELL=$(command -v bash) script -qec "$(printf '%q ' "$HONE" generate bytes --tokens 1 --temperature 0 --prompt "$steering") 2>progress" \
        /dev/null >screen </dev/null || fail "on a terminal: $(cat screen)"
    ! grep -q $'\033\|\a\|\302\233\|\342\200\256\|\377' screen || fail "steers a terminal: $(cat -v screen)"
    grep -q $'^a\357\277\275]0;x\357\277\275\357\277\275\357\277\275\303\251\357\277\275b' screen || fail "not what is safe: $(cat -v screen)"
fi

# ---- UTF-8 text
for i in $(seq 300); do echo "größer, schöner, weiter $i"; done >text.txt
ok train tiny.yaml --set data.source=text --set data.path=text.txt --steps 300 --out utf8
ok generate utf8 --prompt "grö" --tokens 200 --temperature 2
python3 - <<'PY' || fail "utf8: $(cat out)"
text = open("out", encoding="utf-8", newline="").read()         # fails on half a character
known = set(open("text.txt", encoding="utf-8").read())
assert text.startswith("grö") and len(text) == 204 and set(text) <= known
PY

# bytes that make up characters are told together, and JSON has text in any case
ok train tiny.yaml --set data.source=text --set data.path=text.txt --set data.tokens=byte --steps 300 --out utf8-bytes
ok generate utf8-bytes --prompt $'gr\xc3' --tokens 20 --temperature 0
[ "$(head -c 4 out)" = "grö" ] || fail "half a character is not continued: $(cat out)"
ok generate utf8-bytes --prompt $'gr\xc3' --tokens 20 --temperature 0 --json
json out 'j["prompt"] == "gr\ufffd" and len(j["samples"][0]["tokens"]) == 20'
ok generate utf8-bytes --prompt "gr" --tokens 200 --temperature 0.5 && cp out whole
ok generate utf8-bytes --prompt "gr" --tokens 200 --temperature 0.5 --stop "ö" && cp out before
ok generate utf8-bytes --prompt "gr" --tokens 200 --temperature 0.5 --stop "ö" --json
python3 - <<'PY' || fail "a stop text of two bytes: $(cat before)"
whole, before = open("whole", "rb").read(), open("before", "rb").read()
at = whole.index("ö".encode())                          # two tokens
assert before == whole[:at] + b"\n"
s = eval(open("out").read(), {"null": None, "true": True, "false": False})["samples"][0]
assert s["end"] == "stop" and [t["id"] for t in s["tokens"]] == list(whole[2:at + 2]) and s["text"] == before[2:-1].decode(errors="replace")
PY

# ---- token ids: the prompt is ids, and so is what comes
python3 - <<'PY'
import struct
ids = [i * i % 50 for i in range(3000)]
open("raw.bin", "wb").write(struct.pack("<3000H", *ids))
open("llmc.bin", "wb").write(struct.pack("<256i", 20240520, 1, 3000, *([0] * 253)) + struct.pack("<3000H", *ids))
PY
for f in raw llmc; do
    ok train tiny.yaml --set data.source=bin --set data.path=$f.bin --steps 100 --out $f
    ok generate $f --tokens 10 --prompt "0  1 4"
    grep -qE '^0 1 4 ([0-9]+ ){10}$' out || fail "$f: $(cat out)"
    ok generate $f --tokens 3
    grep -qE '^([0-9]+ ){3}$' out || fail "$f: $(cat out)"
done
same_checkpoint raw llmc 100
refused 2 "hone: --prompt: byte 0 of the text is no digit; this vocabulary has no characters: give token ids separated by spaces, e.g. '15 8 2'" \
    generate raw --prompt "the"
refused 2 "hone: --prompt: token id '50' is outside the vocabulary; ids are 0 to 49" generate raw --prompt "3 50"
