# cuDNN does attention in 16-bit types where it is found; hone needs nothing of it. HONE_CUDNN: the path of libcudnn.so.9, which is loaded
# when attention first needs it, or OFF.
loaded_library(HONE_CUDNN libcudnn.so.9 cudnn_graph.h nvidia.cudnn)
if(HONE_CUDNN AND HONE_CUDNN_INCLUDE)
  file(STRINGS ${HONE_CUDNN_INCLUDE}/cudnn_version.h HONE_CUDNN_MAJOR REGEX "define CUDNN_MAJOR 9")
endif()
if(HONE_CUDNN_MAJOR)
  message(STATUS "cuDNN: ${HONE_CUDNN}")
  set(HONE_CUDNN_DEFINITIONS HONE_CUDNN="${HONE_CUDNN}"
      HONE_NVRTC="${CUDAToolkit_LIBRARY_DIR}/libnvrtc.so.${CUDAToolkit_VERSION_MAJOR}")
  target_compile_definitions(hone_cuda PRIVATE ${HONE_CUDNN_DEFINITIONS})
  target_include_directories(hone_cuda SYSTEM PRIVATE ${HONE_CUDNN_INCLUDE})
else()
  message(STATUS "cuDNN: not used (HONE_CUDNN is the path of libcudnn.so.9, its headers are beside it or in HONE_CUDNN_INCLUDE)")
endif()
