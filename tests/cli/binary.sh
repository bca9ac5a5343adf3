# The program as a file: libraries come from the system's folders and never from where it is started; what the linker and the
# compiler can do against misuse is done. The same for an installed one.
. "$(dirname "$0")/lib"
command -v readelf >/dev/null || skip "no readelf"

# apart PROGRAM: files here that are named like its libraries are not loaded.
apart() {
    local library
    mkdir -p beside
    for library in $(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
        echo "not a library" >"beside/$library"
    done
    [ -n "$(ls beside)" ] || fail "$1 needs no libraries?"
    (cd beside && "$1" --version) >out 2>err || fail "$1 takes libraries from the current folder: $(cat err)"
}

runpath "$HONE"
apart "$HONE"

build=$(dirname "$HONE")
# Where libraries are in folders of their own this is what keeps these, and the room that CMake leaves for others, out of the program.
[ ! -f "$build/CMakeCache.txt" ] || grep -qE '^CMAKE_SKIP_RPATH:BOOL=(ON|OFF)$' "$build/CMakeCache.txt" ||
    fail "$(grep '^CMAKE_SKIP_RPATH' "$build/CMakeCache.txt"): the project's own value was not taken"
if command -v cmake >/dev/null && [ -f "$build/cmake_install.cmake" ]; then
    cmake --install "$build" --prefix "$WORK/installed" >install.log 2>&1 || fail "cmake --install: $(cat install.log)"
    installed=$(find "$WORK/installed" -type f -path '*/bin/hone')
    runpath "$installed"
    apart "$installed"
    tiny
    "$installed" train tiny.yaml --steps 2 --set train.warmup=1 --out run >out 2>err || fail "installed: $(cat err)"
    "$installed" train quickstart --print-program >out 2>err || fail "installed, a config by name: $(cat err)"
fi

readelf -sW "$HONE" >symbols
! grep -q '__[atu][bs]*san_' symbols || skip "a build with sanitizers has checks of its own"
readelf -dW "$HONE" >dynamic
readelf -lW "$HONE" >segments
readelf -hW "$HONE" | grep -q 'Type: *DYN' || fail "not position-independent"
grep -q '(FLAGS_1).*PIE' dynamic || fail "not position-independent"
grep -q GNU_RELRO segments && grep -q '(FLAGS_1).*NOW' dynamic || fail "tables of functions stay writable: no full RELRO"
grep -q 'GNU_STACK.* RW ' segments || fail "the stack is executable"
grep -q __stack_chk_fail symbols || fail "no stack protector"
grep -q '__[a-z]*printf_chk' symbols && grep -q '__mem[a-z]*_chk' symbols || fail "no _FORTIFY_SOURCE"
