# HONE_ANALYZER: the analyzer of traces alone, as a library for the wheel of Python (python/). It has the functions of hone.h that are about traces,
# and needs no BLAS, MPI, YAML or hwloc. The few libraries that it needs lie beside it.
set(rooms core program passes import analyze report)
list(TRANSFORM rooms REPLACE "(.+)" "src/\\1/*.c")
file(GLOB_RECURSE HONE_ANALYZER_SOURCES CONFIGURE_DEPENDS ${rooms} src/trace/trace.c src/trace/text.c src/trace/chrome.c src/lib/traces.c)
add_library(hone_core STATIC ${HONE_ANALYZER_SOURCES})
target_link_libraries(hone_core PUBLIC hone_flags Threads::Threads m ${CMAKE_DL_LIBS} PkgConfig::JANSSON PkgConfig::XXHASH PkgConfig::ISAL)
include(cmake/Report.cmake)

set(CMAKE_SKIP_RPATH OFF)
include(cmake/AnalyzerLibrary.cmake)
set_target_properties(hone_analyzer PROPERTIES INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH OFF)
install(TARGETS hone_analyzer RUNTIME_DEPENDENCY_SET beside LIBRARY DESTINATION hone COMPONENT wheel)
install(RUNTIME_DEPENDENCY_SET beside PRE_EXCLUDE_REGEXES "^lib(c|m|pthread|dl|gcc_s)\\.so" "^ld-linux" DESTINATION hone COMPONENT wheel)

# Whose they are, and under which terms.
install(FILES LICENSE DESTINATION hone/licenses RENAME hone COMPONENT wheel)
foreach(library IN ITEMS libjansson libxxhash libisal)
  install(FILES /usr/share/doc/${library}-dev/copyright DESTINATION hone/licenses RENAME ${library} COMPONENT wheel OPTIONAL)
endforeach()
