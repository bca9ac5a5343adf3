# hone watch: what becomes of what an earlier watch left in the folder.
. "$(dirname "$0")/lib"
. "$HONE_SOURCE/tests/cli/lib-watch"

# ---- a command that was mistyped leaves the recording before as it was, and so does a killed hone
OUT=kept
watch -- python3 "$PROGRAMS/loop.py" 60
ended_with 0
sums kept | grep -v lock >before
for command in "pyhton loop.py" "python3 trian.py"; do
    watch -- $command
    ended_with 2
    sums kept | grep -v lock >after
    same "the folder after '$command'" after before
done
watch -- sh -c 'kill -KILL $PPID'
ended_with 137
watch -- python3 trian.py
sums kept | grep -v lock >after
same "the folder after a killed hone" after before

mkdir kept/recording/.moving && mv kept/recording/rank0 kept/recording/.moving       # as one leaves it that was killed while it moved
watch -- python3 trian.py
sums kept | grep -v lock >after
same "the folder after a hone that was killed while it moved" after before
for name in rank0.left-notes rankings rank1.left- rank.left-7; do echo mine >kept/recording/$name; done
watch -- python3 "$PROGRAMS/loop.py" 60
for name in rank0.left-notes rankings rank1.left- rank.left-7; do
    [ "$(cat kept/recording/$name)" = mine ] || fail "$name is gone"
    rm kept/recording/$name
done

# ---- where there was nothing before, nothing is left of a program that took no step, but what is somebody's own
OUT=nothing
watch -- python3 trian.py
[ ! -e nothing ] || fail "left: $(find nothing)"
mkdir nothing
watch -- pyhton loop.py
[ -z "$(ls -A nothing)" ] || fail "left: $(find nothing)"
watch -- sh -c "for name in notes patch.md; do echo mine >nothing/recording/\$name; done"
[ "$(cat nothing/recording/notes nothing/recording/patch.md)" = "$(printf 'mine\nmine')" ] || fail "a file of the program's own is gone: $(find nothing)"
rm nothing/recording/patch.md
watch -- python3 "$PROGRAMS/loop.py" 60
ended_with 0
[ "$(cat nothing/recording/notes)" = mine ] || fail "a file of the program's own is gone: $(find nothing)"
rm -r nothing
mkdir deep
OUT=deep/er/est
watch -- python3 trian.py
[ -d deep ] && [ -z "$(ls -A deep)" ] || fail "left: $(find deep)"
rmdir deep

# ---- what outlives the command makes no folder anew that hone has taken away
OUT=gone
watch -- sh -c "(sleep 1; exec python3 '$PROGRAMS/loop.py' 60 >late 2>&1) >/dev/null 2>&1 & exit 3"
for try in $(seq 100); do [ -s late ] && break; sleep 0.1; done
sleep 0.5
[ -s late ] && [ ! -e gone ] || fail "what came late: $(cat late; find gone)"
rm late
OUT=kept

# ---- a program that ended in the middle of a trial: what was measured by then is said
OUT=cut
cat >watch.json <<JSON
{"format": 1, "rank": 0, "world_size": 1, "ranks_here": 1, "steps": 900, "ended": true, "finished": false, "recorded": [], "notes": [], "trial":
 {"status": "ended early", "why": "the program ended", "restored": true, "settings_file": "cut/recording/hone_settings.py", "switches": [
  {"name": "fused-optimizer", "rule": "unfused-optimizer", "state": "kept", "why": null, "speedup": 1.5, "low": 1.4, "high": 1.6, "lines": ["opt = AdamW(fused=True)"]},
  {"name": "compile", "rule": "host-bound", "state": "cut short", "why": "the program ended"}]}}
JSON
watch --try -- sh -c "mkdir cut/recording/rank0 && cp watch.json cut/recording/rank0"
ended_with 2
said "in the middle of the trial"
grep -q '^  fused-optimizer  *kept .* 1\.50× (1\.40× to 1\.60×)' err || fail "what was kept: $(cat err)"
grep -q '^  compile  *cut short ' err || fail "what was cut short: $(cat err)"
grep -q '^  together  *not tried, as the trial was cut short$' err && grep -q '^ *opt = AdamW(fused=True)$' err || fail "the lines: $(cat err)"
rm -r cut watch.json
OUT=kept

# ---- settings of a trial before go with it; those that somebody changed are theirs
SETTINGS=kept/recording/hone_settings.py
watch -- sh -c "python3 '$PROGRAMS/loop.py' 60; echo one >$SETTINGS"            # as a trial does
ended_with 0
watch -- python3 "$PROGRAMS/loop.py" 60
ended_with 0
[ ! -e $SETTINGS ] || fail "settings of another watch: $(cat $SETTINGS)"
watch -- sh -c "python3 '$PROGRAMS/loop.py' 60; echo one >$SETTINGS"
echo mine >$SETTINGS
refused 2 "hone: 'kept/recording/hone_settings.py' was changed since hone watch wrote it, and a new trial would replace it; move it away, or give another --out" watch --out kept -- python3 "$PROGRAMS/loop.py" 60
[ "$(cat $SETTINGS)" = mine ] || fail "it was changed"
echo mine >kept/recording/patch.md && rm $SETTINGS
refused 2 "hone: 'kept/recording/patch.md' is there, and hone watch has no note that it wrote it: it is somebody's own, or of a watch that was killed, and a new trial would replace it; move it away, or give another --out" watch --out kept -- python3 "$PROGRAMS/loop.py" 60
[ "$(cat kept/recording/patch.md)" = mine ] || fail "it was changed"
rm kept/recording/patch.md

# ---- the program has written settings of its own, and no rank took a step: neither they nor those of the trial before are lost
watch -- sh -c "python3 '$PROGRAMS/loop.py' 60; echo one >$SETTINGS"
watch -- sh -c "echo mine >$SETTINGS"
[ "$(cat $SETTINGS)" = mine ] || fail "settings of the program's own: $(cat $SETTINGS)"
watch -- python3 "$PROGRAMS/loop.py" 60
ended_with 2
said "of an earlier watch belongs where a program put a file of its own"
mv $SETTINGS own.py
watch -- python3 trian.py
[ "$(cat $SETTINGS)" = one ] || fail "settings of the trial before: $(find kept)"
rm -r kept own.py before after wanted said
