# The CUDA backend is a module: a shared library that `hone` loads at run time (src/ops/cuda/load.c), so that the program itself needs
# nothing of CUDA. HONE_CUDA: auto (built where nvcc and cuBLAS are found, but not under sanitizers), on, or off.
# HONE_CUDA_ARCHS: as CMAKE_CUDA_ARCHITECTURES; the last one without -real carries PTX for newer GPUs.
set(HONE_CUDA auto CACHE STRING "auto, on or off")
one_of(HONE_CUDA auto on off)
set(HONE_CUDA_ARCHS "80-real;90" CACHE STRING "architectures of GPUs that the CUDA module is compiled for")

set(HONE_CUDA_FOUND OFF)
if(HONE_CUDA STREQUAL on OR (HONE_CUDA STREQUAL auto AND NOT HONE_SANITIZE))
  find_program(HONE_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  find_program(HONE_NVCC_HOST NAMES g++ c++ clang++)          # nvcc compiles with it
  if(HONE_NVCC AND HONE_NVCC_HOST)
    set(CMAKE_CUDA_COMPILER ${HONE_NVCC})
    set(CMAKE_CUDA_ARCHITECTURES ${HONE_CUDA_ARCHS})
    set(CMAKE_CUDA_STANDARD 17)
    enable_language(CUDA)
    set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
    set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O3 -lineinfo")
    find_package(CUDAToolkit 12 QUIET)
  endif()
  if(CMAKE_CUDA_COMPILER_LOADED AND TARGET CUDA::cublas AND TARGET CUDA::cublasLt AND TARGET CUDA::cudart_static)
    set(HONE_CUDA_FOUND ON)
  elseif(HONE_CUDA STREQUAL on)
    message(FATAL_ERROR "HONE_CUDA is on, and nvcc, a C++ compiler for it, cuBLAS and the static runtime were not all found; "
                        "give -DHONE_NVCC=PATH, or HONE_CUDA=off")
  endif()
endif()
if(NOT HONE_CUDA_FOUND)
  message(STATUS "CUDA: no module is built (HONE_CUDA=${HONE_CUDA})")
  return()
endif()
message(STATUS "CUDA: ${CUDAToolkit_VERSION} for ${HONE_CUDA_ARCHS}")

module_build(HONE_CUDA_BUILD src/backend/backend.h src/backend/comm.h src/core/choices.h src/core/error.h src/core/peaks.h src/program/program.h src/program/ops.h src/ops/cuda/module.h)

# The few plain functions of hone that it needs are linked into it, hidden: it takes nothing from the program that loads it. What else
# is in their files, and what that would need, is left out (sections).
file(GLOB CUDA_SOURCES CONFIGURE_DEPENDS src/ops/cuda/*.cu src/ops/cuda/*.c)
list(FILTER CUDA_SOURCES EXCLUDE REGEX "/load\\.c$")
list(FILTER CUDA_SOURCES EXCLUDE REGEX "hopper\\.cu$")
add_library(hone_cuda MODULE ${CUDA_SOURCES} $<TARGET_OBJECTS:hone_cuda_hopper> src/core/error.c src/core/clean.c src/program/ops.c src/program/op_costs.c src/program/op_ranks.c src/program/op_cache.c src/program/slices.c src/program/shape.c)
set_target_properties(hone_cuda PROPERTIES NO_SONAME ON POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                      CUDA_RUNTIME_LIBRARY Static)
target_include_directories(hone_cuda PRIVATE src $<TARGET_PROPERTY:PkgConfig::JANSSON,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(hone_cuda PRIVATE _GNU_SOURCE HONE_CUDA_BUILD="${HONE_CUDA_BUILD}")
target_compile_options(hone_cuda PRIVATE
                       $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wmissing-prototypes;-Wstrict-prototypes;-Wvla;-Wpointer-arith;-Werror;-ffunction-sections;-fdata-sections>
                       $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall;-Xcompiler=-Wextra>)
target_link_libraries(hone_cuda PRIVATE CUDA::cudart_static CUDA::cublas CUDA::cublasLt ${CMAKE_DL_LIBS} Threads::Threads)
# Where cuBLAS was found it is found again, whatever the environment says.
target_link_options(hone_cuda PRIVATE -Wl,--no-undefined -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-rpath,${CUDAToolkit_LIBRARY_DIR})

file(GLOB CUDA_KERNELS CONFIGURE_DEPENDS src/ops/cuda/*.cu src/ops/cuda/*.cuh src/ops/cuda/*.c src/ops/cuda/*.h)
kernels_flags(CUDA_KERNELS_FLAGS CUDA ${HONE_CUDA_ARCHS})
kernels_id(hone_cuda cuda_kernels_id ops/cuda/products.h "${CUDA_KERNELS_FLAGS}" ${CUDA_KERNELS} ${CMAKE_CURRENT_LIST_FILE})

# What only GPUs of compute capability 9.0 can do is asked of no other.
add_library(hone_cuda_hopper OBJECT src/ops/cuda/hopper.cu src/ops/cuda/head_hopper.cu)
set_target_properties(hone_cuda_hopper PROPERTIES CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON CUDA_VISIBILITY_PRESET hidden)
foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS)
  get_target_property(same hone_cuda ${property})
  set_target_properties(hone_cuda_hopper PROPERTIES ${property} "${same}")
endforeach()

include(cmake/LoadedLibrary.cmake)
include(cmake/Cudnn.cmake)
include(cmake/Nccl.cmake)
# CUPTI is loaded when something is measured, by the path that is found here; without it ops are timed by events.
find_path(HONE_CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include
          ${CUDAToolkit_BIN_DIR}/../extras/CUPTI/include)
find_library(HONE_CUPTI_LIBRARY NAMES cupti libcupti.so.${CUDAToolkit_VERSION_MAJOR}
             HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/lib64 ${CUDAToolkit_BIN_DIR}/../extras/CUPTI/lib64)
if(HONE_CUPTI_INCLUDE AND HONE_CUPTI_LIBRARY)
  target_include_directories(hone_cuda SYSTEM PRIVATE ${HONE_CUPTI_INCLUDE})
  set_source_files_properties(src/ops/cuda/cupti.c PROPERTIES COMPILE_DEFINITIONS "HONE_CUPTI=\"${HONE_CUPTI_LIBRARY}\"")
endif()
message(STATUS "CUDA: CUPTI ${HONE_CUPTI_LIBRARY}")

set_source_files_properties(src/ops/cuda/load.c PROPERTIES COMPILE_DEFINITIONS
                            "HONE_CUDA_BUILD=\"${HONE_CUDA_BUILD}\";HONE_CUDA_MODULE=\"${PROJECT_BINARY_DIR}/libhone_cuda.so\"")
install(TARGETS hone_cuda DESTINATION lib/hone)
