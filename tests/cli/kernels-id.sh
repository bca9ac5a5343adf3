# The name of kernels (cmake/KernelsId.cmake): another one when a source or a flag is another one, the same otherwise and anywhere; and no work for a
# build in which nothing changed.
. "$(dirname "$0")/lib"
command -v cmake >/dev/null && command -v ninja >/dev/null || skip "there is no cmake or no ninja"

mkdir one
cat >one/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(small C)
include($HONE_SOURCE/cmake/KernelsId.cmake)
add_executable(small main.c kernel.c)
target_include_directories(small PRIVATE .)
kernels_flags(flags C \${OPTIONS})
kernels_id(small small_id id.h "\${flags}" \${PROJECT_SOURCE_DIR}/kernel.c \${PROJECT_SOURCE_DIR}/kernel.h)
CMAKE
echo 'extern const char small_id[];' >one/id.h
echo 'int kernel(void);' >one/kernel.h
printf '#include "kernel.h"\nint kernel(void) { return 0; }\n' >one/kernel.c
printf '#include <stdio.h>\n#include "id.h"\n#include "kernel.h"\nint main(void) { puts(small_id); return kernel(); }\n' >one/main.c
cp -r one two

# name FOLDER: builds and prints the name; what was done is in FOLDER.log.
name() {
    cmake --build "$1/build" -v >"$1.log" 2>&1 || fail "it does not build: $(cat "$1.log")"
    "$1/build/small"
}
configure() { cmake -S "$1" -B "$1/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "${@:2}" >"$1.log" 2>&1 || fail "cmake: $(cat "$1.log")"; }

configure one
configure two
first=$(name one)
echo "$first" | grep -qx '[0-9a-f]\{16\}' || fail "the name is '$first'"
[ "$(name two)" = "$first" ] || fail "the same sources have another name in another folder"
name one >/dev/null
grep -q 'no work to do' one.log || fail "nothing changed, and it built: $(cat one.log)"

touch one/kernel.c
[ "$(name one)" = "$first" ] || fail "another name, though kernel.c was only touched"
! grep -q -e '-c .*small_id' one.log || fail "the name was compiled again, though it is the same: $(cat one.log)"
name one >/dev/null
grep -q 'no work to do' one.log || fail "the name is made again and again: $(cat one.log)"
echo '/* nothing */' >>one/main.c
[ "$(name one)" = "$first" ] || fail "another name, though no kernel changed"

printf '#include "kernel.h"\nint kernel(void) { return 1 - 1; }\n' >one/kernel.c
[ "$(name one)" != "$first" ] || fail "another kernel, the same name"
cp two/kernel.c one/kernel.c
[ "$(name one)" = "$first" ] || fail "the first kernel again, another name"
echo 'int other(void);' >>one/kernel.h
[ "$(name one)" != "$first" ] || fail "another header, the same name"
cp two/kernel.h one/kernel.h
configure one -DOPTIONS=-ffast-math
[ "$(name one)" != "$first" ] || fail "another option, the same name"
configure one -DOPTIONS= -DCMAKE_C_FLAGS=-O1
[ "$(name one)" != "$first" ] || fail "other flags, the same name"

# The program's own: in the keys of what was chosen by timing (and in that of a number of threads: threads.sh).
tiny
ok train tiny.yaml --steps 2 --out run
grep -q ', kernels [0-9a-f]\{16\}, [0-9]* threads: matmul ' cache/hone/choices.json || fail "kernels: $(cat cache/hone/choices.json)"
