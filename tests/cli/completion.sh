# Completion of shells and pages of the manual: made from the tables, so what is asked is whether they work.
. "$(dirname "$0")/lib"

ok completion bash
cp out hone.bash
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
TEXT
bash try.bash >got || fail "bash does not read the completion"
same "completions" got want

commands=$("$HONE" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
ok completion fish
for command in $commands; do
    grep -q "^complete -c hone -n __fish_use_subcommand -a $command -d '" out || fail "fish does not know $command"
done
grep -q "^complete -c hone -n '__fish_seen_subcommand_from train' -l steps -r -d 'train so many steps" out || fail "fish does not know train --steps"
grep -q "^complete -c hone -n '__fish_seen_subcommand_from export' -l to -r -f -a 'hf torch' -d '" out || fail "fish does not know values of export --to"
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
refused 2 "hone: 'nothing' is not a command; \`hone --help\` lists them" man nothing
