# Completion of shells and pages of the manual: made from the tables, so what is asked is whether they work.
. "$(dirname "$0")/lib"

ok completion bash
cp out hone.bash
mkdir folder
cat >try.bash <<'SCRIPT'
source hone.bash
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _hone 2>/dev/null; echo "${COMPREPLY[*]}"; }
try hone tr
try hone train --st
try hone train --set train.l
try hone explain unfused-op
try hone profile quick
try hone help gen
try hone doctor try.b
try hone eval runs --split va
try hone export runs --to ''
try hone launch -n 2 tu
try hone runs --sort val
try hone runs --sort train.l
try hone analyze x --fail-on ''
try hone watch --fail-on = hi
try hone bench x --batches a
try hone train quickstart --steps ''
try hone train quickstart --out ''
try hone analyze x --baseline tr
SCRIPT
cat >want <<'TEXT'
train
--steps
train.lr=
unfused-optimizer
quickstart
generate
try.bash
validation
hf torch
tune
val_loss
train.lr
low medium high critical
high
auto

folder
try.bash
TEXT
bash try.bash >got || fail "bash does not read the completion"
same "completions" got want

commands=$("$HONE" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
ok completion fish
for command in $commands; do
    grep -q "^complete -c hone -n __fish_use_subcommand -a $command -d '" out || fail "fish does not know $command"
done
grep -q "^complete -c hone -n '__fish_seen_subcommand_from train' -l steps -x -d 'train so many steps" out || fail "fish does not know train --steps"
grep -q "^complete -c hone -n '__fish_seen_subcommand_from export' -l to -x -a 'hf torch' -d '" out || fail "fish does not know values of export --to"
if command -v fish >/dev/null; then
    cp out hone.fish
    fish -c 'source hone.fish; complete -C "hone runs --sort train.l"; complete -C "hone analyze x --fail-on h"; complete -C "hone train x --set train.l"' | cut -f 1 >got
    printf '%s\n' train.lr high train.lr= >want
    same "completions of fish" got want
fi
ok completion zsh
grep -qx '#compdef hone' out || fail "no zsh: $(head -1 out)"
refused 2 "hone: there is no completion for 'csh'; bash, zsh and fish have one" completion csh

ok man
grep -q '^\.TH HONE 1 ' out && grep -q '^\\fBhone\\-train\\fR(1)$' out || fail "no overview: $(cat out)"
for command in $commands; do
    ok man $command
    "$HONE" $command --help | sed -n '/^options:/,/^$/s/^  \(-[a-z-]*\).*/\1/p' | sed 's/-/\\-/g' | while read -r option; do
        grep -qF "\\fB$option\\fR" out || fail "hone man $command: $option is missing"
    done
done
ok man eval
grep -qxF '\fB\-\-split\fR \fItrain|validation\fR' out || fail "no values in the manual: $(cat out)"
refused 2 "hone: 'nothing' is not a command; \`hone --help\` lists them" man nothing
