# Shared by the run scripts (sourced by bash): finds or installs what the build needs, configures and builds a preset.
#
#   bootstrap_need [<need>...]                          what must be there beside `needs`; see `found` for the names
#   bootstrap_configure <preset> [<option of cmake>...] makes build/<preset>; where it is there, only sets the options
#   bootstrap_build <preset> <target>...                into build/<preset>, configured if need be
#
# Needs and packages are words without spaces, and lists of them are strings that the shell may split.
# Environment: CXX chooses the compiler, PARSEARCH_JOBS the number of parallel jobs.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# One build tree serves the tests and the examples, so both need the same.
needs="compiler cmake ninja boost range-v3 doctest json onnx cli11 fmt python3"

say() { printf '%s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# version_at_least <version> <minimum>
version_at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# The family and major version of a compiler: "g++ 12", "clang 16", "apple 15"; nothing if it does not run.
compiler_version() {
    printf '#if defined __apple_build_version__\napple __clang_major__\n#elif defined __clang__\nclang __clang_major__\n#else\ng++ __GNUC__\n#endif\n' |
        "$1" -x c++ -E -P - 2>/dev/null | tail -n 1
}

# Sets `compiler` to a command that compiles C++20: $CXX or the first that is new enough.
find_compiler() {
    local candidate family major candidates=(g++ g++-{12..15} clang++ clang++-{16..20})
    if [[ -n ${CXX:-} ]]; then candidates=("$CXX"); fi
    compiler=
    for candidate in "${candidates[@]}"; do
        read -r family major <<<"$(compiler_version "$candidate")" || continue
        case $family in
        g++) ((major >= 12)) || continue ;;
        clang) ((major >= 16)) || continue ;;
        *) continue ;;
        esac
        compiler=$candidate
        return 0
    done
    return 1
}

# preprocesses <line>...: whether the compiler finds every header of this small source
preprocesses() {
    local includes=() dir
    for dir in ${CMAKE_PREFIX_PATH:+${CMAKE_PREFIX_PATH//[:;]/ }} /opt/homebrew /usr/local; do
        includes+=("-I$dir/include")
    done
    printf '%s\n' "$@" | "${compiler:-c++}" "${includes[@]}" -x c++ -std=c++20 -E - >/dev/null 2>&1
}

# Whether a need is met.
found() {
    case $1 in
    compiler) find_compiler ;;
    cmake) have cmake && version_at_least "$(cmake --version | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')" 3.22 ;;
    ninja) have ninja || have ninja-build ;;
    boost) preprocesses '#include <boost/version.hpp>' '#if BOOST_VERSION < 107400' '#error too old' '#endif' ;;
    range-v3) preprocesses '#include <range/v3/version.hpp>' ;;
    doctest) preprocesses '#include <doctest/doctest.h>' ;;
    json) preprocesses '#include <nlohmann/json.hpp>' ;;
    onnx) preprocesses '#define ONNX_ML 1' '#define ONNX_NAMESPACE onnx' '#include <onnx/onnx_pb.h>' ;;
    cli11) preprocesses '#include <CLI/CLI.hpp>' ;;
    fmt) preprocesses '#include <fmt/format.h>' ;;
    python3) have python3 ;;
    python3-venv) have python3 && python3 -c 'import ensurepip' 2>/dev/null ;;
    ccache) have ccache ;;
    pkg-config) have pkg-config ;;
    simgrid) preprocesses '#include <simgrid/s4u.hpp>' ;;
    z3) preprocesses '#include <z3++.h>' ;;
    onednn) preprocesses '#include <oneapi/dnnl/dnnl_version.h>' '#if DNNL_VERSION_MAJOR != 2' '#error another' '#endif' ;;
    mpi) have mpirun && have mpicxx ;;
    boost-mpi) found mpi && [[ -n $(ldconfig -p 2>/dev/null | grep libboost_mpi.so) || -e /opt/homebrew/lib/libboost_mpi-mt.dylib ]] ;;
    flatbuffers) have flatc && preprocesses '#include <flatbuffers/flatbuffers.h>' ;;
    chromium) have chromium || have chromium-browser || have google-chrome ;;
    clang-format-16) have clang-format-16 ;;
    # with its runtime, which the sanitizers and the fuzzer need
    clang-16) have clang++-16 && [[ -d $(clang++-16 -print-runtime-dir) ]] ;;
    esac
}

# The package of a need, by package manager.
package() {
    case $1:$2 in
    apt-get:compiler) echo g++ ;;
    apt-get:cmake) echo cmake ;;
    apt-get:ninja) echo ninja-build ;;
    apt-get:boost) echo libboost-dev ;;
    apt-get:range-v3) echo librange-v3-dev ;;
    apt-get:doctest) echo doctest-dev ;;
    apt-get:json) echo nlohmann-json3-dev ;;
    apt-get:onnx) echo libonnx-dev libprotobuf-dev ;;
    apt-get:cli11) echo libcli11-dev ;;
    apt-get:fmt) echo libfmt-dev ;;
    apt-get:simgrid) echo libsimgrid-dev ;;
    apt-get:z3) echo libz3-dev ;;
    dnf:z3 | zypper:z3) echo z3-devel ;;
    apt-get:onednn) echo libdnnl-dev ;;
    apt-get:mpi) echo libopenmpi-dev openmpi-bin ;;
    apt-get:boost-mpi) echo libboost-mpi-dev openmpi-bin ;;
    dnf:boost-mpi) echo boost-openmpi-devel ;;
    zypper:boost-mpi) echo libboost_mpi-devel ;;
    pacman:boost-mpi) echo boost openmpi ;;
    brew:boost-mpi) echo boost-mpi ;;
    dnf:onednn | zypper:onednn) echo onednn-devel ;;
    dnf:mpi | zypper:mpi) echo openmpi-devel ;;
    pacman:mpi) echo openmpi ;;
    brew:mpi) echo open-mpi ;;
    apt-get:flatbuffers) echo libflatbuffers-dev flatbuffers-compiler ;;
    dnf:flatbuffers) echo flatbuffers-devel flatbuffers-compiler ;;
    zypper:flatbuffers) echo flatbuffers-devel ;;
    apt-get:clang-16) echo clang-16 libclang-rt-16-dev ;;
    dnf:pkg-config) echo pkgconf-pkg-config ;;
    pacman:pkg-config | brew:pkg-config) echo pkgconf ;;
    dnf:compiler | zypper:compiler) echo gcc-c++ ;;
    dnf:ninja) echo ninja-build ;;
    dnf:boost) echo boost-devel ;;
    zypper:boost) echo libboost_headers-devel ;;
    dnf:range-v3 | zypper:range-v3) echo range-v3-devel ;;
    dnf:doctest | zypper:doctest) echo doctest-devel ;;
    dnf:json) echo json-devel ;;
    zypper:json) echo nlohmann_json-devel ;;
    pacman:json | brew:json) echo nlohmann-json ;;
    dnf:onnx | zypper:onnx) echo onnx-devel protobuf-devel ;;
    brew:onnx) echo onnx protobuf ;;
    dnf:cli11 | zypper:cli11) echo cli11-devel ;;
    dnf:fmt | zypper:fmt) echo fmt-devel ;;
    pacman:compiler | brew:compiler) echo gcc ;;
    pacman:python3 | pacman:python3-venv) echo python ;;
    dnf:python3-venv | zypper:python3-venv | brew:python3-venv) echo python3 ;;
    dnf:clang-16 | zypper:clang-16 | pacman:clang-16) echo clang compiler-rt ;;
    brew:clang-16) echo llvm@16 ;;
    *) echo "$2" ;;
    esac
}

# packages <manager> <need>...
packages() {
    local manager=$1 need
    shift
    for need in "$@"; do printf ' %s' "$(package "$manager" "$need")"; done
}

missing() {
    local need
    for need in "$@"; do found "$need" || printf '%s ' "$need"; done
}

as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        die "installing packages needs root or sudo: $*"
    fi
}

can_install() { have apt-get && { [[ $(id -u) == 0 ]] || have sudo; }; }

apt_install() {
    say "installing: $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

bootstrap_need() {
    local lacking
    find_compiler || true
    lacking=$(missing $needs "$@")
    [[ -n $lacking ]] || return 0

    if [[ -f /etc/debian_version ]] && have apt-get; then
        as_root apt-get update -q
        apt_install $(packages apt-get $lacking)
        # Where the default compiler is too old, a newer one may stand beside it.
        find_compiler || [[ -n ${CXX:-} ]] || apt_install g++-12
        lacking=$(missing $needs "$@")
        [[ -z $lacking ]] || die "still missing or too old after the installation: $lacking(needed: g++ >= 12 or clang >= 16, cmake >= 3.22, Boost >= 1.74)"
        find_compiler || true
        return 0
    fi

    {
        say "error: missing or too old: $lacking"
        say "(needed: g++ >= 12 or clang >= 16, cmake >= 3.22, Boost >= 1.74)"
        say "Install, with the package manager of this system:"
        say "  dnf install$(packages dnf $lacking)"
        say "  pacman -S$(packages pacman $lacking)"
        say "  zypper install$(packages zypper $lacking)"
        say "  brew install$(packages brew $lacking)"
        say "and run this again. CXX=<command> chooses the compiler, CMAKE_PREFIX_PATH says where libraries are."
    } >&2
    exit 1
}

# One job per core, but not more than one for each 3 GB of free memory: what the tests of a folder take together.
bootstrap_jobs() {
    local cores memory_kb=0 jobs
    cores=$(nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 1)
    if [[ -r /proc/meminfo ]]; then
        memory_kb=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
    fi
    jobs=$cores
    if ((memory_kb > 0 && memory_kb / 3000000 < jobs)); then jobs=$((memory_kb / 3000000)); fi
    if ((jobs < 1)); then jobs=1; fi
    echo "${PARSEARCH_JOBS:-$jobs}"
}

# What was compiled once, in any checkout, is not compiled again where ccache is there.
use_ccache() {
    have ccache || return 0
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache} CMAKE_CUDA_COMPILER_LAUNCHER=${CMAKE_CUDA_COMPILER_LAUNCHER-ccache}
    export CCACHE_BASEDIR=${CCACHE_BASEDIR-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR-1}
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros}
}

bootstrap_configure() {
    local preset=$1 options=() data=${PARSEARCH_EXTERNAL_DATA:-}
    shift
    use_ccache
    # CMake reads the environment once; the data may come later, or lie elsewhere.
    if [[ -n $data ]] && ! grep -qsFx "PARSEARCH_EXTERNAL_DATA:PATH=$data" "$root/build/$preset/CMakeCache.txt"; then
        set -- "$@" -D PARSEARCH_EXTERNAL_DATA="$data"
    fi
    if [[ ! -f $root/build/$preset/build.ninja ]]; then
        # Compilers that nobody has tried yet may warn about new things: that must not stop a user.
        case $(compiler_version "$compiler") in
        "g++ 12" | "clang 16") ;;
        *) options=(-D PARSEARCH_WERROR=OFF) ;;
        esac
        (cd "$root" && CXX=$compiler cmake --preset "$preset" ${options[@]+"${options[@]}"} "$@")
    elif (($# > 0)); then
        cmake "$root/build/$preset" "$@"
    fi
}

bootstrap_build() {
    local preset=$1
    shift
    bootstrap_configure "$preset" || return
    cmake --build "$root/build/$preset" --parallel "$(bootstrap_jobs)" --target "$@"
}
