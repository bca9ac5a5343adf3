# Puts the report's page into the program: src/report/page and d3 become C arrays, as report_int.h declares them. The same
# file is the script that writes the arrays (cmake -P with PAGE, D3 and OUTPUT), so that only a changed page is made again.

# The scripts of each kind of page, in order.
set(profile_scripts base copy matrix kinds tiles bars table overview findings plan split ranks operations roofline_labels roofline memory layers timeline
                    profile_timeline machine main profile_main)
set(trace_scripts base copy matrix trace_colors tiles bars table trace_overview findings plan trace_split trace_gpu trace_watched trace_tables trace_views
                  trace_over_time trace_ranks timeline trace_timeline trace_about main trace_main)
set(tune_scripts base copy matrix tiles plain_table tune_parts tune_overview tune_waterfall tune_table tune_sizes tune_roadmap tune_config main tune_main)
set(forget_scripts base tiles plain_table forget_parts forget_overview forget_tradeoff forget_tables forget_nodes main forget_main)

set(simulate_scripts base tiles bars plain_table simulate_parts simulate_scaling main simulate_main)
set(live_scripts base tiles plain_table curves live_parts main live_main)
set(compare_scripts base tiles plain_table curves compare_parts compare_curves main compare_main)

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
  list(TRANSFORM profile_scripts REPLACE "(.+)" "${PAGE}/\\1.js")
  list(TRANSFORM trace_scripts REPLACE "(.+)" "${PAGE}/\\1.js")
  list(TRANSFORM tune_scripts REPLACE "(.+)" "${PAGE}/\\1.js")
  list(TRANSFORM forget_scripts REPLACE "(.+)" "${PAGE}/\\1.js")
  list(TRANSFORM simulate_scripts REPLACE "(.+)" "${PAGE}/\\1.js")
  list(TRANSFORM live_scripts REPLACE "(.+)" "${PAGE}/\\1.js")
  list(TRANSFORM compare_scripts REPLACE "(.+)" "${PAGE}/\\1.js")
  file(WRITE "${OUTPUT}.new" "/* Made by cmake/Report.cmake. */\n#include \"report/report_int.h\"\n\n")
  add_asset(page.html "${PAGE}/page.html")
  add_asset(page.css "${PAGE}/page.css")
  add_asset(tune-more.css "${PAGE}/tune.css")
  add_asset(forget-more.css "${PAGE}/forget.css")
  add_asset(simulate-more.css "${PAGE}/simulate.css")
  add_asset(simulate-overview.html "${PAGE}/simulate_overview.html")
  add_asset(simulate-sections.html "${PAGE}/simulate_sections.html")
  add_asset(simulate-script.js ${simulate_scripts})
  add_asset(compare-more.css "${PAGE}/curves.css")
  add_asset(compare-overview.html "${PAGE}/compare_overview.html")
  add_asset(compare-sections.html "${PAGE}/compare_sections.html")
  add_asset(compare-script.js ${compare_scripts})
  add_asset(live-more.css "${PAGE}/curves.css" "${PAGE}/live.css")
  add_asset(live-overview.html "${PAGE}/live_overview.html")
  add_asset(live-sections.html "${PAGE}/live_sections.html")
  add_asset(live-script.js ${live_scripts})
  add_asset(tune-overview.html "${PAGE}/tune_overview.html")
  add_asset(forget-overview.html "${PAGE}/forget_overview.html")
  add_asset(profile-sections.html "${PAGE}/profile_sections.html")
  add_asset(trace-sections.html "${PAGE}/trace_sections.html")
  add_asset(tune-sections.html "${PAGE}/tune_sections.html")
  add_asset(forget-sections.html "${PAGE}/forget_sections.html")
  add_asset(profile-script.js ${profile_scripts})
  add_asset(trace-script.js ${trace_scripts})
  add_asset(tune-script.js ${tune_scripts})
  add_asset(forget-script.js ${forget_scripts})
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
file(GLOB report_parts CONFIGURE_DEPENDS "${report_page}/*")
add_custom_command(
  OUTPUT "${report_assets}"
  COMMAND ${CMAKE_COMMAND} "-DPAGE=${report_page}" "-DD3=${HONE_D3}" "-DOUTPUT=${report_assets}"
          -P "${CMAKE_CURRENT_LIST_FILE}"
  DEPENDS ${report_parts} "${HONE_D3}" "${CMAKE_CURRENT_LIST_FILE}"
  COMMENT "Embedding the report's page" VERBATIM)
add_library(hone_report_assets OBJECT "${report_assets}")
target_link_libraries(hone_report_assets PRIVATE hone_flags PkgConfig::JANSSON)
target_sources(hone_core PRIVATE $<TARGET_OBJECTS:hone_report_assets>)
