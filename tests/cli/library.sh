# libhone where it is installed: what it shows, its header in C and C++, pkg-config and CMake, and the examples, which print what they are told and no more.
. "$(dirname "$0")/lib"
build=$(dirname "$HONE")
[ -e "$build/libhone.so" ] || skip "there is no library beside $HONE"
command -v cmake >/dev/null && command -v pkg-config >/dev/null && command -v cc >/dev/null || skip "what builds against a library is not there"

for component in hone libhone libhone-dev; do
    cmake --install "$build" --prefix "$WORK/root" --component $component >install.log 2>&1 || fail "cmake --install: $(cat install.log)"
done
version=$("$HONE" --version | cut -d' ' -f2)
export PKG_CONFIG_PATH=$WORK/root/share/pkgconfig LD_LIBRARY_PATH=$WORK/root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[ "$(pkg-config --modversion hone)" = "$version" ] || fail "pkg-config says version $(pkg-config --modversion hone)"

# Every function of the header, and nothing else.
sed -n 's/^HONE_API .*[ *]\(hone_[a-z_]*\)(.*/\1/p' root/include/hone.h | sort >declared
nm -D --defined-only root/lib/libhone.so | awk '$2 != "A" {print $3}' | sort >seen
[ -s declared ] || fail "no function was found in hone.h"
same "what libhone.so shows" seen declared
readelf -dW root/lib/libhone.so | grep -q 'SONAME.*\[libhone\.so\.0\]' || fail "its name is not libhone.so.0"

# The header alone, and strictly.
echo '#include <hone.h>' >header.c
cc -std=c99 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags hone) header.c || fail "hone.h is not C99"
! command -v c++ >/dev/null || c++ -std=c++11 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -x c++ $(pkg-config --cflags hone) header.c || fail "hone.h is not C++"

# The examples, by pkg-config.
for example in train analyze; do
    cc -Wall -Wextra -Werror "$HONE_SOURCE/examples/$example.c" $(pkg-config --cflags --libs hone) -o $example || fail "examples/$example.c does not build"
done
./train quickstart 10 >said 2>err || fail "train: $(cat err)"
[ ! -s err ] || fail "train wrote to stderr: $(cat err)"
sed -e 's/[0-9]\.[0-9][0-9]*/N/g' said >shape
cat >wanted <<EOF
hone $version
step 2: loss N, gradient norm N
step 4: loss N, gradient norm N
step 6: loss N, gradient norm N
step 8: loss N, gradient norm N
step 10: loss N, gradient norm N
after 10 steps: validation loss N, before N
profile: report.json as text
EOF
sed -i -e "s/^hone .*/hone $version/" shape
same "what examples/train.c prints" shape wanted
code=0
./train nosuch 2>said >out || code=$?
grep -q "^config: there is no config 'nosuch'" said && [ $code = 2 ] || fail "train nosuch: $code $(cat said)"

./analyze "$HONE_SOURCE/tests/fuzz/seeds/diagnose/step.json" >said 2>err || fail "analyze: $(cat err)"
"$HONE" analyze "$HONE_SOURCE/tests/fuzz/seeds/diagnose/step.json" 2>/dev/null | sed '/^`--out DIR`/d' >wanted
grep -v '^findings of high' said >shape
same "what examples/analyze.c prints" shape wanted
[ ! -s err ] || fail "analyze wrote to stderr: $(cat err)"

# And by CMake.
cmake -S "$HONE_SOURCE/examples" -B examples -DCMAKE_PREFIX_PATH="$WORK/root" >log 2>&1 && cmake --build examples >>log 2>&1 || { cat log >&2; fail "find_package(hone)"; }
./examples/analyze "$HONE_SOURCE/tests/fuzz/seeds/diagnose/step.json" >by-cmake
same "the example that CMake built" by-cmake said
