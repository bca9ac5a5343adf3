# The listing of a training step, exactly; a change of the program shows here.
. "$(dirname "$0")/lib"
tiny
ok train tiny.yaml --set model.dim=8 --set model.seq=4 --set model.dropout=0.5 --set optimize.passes=none --print-program
head -n -2 out >listing
same "the program of a small gpt" listing "$EXPECTED/program-gpt.txt"
set -- $(tail -1 out)                           # workspace: 0.010 MB planned, 0.032 MB without the plan
[ "$1 $3 $4 $6 $7 $8 $9" = "workspace: MB planned, MB without the plan" ] || fail "the last line: $*"
python3 -c 'import sys; sys.exit(not 0 < float(sys.argv[1]) < float(sys.argv[2]))' "$2" "$5" || fail "the plan saves nothing: $*"
[ "$(tail -2 out | head -1)" = "passes: none" ] || fail "the line about passes: $(tail -2 out)"

# It is text: --json promises one document, and nothing else.
for command in "train tiny.yaml" "generate nosuch"; do
    refused 2 "hone: --json is of a result, and --print-program ends before there is one; leave out one of them" $command --print-program --json
done

# And what passes make of it.
ok train tiny.yaml --set optimize.passes=hoist-constants,async-metrics,fused-optimizer --print-program
[ "$(tail -2 out | head -1)" = "passes: hoist-constants ×1, fused-optimizer ×3, async-metrics ×3" ] || fail "$(tail -2 out)"
grep -q '^setup: 1 ops' out && grep -q '^  table  *%[0-9]* *metrics ' out || fail "no setup: $(cat out)"
grep -q ' adamw_all .*(.* inputs).*\[fused-optimizer\]$' out || fail "no sweep: $(cat out)"
[ ! -e runs ] || fail "--print-program made a folder"

# It needs no data when the vocabulary is given.
tiny
ok train tiny.yaml --set model.vocab=10 --set data.source=text --set data.path=nosuch.txt --print-program
refused 2 "hone: --set data.path=\"nosuch.txt\": cannot open 'nosuch.txt': No such file or directory; relative paths start from 'WORK'" \
    train tiny.yaml --set data.source=text --set data.path=nosuch.txt --print-program
