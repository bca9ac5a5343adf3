# Puts the report's page into the program: src/report/page and d3 become a C array each, as report_int.h declares them.
# The same file is the script that writes the arrays (cmake -P), so that only a changed page is written again.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "/* Made by cmake/Report.cmake; do not edit. */\n#include \"report/report_int.h\"\n\n")
  set(table "")
  # ASSETS is name=file+file,name=file...: files joined by + become one asset.
  string(REPLACE "," ";" assets "${ASSETS}")
  foreach(asset IN LISTS assets)
    string(REGEX MATCH "^([^=]+)=(.+)$" _ "${asset}")
    set(name ${CMAKE_MATCH_1})
    string(REPLACE "+" ";" files "${CMAKE_MATCH_2}")
    set(bytes "")
    foreach(file IN LISTS files)
      file(READ ${file} hex HEX)
      string(APPEND bytes ${hex})
    endforeach()
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(MAKE_C_IDENTIFIER "${name}" id)
    string(APPEND text "static const unsigned char ${id}[] = {\n${bytes}};\n\n")
    string(APPEND table "    {\"${name}\", ${id}, sizeof ${id}},\n")
  endforeach()
  file(WRITE ${OUTPUT} "${text}const struct asset report_assets[] = {\n${table}    {0},\n};\n")
  return()
endif()

find_file(HONE_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3 /usr/local/share/javascript/d3
          /usr/lib/node_modules/d3/dist /usr/local/lib/node_modules/d3/dist NO_DEFAULT_PATH
          DOC "d3.min.js, version 5, which the report's page is drawn with")
if(NOT HONE_D3)
  message(FATAL_ERROR "d3.min.js was not found; install it (Debian: node-d3) or say where it is with -DHONE_D3=/path/d3.min.js")
endif()
file(STRINGS ${HONE_D3} d3_version LIMIT_COUNT 1 REGEX "d3js\\.org v5\\.")
if(NOT d3_version)
  message(FATAL_ERROR "${HONE_D3} does not say that it is d3 version 5, which the report's page needs (Debian: node-d3)")
endif()

set(page ${PROJECT_SOURCE_DIR}/src/report/page)
set(report_scripts "")
foreach(name IN ITEMS base overview split operations roofline memory layers timeline findings machine main)
  list(APPEND report_scripts ${page}/${name}.js)
endforeach()
list(JOIN report_scripts "+" report_script)
set(report_assets_c ${PROJECT_BINARY_DIR}/report_assets.c)
add_custom_command(
  OUTPUT ${report_assets_c}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${report_assets_c}
          "-DASSETS=page.html=${page}/page.html,page.css=${page}/page.css,page.js=${report_script},d3.js=${HONE_D3}"
          -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${page}/page.html ${page}/page.css ${report_scripts} ${HONE_D3} ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Embedding the report's page" VERBATIM)
add_library(hone_report_assets OBJECT ${report_assets_c})
target_link_libraries(hone_report_assets PRIVATE hone_flags)
target_sources(hone_core PRIVATE $<TARGET_OBJECTS:hone_report_assets>)
