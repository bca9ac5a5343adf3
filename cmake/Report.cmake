# Puts the report's page into the program: src/report/page and d3 become C arrays, as report_int.h declares them. The same
# file is the script that writes the arrays (cmake -P with PAGE, D3 and OUTPUT), so that only a changed page is made again.
set(report_scripts base overview split operations roofline memory layers timeline findings machine main)     # in order

function(add_asset name)        # the files in ARGN, one after the other
  set(bytes "")
  foreach(file IN LISTS ARGN)
    file(READ "${file}" hex HEX)
    string(APPEND bytes "${hex}")
  endforeach()
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(MAKE_C_IDENTIFIER ${name} id)
  file(APPEND "${OUTPUT}.new" "static const unsigned char ${id}[] = {\n${bytes}};\n\n")
  set(table "${table}    {\"${name}\", ${id}, sizeof ${id}},\n" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  list(TRANSFORM report_scripts REPLACE "(.+)" "${PAGE}/\\1.js")
  file(WRITE "${OUTPUT}.new" "/* Made by cmake/Report.cmake. */\n#include \"report/report_int.h\"\n\n")
  add_asset(page.html "${PAGE}/page.html")
  add_asset(page.css "${PAGE}/page.css")
  add_asset(page.js ${report_scripts})
  add_asset(d3.js "${D3}")
  file(APPEND "${OUTPUT}.new" "const struct asset report_assets[] = {\n${table}    {0},\n};\n")
  file(RENAME "${OUTPUT}.new" "${OUTPUT}")
  return()
endif()

find_file(HONE_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3 /usr/local/share/javascript/d3
          /usr/lib/node_modules/d3/dist /usr/local/lib/node_modules/d3/dist NO_DEFAULT_PATH
          DOC "d3.min.js, version 5, which the report's page is drawn with")
if(NOT HONE_D3)
  message(FATAL_ERROR "d3.min.js was not found; install it (Debian: node-d3) or say where it is: -DHONE_D3=/path/d3.min.js")
endif()
file(STRINGS "${HONE_D3}" d3_version LIMIT_COUNT 1 REGEX "d3js\\.org v5\\.")
if(NOT d3_version)
  message(FATAL_ERROR "${HONE_D3} does not say that it is d3 version 5, which the report's page needs (Debian: node-d3)")
endif()

set(report_page "${PROJECT_SOURCE_DIR}/src/report/page")
set(report_assets "${PROJECT_BINARY_DIR}/report_assets.c")
list(TRANSFORM report_scripts REPLACE "(.+)" "${report_page}/\\1.js")
add_custom_command(
  OUTPUT "${report_assets}"
  COMMAND ${CMAKE_COMMAND} "-DPAGE=${report_page}" "-DD3=${HONE_D3}" "-DOUTPUT=${report_assets}"
          -P "${CMAKE_CURRENT_LIST_FILE}"
  DEPENDS "${report_page}/page.html" "${report_page}/page.css" ${report_scripts} "${HONE_D3}" "${CMAKE_CURRENT_LIST_FILE}"
  COMMENT "Embedding the report's page" VERBATIM)
add_library(hone_report_assets OBJECT "${report_assets}")
target_link_libraries(hone_report_assets PRIVATE hone_flags PkgConfig::JANSSON)
target_sources(hone_core PRIVATE $<TARGET_OBJECTS:hone_report_assets>)
