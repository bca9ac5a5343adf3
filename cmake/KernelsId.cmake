# Kernels have a name that changes with them: a hash over their sources, the compiler and its flags. It is part of the keys of remembered
# choices (src/core/choices.h), so that what was timed with other kernels does not count. Made anew when a source changes, and written only
# when it is another one, so that nothing is compiled or linked for it otherwise. Folders are not in it: the same sources have the same name
# anywhere. The same file is the script that writes it (cmake -P with SOURCES, FLAGS, HEADER, SYMBOL and OUTPUT).
if(CMAKE_SCRIPT_MODE_FILE)
  set(seen "${FLAGS}")
  foreach(source IN LISTS SOURCES)
    cmake_path(GET source FILENAME name)
    file(SHA256 "${source}" hash)
    string(APPEND seen " ${name} ${hash}")
  endforeach()
  string(SHA256 seen "${seen}")
  string(SUBSTRING "${seen}" 0 16 seen)
  file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "/* Made by cmake/KernelsId.cmake. */\n#include \"${HEADER}\"\n\nconst char ${SYMBOL}[] = \"${seen}\";\n")
  return()
endif()

set(KERNELS_ID_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

# kernels_id(TARGET SYMBOL HEADER FLAGS SOURCE...): TARGET gets the file that defines SYMBOL, as HEADER declares it.
function(kernels_id target symbol header flags)
  set(output ${PROJECT_BINARY_DIR}/generated/${symbol}.c)
  set(sources ${ARGN})
  list(SORT sources)
  add_custom_command(OUTPUT ${output}
                     COMMAND ${CMAKE_COMMAND} "-DSOURCES=${sources}" "-DFLAGS=${flags}" "-DHEADER=${header}" "-DSYMBOL=${symbol}" "-DOUTPUT=${output}"
                             -P ${KERNELS_ID_SCRIPT}
                     DEPENDS ${sources} ${KERNELS_ID_SCRIPT} COMMENT "Naming the kernels: ${symbol}" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

# kernels_flags(OUT LANGUAGE OPTION...): the compiler of a language and what it is called with.
function(kernels_flags out language)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  string(JOIN " " flags ${CMAKE_${language}_COMPILER_ID} ${CMAKE_${language}_COMPILER_VERSION} ${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_${language}_FLAGS}
         ${CMAKE_${language}_FLAGS_${type}} ${ARGN})
  set(${out} "${flags}" PARENT_SCOPE)
endfunction()
