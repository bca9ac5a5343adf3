# Text from a checkpoint: seeds, temperature, prompts, the three kinds of tokens.
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
[ "$(head -c ${#long} out)" = "$long" ] || fail "a long prompt is not shown whole: $(cat out)"
tail -c 6 out >end
ok generate run --tokens 5 --prompt "${long: -16}" --temperature 0
tail -c 6 out >end2
same "the text after the last 16 characters of the prompt" end2 end
refused 2 "hone: --prompt: character 'é' (U+00E9) at byte 1 is not among the 49 characters of the vocabulary" generate run --prompt "aé"
refused 2 "hone: --prompt: byte 1 of the text, 0xFF, is not valid UTF-8" generate run --prompt $'a\xff'
refused 2 "hone: --tokens must be at least 1" generate run --tokens 0
refused 2 "hone: --tokens must be at least 1" generate run --tokens -5
refused 2 "hone: --temperature must not be negative" generate run --temperature -1

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
    SHELL=$(command -v bash) script -qec "$(printf '%q ' "$HONE" generate bytes --tokens 1 --temperature 0 --prompt "$steering")" \
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
