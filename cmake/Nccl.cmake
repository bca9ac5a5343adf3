# NCCL sums between the GPUs of several ranks where it is found; one rank needs nothing of it. HONE_NCCL: the path of libnccl.so.2, which is
# loaded when ranks ask for it, or OFF. It is looked for beside CUDA's own libraries, where the system has libraries, and where Python's
# packages are; its header beside it.
set(HONE_NCCL_FOLDERS ${CUDAToolkit_LIBRARY_DIR})
if(HONE_PYTHON AND (NOT DEFINED HONE_NCCL OR HONE_NCCL MATCHES "NOTFOUND$"))
  execute_process(COMMAND ${HONE_PYTHON} -c "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])"
                  OUTPUT_VARIABLE HONE_NCCL_PACKAGE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(HONE_NCCL_PACKAGE)
    list(APPEND HONE_NCCL_FOLDERS ${HONE_NCCL_PACKAGE}/lib)
  endif()
endif()
find_file(HONE_NCCL libnccl.so.2 HINTS ${HONE_NCCL_FOLDERS} PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib64 /usr/local/lib
          DOC "path of libnccl.so.2, or OFF")
get_filename_component(HONE_NCCL_BESIDE "${HONE_NCCL}" DIRECTORY)
find_path(HONE_NCCL_INCLUDE nccl.h HINTS ${HONE_NCCL_BESIDE}/../include ${CUDAToolkit_INCLUDE_DIRS})
if(HONE_NCCL AND HONE_NCCL_INCLUDE)
  message(STATUS "NCCL: ${HONE_NCCL}")
  set_source_files_properties(src/ops/cuda/nccl.c PROPERTIES COMPILE_DEFINITIONS "HONE_NCCL=\"${HONE_NCCL}\"")
  target_include_directories(hone_cuda SYSTEM PRIVATE ${HONE_NCCL_INCLUDE})
else()
  message(STATUS "NCCL: not used (HONE_NCCL is the path of libnccl.so.2, its header is beside it or in HONE_NCCL_INCLUDE)")
endif()
