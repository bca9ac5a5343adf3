# NCCL sums between the GPUs of several ranks where it is found; one rank needs nothing of it. HONE_NCCL: the path of libnccl.so.2, which is
# loaded when ranks ask for it, or OFF.
loaded_library(HONE_NCCL libnccl.so.2 nccl.h nvidia.nccl)
if(HONE_NCCL AND HONE_NCCL_INCLUDE)
  message(STATUS "NCCL: ${HONE_NCCL}")
  set_source_files_properties(src/ops/cuda/nccl.c PROPERTIES COMPILE_DEFINITIONS "HONE_NCCL=\"${HONE_NCCL}\"")
  target_include_directories(hone_cuda SYSTEM PRIVATE ${HONE_NCCL_INCLUDE})
else()
  message(STATUS "NCCL: not used (HONE_NCCL is the path of libnccl.so.2, its header is beside it or in HONE_NCCL_INCLUDE)")
endif()
