# cuDNN does attention in 16-bit types where it is found; hone needs nothing of it. HONE_CUDNN: the path of libcudnn.so.9, which is loaded
# when attention first needs it, or OFF. It is looked for beside CUDA's own libraries, where the system has libraries, and where Python's
# packages are; its headers beside it.
set(HONE_CUDNN_FOLDERS ${CUDAToolkit_LIBRARY_DIR})
find_program(HONE_PYTHON python3)
if(HONE_PYTHON AND (NOT DEFINED HONE_CUDNN OR HONE_CUDNN MATCHES "NOTFOUND$"))
  execute_process(COMMAND ${HONE_PYTHON} -c "import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])"
                  OUTPUT_VARIABLE HONE_CUDNN_PACKAGE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(HONE_CUDNN_PACKAGE)
    list(APPEND HONE_CUDNN_FOLDERS ${HONE_CUDNN_PACKAGE}/lib)
  endif()
endif()
find_file(HONE_CUDNN libcudnn.so.9 HINTS ${HONE_CUDNN_FOLDERS} PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib64 /usr/local/lib
          DOC "path of libcudnn.so.9, or OFF")
get_filename_component(HONE_CUDNN_BESIDE "${HONE_CUDNN}" DIRECTORY)
find_path(HONE_CUDNN_INCLUDE cudnn_graph.h HINTS ${HONE_CUDNN_BESIDE}/../include ${CUDAToolkit_INCLUDE_DIRS})
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
