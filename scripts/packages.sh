# Sourced by ./quickstart and ./check: installs the Debian packages that are missing.

build_packages() {
    echo gcc libc6-dev cmake ninja-build pkg-config libyaml-dev libjansson-dev libxxhash-dev libisal-dev libhwloc-dev libprotobuf-c-dev protobuf-c-compiler node-d3
}

test_packages() {
    echo libcmocka-dev python3 chromium clang-tidy libopenmpi-dev openmpi-bin dpkg-dev file
    case $(dpkg --print-architecture) in        # a BLAS, which hone can do without
        arm64) echo libblis4-serial ;;
        amd64) echo libopenblas0-pthread ;;
    esac
    [ "$(sanitizers_compiler)" = gcc ] || echo clang-16 libclang-rt-16-dev
}

# gcc 12's search for leaks takes 4 s of every process on ARM, clang 16's 0.01. On x86-64 both are quick, and clang takes minutes for a file of kernels.
sanitizers_compiler() {
    [ "$(dpkg --print-architecture)" = arm64 ] && echo clang-16 || echo gcc
}

install_packages() {
    missing=""
    for p in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
    done
    [ -n "$missing" ] || return 0
    sudo=""
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null ||
            { echo "these packages are missing, and there is no sudo to install them (docs/start.md says what else can be done):$missing" >&2; exit 3; }
        sudo=sudo
    fi
    echo "installing Debian packages:$missing"
    $sudo apt-get update -qq
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >packages.log 2>&1 ||
        { cat packages.log; exit 3; }
    rm -f packages.log
}
