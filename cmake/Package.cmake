# What is installed beside the program: pages of the manual and completion, which it writes itself, and a package of all of it:
#   cmake --build --preset release && cpack --config build/release/CPackConfig.cmake -G DEB     (or TGZ: a folder that runs wherever it lies)
set(HONE_SHARE ${CMAKE_BINARY_DIR}/share)
add_custom_command(OUTPUT ${HONE_SHARE}/written
  COMMAND ${CMAKE_COMMAND} "-DHONE=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:hone>" -DSHARE=${HONE_SHARE} -DVERSION=${PROJECT_VERSION}
          -DLIBRARY=libhone${HONE_SOVERSION} -DCHANGES=${PROJECT_SOURCE_DIR}/CHANGES.md -DLICENSE=${PROJECT_SOURCE_DIR}/LICENSE -P ${CMAKE_CURRENT_LIST_DIR}/WriteShare.cmake
  DEPENDS hone ${CMAKE_CURRENT_LIST_DIR}/WriteShare.cmake ${PROJECT_SOURCE_DIR}/CHANGES.md ${PROJECT_SOURCE_DIR}/LICENSE VERBATIM)
add_custom_target(hone_share ALL DEPENDS ${HONE_SHARE}/written)
install(DIRECTORY ${HONE_SHARE}/ DESTINATION share PATTERN written EXCLUDE PATTERN "*libhone*" EXCLUDE PATTERN "*hone-mpi" EXCLUDE)
foreach(package IN ITEMS libhone libhone-dev hone-mpi)
  string(REGEX REPLACE "^libhone$" "libhone${HONE_SOVERSION}" named ${package})
  install(DIRECTORY ${HONE_SHARE}/doc/${named} DESTINATION share/doc COMPONENT ${package})
endforeach()
install(FILES ${HONE_SHARE}/lintian/overrides/libhone${HONE_SOVERSION} DESTINATION share/lintian/overrides COMPONENT libhone)
install(FILES ${HONE_SHARE}/lintian/overrides/hone-mpi DESTINATION share/lintian/overrides COMPONENT hone-mpi)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME hone)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR hone)
set(CPACK_PACKAGE_CONTACT "The hone authors <hone@example.org>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Of what it was built for, and not of the machine that builds it.
set(CPACK_SYSTEM_NAME ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
string(REGEX REPLACE "^x86_64$" "amd64" CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
string(REGEX REPLACE "^aarch64$" "arm64" CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${CPACK_DEBIAN_PACKAGE_ARCHITECTURE})
if(CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)       # the other machine's packages are not here to ask
endif()
# Four packages: the program, its module for ranks, the library, and what one builds against it with. Loaded at run time, by path: the library of
# products and the module, so that nobody has MPI who does not ask for it.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL hone)
set(CPACK_DEBIAN_HONE_PACKAGE_NAME hone)
set(CPACK_DEBIAN_HONE_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_HONE_PACKAGE_SUGGESTS "hone-mpi, python3, libopenblas0-pthread | libblis4-serial")
set(CPACK_COMPONENT_HONE_DESCRIPTION "trains transformers and shows where every microsecond of a step goes
hone trains transformers on CPUs and NVIDIA GPUs, measures where the
time of a step goes, makes the changes that win and proves each of them.
It also reads traces of the PyTorch profiler, and gives the same
diagnosis to programs that stay there.")
if(TARGET hone_mpi)
  list(APPEND CPACK_COMPONENTS_ALL hone-mpi)
  set(CPACK_DEBIAN_HONE-MPI_PACKAGE_NAME hone-mpi)
  set(CPACK_DEBIAN_HONE-MPI_PACKAGE_DEPENDS "hone (= ${PROJECT_VERSION}), openmpi-bin")
  set(CPACK_COMPONENT_HONE-MPI_DESCRIPTION "ranks of hone: one training in several processes
The module with which hone trains one model in several processes, on one
machine or on many, over MPI.")
endif()
if(TARGET hone_shared)
  list(APPEND CPACK_COMPONENTS_ALL libhone libhone-dev)
  set(CPACK_DEBIAN_LIBHONE_PACKAGE_NAME libhone${HONE_SOVERSION})
  set(CPACK_DEBIAN_LIBHONE_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_LIBHONE_PACKAGE_RECOMMENDS "hone")         # configs by name, modules
  file(WRITE ${HONE_DEVELOP}/triggers "activate-noawait ldconfig\n")
  file(WRITE ${HONE_DEVELOP}/shlibs "libhone ${HONE_SOVERSION} libhone${HONE_SOVERSION} (>= ${PROJECT_VERSION})\n")
  set(CPACK_DEBIAN_LIBHONE_PACKAGE_CONTROL_EXTRA ${HONE_DEVELOP}/triggers ${HONE_DEVELOP}/shlibs)
  set(CPACK_DEBIAN_LIBHONE_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  set(CPACK_COMPONENT_LIBHONE_DESCRIPTION "library that trains and profiles transformers
It also tells what bounds a trace of the PyTorch profiler. Programs are
built against it with libhone-dev.")
  set(CPACK_DEBIAN_LIBHONE-DEV_PACKAGE_NAME libhone-dev)
  set(CPACK_DEBIAN_LIBHONE-DEV_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_LIBHONE-DEV_PACKAGE_DEPENDS "libhone${HONE_SOVERSION} (= ${PROJECT_VERSION})")
  set(CPACK_COMPONENT_LIBHONE-DEV_DESCRIPTION "header and examples of libhone
One header, what pkg-config and CMake look for, and examples.")
endif()
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
