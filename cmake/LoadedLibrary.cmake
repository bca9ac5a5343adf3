# Libraries beside CUDA that are loaded at run time, by their path. loaded_library(HONE_X FILE HEADER PACKAGE): HONE_X is the path of FILE, or
# OFF, and HONE_X_INCLUDE the folder of HEADER. It is looked for beside CUDA's own libraries, where the system has libraries, and where
# Python's packages are; its header beside it.
find_program(HONE_PYTHON python3)

function(python_package_libraries out package)
  execute_process(COMMAND ${HONE_PYTHON} -c "import ${package}; print(list(${package}.__path__)[0])"
                  OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(folder)
    set(${out} ${folder}/lib PARENT_SCOPE)
  endif()
endfunction()

function(loaded_library name file header package)
  set(from_python "")
  if(HONE_PYTHON AND (NOT DEFINED ${name} OR ${name} MATCHES "NOTFOUND$"))
    python_package_libraries(from_python ${package})
  endif()
  find_file(${name} ${file} HINTS ${CUDAToolkit_LIBRARY_DIR} ${from_python}
            PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib64 /usr/local/lib DOC "path of ${file}, or OFF")
  get_filename_component(beside "${${name}}" DIRECTORY)
  find_path(${name}_INCLUDE ${header} HINTS ${beside}/../include ${CUDAToolkit_INCLUDE_DIRS})
endfunction()
