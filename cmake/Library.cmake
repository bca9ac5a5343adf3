# libhone: all rooms but the command line in a shared library, of which include/hone.h is seen and nothing else. The number in its name changes
# when something of the header goes or changes its meaning. Beside it what pkg-config and CMake's find_package look for.
set(HONE_SOVERSION 0)
if(HONE_SANITIZE)
  return()              # the sanitizers' own library is of the program, and a shared library has it missing; unit tests take the objects
endif()

add_library(hone_shared SHARED include/hone.h)
target_link_libraries(hone_shared PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,hone_core>)
target_include_directories(hone_shared INTERFACE $<INSTALL_INTERFACE:include>)
target_link_options(hone_shared PRIVATE LINKER:--no-undefined LINKER:--as-needed)
set_target_properties(hone_shared PROPERTIES OUTPUT_NAME hone EXPORT_NAME hone VERSION ${PROJECT_VERSION} SOVERSION ${HONE_SOVERSION} LINKER_LANGUAGE C)

include(cmake/AnalyzerLibrary.cmake)         # tested here; python/ has a build of its own for it

include(CMakePackageConfigHelpers)
set(HONE_DEVELOP ${PROJECT_BINARY_DIR}/develop)
file(WRITE ${HONE_DEVELOP}/hone.pc
     "prefix=\${pcfiledir}/../..\n\nName: hone\nDescription: trains and profiles transformers, and tells what bounds a PyTorch trace\n"
     "Version: ${PROJECT_VERSION}\nCflags: -I\${prefix}/include\nLibs: -L\${prefix}/lib -lhone\n")
write_basic_package_version_file(${HONE_DEVELOP}/hone-config-version.cmake COMPATIBILITY SameMinorVersion)
file(WRITE ${HONE_DEVELOP}/hone-config.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/hone-targets.cmake)\n")
install(TARGETS hone_shared EXPORT hone-targets LIBRARY DESTINATION lib COMPONENT libhone NAMELINK_COMPONENT libhone-dev)
install(EXPORT hone-targets NAMESPACE hone:: DESTINATION lib/cmake/hone COMPONENT libhone-dev)
install(FILES ${HONE_DEVELOP}/hone-config.cmake ${HONE_DEVELOP}/hone-config-version.cmake DESTINATION lib/cmake/hone COMPONENT libhone-dev)
install(FILES ${HONE_DEVELOP}/hone.pc DESTINATION share/pkgconfig COMPONENT libhone-dev)
install(FILES include/hone.h DESTINATION include COMPONENT libhone-dev)
install(FILES examples/train.c examples/analyze.c examples/CMakeLists.txt DESTINATION share/doc/libhone-dev/examples COMPONENT libhone-dev)
