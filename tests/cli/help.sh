# Help, version, and what is said to unknown commands and options.
. "$(dirname "$0")/lib"

ok --help
same "hone --help" out "$EXPECTED/help.txt"
[ ! -s err ] || fail "hone --help wrote to stderr"
cp out help
ok -h && same "hone -h" out help
ok help && same "hone help" out help

commands=$(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' help)
[ "$(echo $commands | wc -w)" -ge 9 ] || fail "hone --help lists too few commands: $commands"
for command in $commands; do
    ok $command --help
    same "hone $command --help" out "$EXPECTED/help-$command.txt"
    ok $command -h
    same "hone $command -h" out "$EXPECTED/help-$command.txt"
done

# Examples that need nothing, or a run of quickstart, do what they say.
ok train quickstart --steps 5
cat "$EXPECTED"/help-*.txt | grep -E '^  hone ((eval|generate) runs/quickstart|config|explain)( |$)' | sed -E 's/^ +hone/"$HONE"/' >examples
[ "$(wc -l <examples)" -ge 10 ] || fail "too few examples: $(cat examples)"
while read -r example; do
    eval "$example" >out 2>err </dev/null || fail "$example: exit code $?: $(cat err)"
done <examples

# `hone help COMMAND` is the same, and a dumb terminal is a file.
ok help train
same "hone help train" out "$EXPECTED/help-train.txt"
refused 2 "hone: 'trian' is not a command; did you mean 'train'? \`hone --help\` lists them" help trian

ok --version
grep -qx 'hone [0-9]*\.[0-9]*\.[0-9]*' out || fail "hone --version: $(cat out)"

run                                             # no command: the help, as a mistake
[ "$code" = 2 ] || fail "hone: exit code $code"
same "hone" err help

refused 2 "hone: 'trian' is not a command; did you mean 'train'? \`hone --help\` lists them" trian
refused 2 "hone: 'xyzzy' is not a command; \`hone --help\` lists them" xyzzy
refused 2 "hone train: there is no option '--step'; did you mean '--steps'?" train x --step 3
refused 2 "hone train: there is no option '--frobnicate'; \`hone train --help\` shows the options" train x --frobnicate
refused 2 "hone train: there is no option '-x'; \`hone train --help\` shows the options" train -x
refused 2 "hone train: CONFIG is missing; \`hone train --help\` shows examples" train
refused 2 "hone generate: CHECKPOINT is missing; \`hone generate --help\` shows examples" generate
refused 2 "hone bench: CASE... is missing; \`hone bench --help\` shows examples" bench
refused 2 "hone train: one argument too many: 'b'; \`hone train --help\` shows the options" train a b
refused 2 "hone train: a value is missing after '--out'; \`hone train --help\` shows the options" train a --out
refused 2 "hone train: --steps takes a whole number, not 'ten'; \`hone train --help\` shows the options" train a --steps ten
refused 2 "hone train: --steps takes a whole number, not ''; \`hone train --help\` shows the options" train a --steps=
refused 2 "hone train: --steps takes a whole number, not '99999999999999999999'; \`hone train --help\` shows the options" \
    train a --steps 99999999999999999999
refused 2 "hone generate: --temperature takes a number, not 'nan'; \`hone generate --help\` shows the options" \
    generate a --temperature nan
refused 2 "hone train: this option takes no value: '--json=1'; \`hone train --help\` shows the options" train a --json=1

# A value that looks like an option is a value.
refused 2 "hone: no checkpoint at 'nosuch': No such file or directory" generate nosuch --prompt --help
