# What import, export, tokenize and tokenizer train make is there as a whole or not at all: on a full disk, in a folder that cannot be written or is used, after a
# kill, and when they are stopped. The small file system is mounted in a mount namespace of its own, which ends with the script.
if [ -z "${HONE_TEST_NAMESPACE-}" ]; then
    export HONE_TEST_NAMESPACE=1
    for how in -m -rm; do
        unshare $how sh -c 'mount -t tmpfs -o size=300k tmpfs /mnt' 2>/dev/null && exec unshare $how bash "$0"
    done
    echo "skipped: mounting a tmpfs is not allowed here"
    exit 77
fi
. "$(dirname "$0")/lib"
FIXTURES=$(realpath "$HONE_SOURCE")/tests/fixtures
mkdir small
trap 'umount small 2>/dev/null; rm -rf "$WORK"' EXIT
mount -t tmpfs -o size=64k tmpfs small
cp -r "$FIXTURES/hf/gpt2" model
cp "$FIXTURES/bpe/text.txt" "$FIXTURES/bpe/gpt2.json" .
chmod -R u+w model
cp gpt2.json model/tokenizer.json
ok import model --out run
for i in $(seq 40); do cat text.txt; done >long.txt

# ---- a full disk: exit code 3, and nothing
made() {
    case $1 in
        import) echo import model --out "$2" ;;
        hf | torch) echo export run --to "$1" --out "$2" ;;
        tokenize) echo tokenize long.txt --tokenizer gpt2.json --shard 5000 --out "$2" ;;
        tokenizer) echo tokenizer train long.txt --vocab 2000 --out "$2" ;;
    esac
}
dd if=/dev/zero of=small/filler bs=1k count=44 status=none
for what in import hf torch tokenize tokenizer; do
    run $(made $what small/made)
    [ "$code" = 3 ] && grep -q '^hone: cannot .*: No space left on device$' err || fail "$what on a full disk: exit code $code: $(cat err)"
    [ "$(ls -A small)" = filler ] || fail "$what on a full disk left $(find small)"
done

# ---- a folder that holds something is left alone, an empty one may be filled; who ends without a result leaves it there
mkdir used
echo mine >used/thesis.tex
for what in import hf torch tokenize; do
    refused 2 "hone: 'used' holds 'thesis.tex' already; give an --out that is empty or not there yet" $(made $what used)
    [ "$(ls -A used)" = thesis.tex ] || fail "$what left $(find used)"
done
refused 2 "hone: 'used' is there already; give another --out" $(made tokenizer used)
mkdir waiting
refused 2 "hone: --between is '<s>', and the tokenizer has no such special token" $(made tokenize waiting) --between '<s>'
: >none.txt
refused 2 "hone: 'none.txt' is empty; it should hold text" tokenize none.txt --tokenizer gpt2.json --out waiting
[ -d waiting ] && [ -z "$(ls -A waiting)" ] || fail "an empty folder is not as it was: $(find waiting)"
ln -s waiting link
ok $(made hf link)
[ "$(ls -A waiting | xargs)" = "config.json model.safetensors tokenizer.json tokenizer_config.json" ] || fail "export through a link: $(find waiting)"

# ---- what a killed one left is swept; another one that is at work is not disturbed
mkdir -p left/.hone-new
echo half >left/.hone-new/tokens-000000.bin
: >left/.lock
(flock 9; run $(made tokenize left); echo "$code" >code; cp err locked) 9<>left/.lock
[ "$(cat code)" = 2 ] && grep -qx "hone: another hone is writing into 'left'; give another --out" locked || fail "a folder in use: $(cat locked)"
[ "$(cat left/.hone-new/*)" = half ] || fail "another one's work is gone"
ok $(made tokenize left)
case $(ls -A left) in *.hone-new* | *.lock*) fail "left: $(ls -A left)" ;; esac

# ---- stopped: the text so far, in whole shards, which is said, and who waits for all of it gets to know (exit code 130); a tokenizer that is stopped is not written
for i in $(seq 60); do cat long.txt; done >longer.txt
for signal in INT TERM HUP; do
    "$HONE" tokenize longer.txt longer.txt longer.txt longer.txt --tokenizer gpt2.json --threads 1 --out stopped-$signal --json >out 2>err </dev/null &
    pid=$!
    while [ ! -e stopped-$signal/.hone-new ] && kill -0 $pid 2>/dev/null; do sleep 0.01; done
    kill -$signal $pid
    code=0
    wait $pid || code=$?
    [ "$code" = 130 ] || fail "SIG$signal: exit code $code: $(cat err)"
    json out 'j["interrupted"] and j["files"] < 4'
    case $(ls -A stopped-$signal) in *.hone-new* | *.lock*) fail "SIG$signal: $(ls -A stopped-$signal)" ;; esac
    [ -e stopped-$signal/tokenizer.json ] || fail "SIG$signal: no tokenizer: $(ls -A stopped-$signal)"
done

# ---- a pipe is not waited for
mkfifo pipe
refused 2 "hone: 'pipe' is not a regular file" import pipe --out x
mkdir piped
cp model/config.json piped
mkfifo piped/part.safetensors
echo '{"weight_map": {"wte.weight": "part.safetensors"}}' >piped/model.safetensors.index.json
refused 2 "hone: 'piped/part.safetensors' is not a regular file" import piped --out x
[ ! -e x ] || fail "what was refused left something"
