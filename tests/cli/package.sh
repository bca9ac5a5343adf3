# The package and the folder that runs wherever it lies: both are made from what was built, unpacked, and train.
. "$(dirname "$0")/lib"
build=$(dirname "$HONE")
[ -e "$build/CPackConfig.cmake" ] || skip "there is no package to make beside $HONE"
command -v dpkg-shlibdeps >/dev/null && command -v file >/dev/null || skip "what makes Debian packages is not there"

try() {         # a root with usr/bin, or bin
    "$1/bin/hone" --version >version
    grep -qxF "$("$HONE" --version)" version || fail "$1: $(cat version) is not the version of the program"
    "$1/bin/hone" train quickstart --steps 3 --out "run-$2" --set data.chars=50000 >out 2>&1 || { cat out >&2; fail "$2: quickstart does not train"; }
    for page in hone hone-train hone-analyze hone-watch; do
        gzip -dc "$1/share/man/man1/$page.1.gz" | grep -q '^\.SH NAME' || fail "$2: no manual page $page"
    done
    for file in "$1"/bin/hone "$1"/lib/hone/*.so; do
        [ ! -e "$file" ] || ! command -v readelf >/dev/null || runpath "$file"
    done
    bash -n "$1/share/bash-completion/completions/hone" || fail "$2: completion of bash"
    [ -e "$1/share/hone/hook/sitecustomize.py" ] || fail "$2: the hook of hone watch is missing"
}

cpack --config "$build/CPackConfig.cmake" -G DEB -B "$PWD/packed" >log 2>&1 || { cat log >&2; fail "no Debian package"; }
dpkg-deb -I packed/hone_*.deb control >control
grep -q '^Package: hone$' control && grep -q "^Version: $("$HONE" --version | cut -d' ' -f2)" control || fail "control: $(cat control)"
grep -q '^Depends:.*libyaml' control || fail "its libraries are not named: $(grep Depends control)"
! grep -q '^Depends:.*openmpi' control || fail "the program needs MPI: $(grep Depends control)"
dpkg-deb -x packed/hone_*.deb deb
try deb/usr deb
if [ -e "$build/libhone_mpi.so" ]; then
    [ ! -e deb/usr/lib/hone/libhone_mpi.so ] || fail "the module for ranks is in the program's package"
    dpkg-deb -I packed/hone-mpi_*.deb control >control
    grep -q "^Depends: hone (= $("$HONE" --version | cut -d' ' -f2)),.* libopenmpi" control || fail "hone-mpi: $(cat control)"
    dpkg-deb -x packed/hone-mpi_*.deb deb
    [ -e deb/usr/lib/hone/libhone_mpi.so ] || fail "the module for ranks is nowhere"
fi
machine=$(dpkg-deb -I packed/hone_*.deb control | sed -n 's/^Architecture: //p')
[ "$machine" = "$(dpkg --print-architecture)" ] || fail "it is a package for $machine"
if [ -e "$build/libhone.so" ]; then
    version=$("$HONE" --version | cut -d' ' -f2)
    dpkg-deb -I packed/libhone0_*.deb shlibs | grep -qxF "libhone 0 libhone0 (>= $version)" || fail "libhone0 does not say what it provides"
    dpkg-deb -I packed/libhone-dev_*.deb control | grep -qxF "Depends: libhone0 (= $version)" || fail "libhone-dev is for any libhone"
    for package in libhone0 libhone-dev; do dpkg-deb -x packed/${package}_*.deb deb; done
    echo 'int main(void) { return !*hone_version(); }' >use.c
    cc -include hone.h use.c -Ideb/usr/include -Ldeb/usr/lib -lhone -o use && LD_LIBRARY_PATH=deb/usr/lib ./use || fail "what the packages hold does not link"
fi

cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$PWD/packed" >log 2>&1 || { cat log >&2; fail "no folder"; }
mkdir tgz
tar -C tgz --strip-components=1 -xzf packed/hone-*-Linux-"$(uname -m)".tar.gz
try tgz tgz
