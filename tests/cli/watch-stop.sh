# hone watch --stop with programs that do not end when they are told to. They wait for as long as hone has patience, so all are watched at once.
. "$(dirname "$0")/lib"

PROGRAMS=$(realpath "$HONE_SOURCE")/tests/watch/programs
export PYTHONPATH=$(realpath "$HONE_SOURCE")/tests/watch/fake_torch PYTHONDONTWRITEBYTECODE=1

# stop NAME COMMAND...: what hone says is then in NAME.err, its exit code in NAME.code
stop() {
    local name=$1
    shift
    { "$HONE" watch --stop --out "$name" -- "$@" >"$name.out" 2>"$name.err" </dev/null && echo 0 || echo $?; } >"$name.code" &
}
said() { grep -qF -- "$2" "$1.err" || fail "$1: not said: $2 in: $(cat "$1.err")"; }
# ended NAME: well, with a report
ended() {
    [ "$(cat "$1.code")" = 0 ] || fail "$1: exit code $(cat "$1.code"): $(cat "$1.err")"
    json "$1/report.json" 'j["watched"]["ranks"][0]["stopped"]'
}

stop linger python3 "$PROGRAMS/loop.py" 100000 linger
stop thread python3 "$PROGRAMS/loop.py" 100000 thread
stop swallow python3 "$PROGRAMS/loop.py" 100000 swallow
stop catch python3 "$PROGRAMS/loop.py" 100000 catch
stop shell sh -c "python3 '$PROGRAMS/loop.py' 100000 slow deaf swallow; exit 0"
wait

ended linger
said linger "hone: the program has not ended 10 s after it was to, and is ended"
ended thread
said thread "hone: report: thread/report.html"          # it is there before that
said thread "hone: the program has not ended 30 s after it was to, and is ended"
ended swallow
said swallow "hone: the program has not ended 30 s after it was to, and is ended"
[ "$(grep -c skipped swallow.out)" = 1 ] || fail "it was told more than once: $(cat swallow.out)"
ended catch
said catch "hone: the program was told to end, and did so with exit code 3"
grep -q '^crashed: SystemExit' catch.out || fail "it caught nothing: $(head -3 catch.out)"
ended shell
program=$(sed -n 's/^pid //p' shell.out)
case $(sed 's/.*) //' "/proc/$program/stat" 2>/dev/null) in '' | Z*) ;; *) fail "the shell was ended, and its program trains on: $(cat "/proc/$program/stat")" ;; esac
