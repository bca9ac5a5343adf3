# An output folder that fills up: a warning in mid-run, exit code 3 at the end, and the earlier checkpoint is whole.
# The small file system is mounted in a mount namespace of its own, which ends with the script.
if [ -z "${HONE_TEST_NAMESPACE-}" ]; then
    export HONE_TEST_NAMESPACE=1
    for how in -m -rm; do
        unshare $how sh -c 'mount -t tmpfs -o size=300k tmpfs /mnt' 2>/dev/null && exec unshare $how bash "$0"
    done
    echo "skipped: mounting a tmpfs is not allowed here"
    exit 77
fi
. "$(dirname "$0")/lib"
tiny
mkdir small
trap 'umount small 2>/dev/null; rm -rf "$WORK"' EXIT
mount -t tmpfs -o size=300k tmpfs small

# A checkpoint is 180 kB: the first fits, the second does not.
run train tiny.yaml --steps 40 --out small/run
[ "$code" = 3 ] || fail "exit code $code, expected 3: $(cat err)"
grep -q "^warning: cannot write 'small/run/checkpoints/.tmp-step-00000020-[0-9]*/.*safetensors' after [0-9]* bytes: No space left on device$" err ||
    fail "no warning: $(cat err)"
grep -q "^hone: cannot write 'small/run/checkpoints/.tmp-step-00000040-[0-9]*/.*safetensors' after [0-9]* bytes: No space left on device$" err ||
    fail "no error: $(cat err)"
[ "$(ls -A small/run/checkpoints)" = step-00000010 ] || fail "checkpoints: $(ls -A small/run/checkpoints)"
ok generate small/run --tokens 5
ok train tiny.yaml --steps 40 --out whole --set checkpoint.keep=10
same_checkpoint whole small/run 10

# Resuming where nothing fits loses nothing either.
dd if=/dev/zero of=small/filler bs=1k count=1000 status=none 2>dd.err || true
cp small/run/config.yaml kept.yaml
run train tiny.yaml --steps 40 --out small/run --resume
[ "$code" = 3 ] || fail "resume: exit code $code, expected 3: $(cat err)"
same "config.yaml" small/run/config.yaml kept.yaml
ok generate small/run --tokens 5

# A first checkpoint that does not fit leaves no folder of checkpoints behind, as if there were one to go on from.
rm small/filler
run train tiny.yaml --set model.dim=64 --steps 10 --out small/first
[ "$code" = 3 ] && grep -q 'No space left on device$' err || fail "a first checkpoint: $code $(cat err)"
[ ! -e small/first/checkpoints ] || fail "left: $(find small/first)"
refused 2 "hone: 'small/first' already holds a run that has saved nothing yet; give another --out" train tiny.yaml --set model.dim=64 --steps 10 --out small/first
rm -r small/first
dd if=/dev/zero of=small/filler bs=1k count=1000 status=none 2>dd.err || true

# A new run has no room at all.
run train tiny.yaml --out small/new
[ "$code" = 3 ] && grep -q 'No space left on device$' err || fail "a new run: $code $(cat err)"

# With room again, it goes on to the end and equals a run that never ran into it.
rm small/filler
mount -o remount,size=2M small
ok train tiny.yaml --steps 40 --out small/run --resume
same_checkpoint whole small/run 40
lines small/run/metrics.jsonl '[l["step"] for l in j if "loss" in l] == list(range(5, 41, 5))'

# Full for a while in the midst of a run: one warning, and every line that is there is whole.
mount -o remount,size=8M small
start train tiny.yaml --set threads=1 --steps 100000 --set log.every=1 --set eval.every=0 --set checkpoint.every=0 --out small/logs
until_step 5
dd if=/dev/zero of=small/filler bs=1k count=10000 status=none 2>dd.err || true
until_step 1500
rm small/filler
until_step 3000
kill -INT $pid
finish
[ "$code" = 3 ] && [ "$(grep -c "^warning: cannot write 'small/logs/metrics.jsonl': No space left on device$" err)" = 1 ] || fail "logs: $code $(cat err)"
grep -q "^hone: cannot write 'small/logs/metrics.jsonl': No space left on device$" err || fail "logs: $(cat err)"
lines small/logs/metrics.jsonl '5 < len(j) and 1 in [l["step"] for l in j] and 3000 in [l["step"] for l in j] and 1500 not in [l["step"] for l in j]'
