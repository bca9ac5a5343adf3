# hone watch: which calls are a step, of several optimizers, of some that come later, and of a function that is named.
. "$(dirname "$0")/lib"
. "$HONE_SOURCE/tests/cli/lib-watch"

# ---- several optimizers, gradients that are accumulated
OUT=gan
watch --steps 8 --warmup 5 -- python3 "$PROGRAMS/gan.py"
ended_with 0
json gan/report.json 'j["watched"]["ranks"][0]["optimizer_calls_per_step"] == 2 and j["watched"]["ranks"][0]["backwards_per_step"] == 2'
watch --steps 8 --warmup 5 -- python3 "$PROGRAMS/gan.py" three
ended_with 0
json gan/report.json 'j["watched"]["ranks"][0]["optimizer_calls_per_step"] == 4'
watch -- python3 "$PROGRAMS/loop.py" 60 accumulate
ended_with 0
json gan/report.json 'j["watched"]["ranks"][0]["backwards_per_step"] == 3 and j["watched"]["ranks"][0]["optimizer_calls_per_step"] == 1'
for warmup in 1 2 3 4 5; do               # few steps are seen whole, or none
    watch --steps 3 --warmup $warmup -- python3 "$PROGRAMS/loop.py" 60 accumulate
    ended_with 0
    json gan/report.json 'j["watched"]["ranks"][0]["backwards_per_step"] == 3'
    watch --steps 3 --warmup $warmup -- python3 "$PROGRAMS/gan.py"
    ended_with 0
    json gan/report.json 'j["watched"]["ranks"][0]["backwards_per_step"] == 2'
done

# ---- an optimizer that comes in the middle of a window: it begins anew
OUT=anew
for at in 15:undisturbed:18 31:recorded_shapes:35 37:recorded_stacks:41; do     # it is known again at the third step
    watch -- python3 "$PROGRAMS/anew.py" once ${at%%:*}
    ended_with 0
    window=${at#*:}
    json anew/report.json "j['watched']['ranks'][0]['${window%:*}']['first'] == ${at##*:} and len(j['steps']) == 4"
    json anew/report.json 'any("which began anew" in n for n in j["watched"]["ranks"][0]["notes"]) and j["watched"]["ranks"][0]["backwards_per_step"] == 1'
done
watch --steps 3 --warmup 3 -- python3 "$PROGRAMS/gan.py" three          # the second comes behind three steps of the first
ended_with 0
json anew/report.json 'j["watched"]["ranks"][0]["backwards_per_step"] == 4'
for way in folds inner; do
    watch -- python3 "$PROGRAMS/anew.py" $way
    ended_with 0
    json anew/report.json 'any("not to be trusted: name its function with --step-call" in n for n in j["watched"]["ranks"][0]["notes"])'
done

# ---- steps by name
OUT=named
for call in function=__main__:train_step method=__main__:Trainer.step module=named_module:train_step; do
    watch --step-call "${call#*=}" -- python3 "$PROGRAMS/named.py" "${call%%=*}"
    ended_with 0
    first done
    json named/report.json "j['watched']['ranks'][0]['steps_by'] == '${call#*=}' and j['watched']['ranks'][0]['undisturbed']['steps'] == 20"
done
for call in train_step Trainer.step; do
    PYTHONPATH=$FAKE:$PROGRAMS watch --step-call "__main__:$call" -- python3 -c "import sys; exec(compile(open(sys.argv[2]).read(), sys.argv[2], 'exec'), {'__name__': '__main__'})" \
        "$([ $call = train_step ] && echo function || echo method)" "$PROGRAMS/named.py"
    ended_with 0
    json named/report.json "j['watched']['ranks'][0]['undisturbed']['steps'] == 20"
done
PYTHONPATH=$FAKE:$PROGRAMS watch --step-call __main__:train_step -- python3 -c "import sys; sys.setprofile(lambda *event: None); exec(open(sys.argv[2]).read(), {'__name__': '__main__'})" function "$PROGRAMS/named.py"
ended_with 2
first done
said "hone: watch: --step-call: the program has a profile function of its own, so that no function of __main__ can be found; name one of a module"
watch --step-call __main__:nothing -- python3 "$PROGRAMS/named.py" function
ended_with 2
said "hone: torch was imported, but '__main__:nothing' was never called"
