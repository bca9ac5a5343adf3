# The listing of a training step, exactly; a change of the program shows here.
. "$(dirname "$0")/lib"
tiny
ok train tiny.yaml --set model.dim=8 --set model.seq=4 --set model.dropout=0.5 --print-program
sed '$d' out >listing
same "the program of a small gpt" listing "$EXPECTED/program-gpt.txt"
set -- $(tail -1 out)                           # workspace: 0.010 MB planned, 0.032 MB without the plan
[ "$1 $3 $4 $6 $7 $8 $9" = "workspace: MB planned, MB without the plan" ] || fail "the last line: $*"
python3 -c 'import sys; sys.exit(not 0 < float(sys.argv[1]) < float(sys.argv[2]))' "$2" "$5" || fail "the plan saves nothing: $*"
[ ! -e runs ] || fail "--print-program made a folder"

# It needs no data when the vocabulary is given.
tiny
ok train tiny.yaml --set model.vocab=10 --set data.source=text --set data.path=nosuch.txt --print-program
refused 2 "hone: cannot open 'nosuch.txt': No such file or directory" \
    train tiny.yaml --set data.source=text --set data.path=nosuch.txt --print-program
