# hone watch: signals are the program's while it runs, and hone's when it has ended.
. "$(dirname "$0")/lib"
. "$HONE_SOURCE/tests/cli/lib-watch"

# ---- a signal for hone is one for the program
"$HONE" watch --out signal -- python3 "$PROGRAMS/loop.py" 100000 slow >out 2>err &
hone=$!
for _ in $(seq 100); do grep -q '^pid ' out && break; sleep 0.1; done
kill -TERM $hone
code=0; wait $hone || code=$?
ended_with 143
! kill -0 "$(sed -n 's/^pid //p' out)" 2>/dev/null || fail "the program runs on"

# ---- a program that Ctrl-C ended: hone is ended by it, too, or the loop of a shell script would go on
cat >interrupted.py <<'PY'
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.default_int_handler)        # which a shell's background ignores
hone = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
hone.stdout.readline()
hone.send_signal(signal.SIGINT)
hone.stdout.read()
print("by", -hone.wait())
PY
python3 interrupted.py "$HONE" watch --out signal -- python3 "$PROGRAMS/loop.py" 100000 slow >out 2>err
first "by 2"
said "hone: the program was ended by signal 2 (Interrupt)"

# ---- the program has ended, and hone reads what it recorded, here for ever: then a signal is for hone
"$HONE" watch --out long -- sh -c "python3 '$PROGRAMS/loop.py' 37; cd long/recording/rank0; rm shapes.json; mkfifo shapes.json; touch fifo" >out 2>err &
hone=$!
for _ in $(seq 200); do [ -e long/recording/rank0/fifo ] && break; sleep 0.1; done
sleep 0.5
kill -TERM $hone
for _ in $(seq 50); do kill -0 $hone 2>/dev/null || break; sleep 0.1; done
kill -KILL $hone 2>/dev/null || true
code=0; wait $hone || code=$?
ended_with 143

# ---- stopped and continued; the program is with it, also where nobody stops (a group that no shell looks after)
"$HONE" watch --out signal -- python3 "$PROGRAMS/loop.py" 100000 slow >out 2>err &
hone=$!
for _ in $(seq 100); do grep -q '^pid ' out && break; sleep 0.1; done
program=$(sed -n 's/^pid //p' out)
state() { sed 's/.*) //' "/proc/$1/stat" | cut -c1; }
is_state() { for _ in $(seq 100); do [ "$(state "$1")" = T ] && r=T || r=runs; [ $r = "$2" ] && return; sleep 0.1; done; fail "process $1 is not $2"; }
sleep 60 & plain=$!
kill -TSTP $hone $plain
sleep 0.3
[ "$(state $plain)" = T ] && stops=T || stops=runs
is_state $hone $stops; is_state "$program" $stops
{ kill -KILL $plain; wait $plain; } 2>/dev/null || true
kill -CONT $hone
is_state $hone runs; is_state "$program" runs
kill -TERM $hone
code=0; wait $hone || code=$?
ended_with 143
