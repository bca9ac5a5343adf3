# Puts src/weights/torch_model.py into the program, as weights_int.h declares it. The same file is the script that writes the array (cmake -P).
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${INPUT}" bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE "${OUTPUT}" "/* Made by cmake/Weights.cmake. */\n#include \"weights/weights_int.h\"\n\n"
       "static const unsigned char bytes[] = {\n${bytes}};\n\nconst void *const torch_model = bytes;\nconst size_t torch_model_bytes = sizeof bytes;\n")
  return()
endif()

set(torch_model ${PROJECT_SOURCE_DIR}/src/weights/torch_model.py)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/torch_model.c
                   COMMAND ${CMAKE_COMMAND} -DINPUT=${torch_model} -DOUTPUT=${PROJECT_BINARY_DIR}/torch_model.c -P ${CMAKE_CURRENT_LIST_FILE}
                   DEPENDS ${torch_model} ${CMAKE_CURRENT_LIST_FILE})
target_sources(hone_core PRIVATE ${PROJECT_BINARY_DIR}/torch_model.c)
