# The tuned CPU kernels are plain C that the compiler vectorises. On x86-64 they are compiled once per instruction set
# and chosen at run time; on ARM the baseline (NEON) is the only one.
file(GLOB TUNED_SOURCES CONFIGURE_DEPENDS src/ops/cpu/tuned/*.c)
set(TUNED_FLAGS -fopenmp-simd -fno-trapping-math -ffp-contract=fast)
# Unrolled loops with a check at every access take half a minute per file, and no fuzz target runs them.
if(HONE_FUZZ)
  list(PREPEND TUNED_FLAGS -O0)
elseif(NOT HONE_SANITIZE)
  list(PREPEND TUNED_FLAGS -O3)
endif()
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  list(APPEND TUNED_FLAGS -Wno-pass-failed)     # a loop that clang does not vectorise is slow, not wrong
endif()

function(tuned_variant isa)
  add_library(hone_tuned_${isa} OBJECT ${TUNED_SOURCES})
  target_link_libraries(hone_tuned_${isa} PRIVATE hone_flags hone_blas hone_small_frames)
  target_compile_definitions(hone_tuned_${isa} PRIVATE HONE_ISA=${isa})
  target_compile_options(hone_tuned_${isa} PRIVATE ${TUNED_FLAGS} ${ARGN})
  target_sources(hone_core PRIVATE $<TARGET_OBJECTS:hone_tuned_${isa}>)
endfunction()

# Kernels read no input, only memory that was planned for them, and guards in their functions cost 2 % of a small step.
# (Properties of files: options of a target would stand before those of hone_flags, and the last one counts.)
set(UNGUARDED -fno-stack-protector -U_FORTIFY_SOURCE)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
  list(APPEND UNGUARDED -fno-stack-clash-protection)
endif()
file(GLOB PAIRS_SOURCES CONFIGURE_DEPENDS src/ops/cpu/pairs/*.c)
set_property(SOURCE ${TUNED_SOURCES} ${PAIRS_SOURCES} APPEND PROPERTY COMPILE_OPTIONS ${UNGUARDED})

# A check of every sum of a pointer and an offset takes two thirds of the time to compile a kernel (gcc 12: 21 s of flash_grad.c, 7 s without), and
# finds what the check of the address finds, as soon as something is read or written there. Few machines can run pairs: loss.c takes 9 s with -O1, and 28.
if(HONE_SANITIZE)
  file(GLOB REFERENCE_SOURCES CONFIGURE_DEPENDS src/ops/cpu/reference/*.c)
  set_property(SOURCE ${TUNED_SOURCES} ${PAIRS_SOURCES} ${REFERENCE_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=pointer-overflow)
  if(NOT HONE_FUZZ)
    set_property(SOURCE ${PAIRS_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -O1)
  endif()
endif()

# Sums over ranks are the same wherever they are made: a product is rounded before it is added.
set_property(SOURCE src/ops/cpu/ranks.c src/dist/exchange.c APPEND PROPERTY COMPILE_OPTIONS -O3 -ffp-contract=off)

if(TUNED_SOURCES)
  tuned_variant(baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # PREFETCHW asks for a line that is to be written; where a CPU does not know it (Intel's before Broadwell) it does nothing.
    tuned_variant(avx2 -march=x86-64-v3 -mprfchw)
    tuned_variant(avx512 -march=x86-64-v4 -mprfchw -mprefer-vector-width=512)

    # Products of bf16: compiled once. Tiles are left out where the compiler does not know them.
    include(CheckCCompilerFlag)
    check_c_compiler_flag("-mamx-tile -mamx-bf16" HONE_COMPILER_HAS_AMX)
    add_library(hone_pairs OBJECT ${PAIRS_SOURCES})
    target_link_libraries(hone_pairs PRIVATE hone_flags hone_small_frames)
    target_compile_definitions(hone_pairs PRIVATE HONE_ISA=pairs)
    target_compile_options(hone_pairs PRIVATE ${TUNED_FLAGS} -march=x86-64-v4 -mprefer-vector-width=512 -mavx512bf16)
    target_sources(hone_core PRIVATE $<TARGET_OBJECTS:hone_pairs>)
    if(HONE_COMPILER_HAS_AMX)
      target_compile_options(hone_pairs PRIVATE -mamx-tile -mamx-bf16)
      target_compile_definitions(hone_pairs PRIVATE HONE_AMX)
      target_compile_definitions(hone_tuned_avx512 PRIVATE HONE_AMX)
      set_property(SOURCE src/ops/cpu/bf16.c APPEND PROPERTY COMPILE_DEFINITIONS HONE_AMX)
    endif()
  endif()
endif()

# The kernels' name: with the team that runs them, and this file, which has flags of theirs.
file(GLOB_RECURSE KERNELS_SOURCES CONFIGURE_DEPENDS src/ops/cpu/*.c src/ops/cpu/*.h src/core/team*.c src/core/team*.h)
get_target_property(HONE_OPTIONS hone_flags INTERFACE_COMPILE_OPTIONS)
kernels_flags(KERNELS_FLAGS C ${HONE_OPTIONS} ${TUNED_FLAGS} ${HONE_COMPILER_HAS_AMX})
kernels_id(hone_core cpu_kernels_id ops/cpu/cpu.h "${KERNELS_FLAGS}" ${KERNELS_SOURCES} ${CMAKE_CURRENT_LIST_FILE})
