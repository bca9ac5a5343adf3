# What is installed beside the program: pages of the manual and completion, which it writes itself, and a package of all of it:
#   cmake --build --preset release && cpack --config build/release/CPackConfig.cmake -G DEB     (or TGZ: a folder that runs wherever it lies)
set(HONE_SHARE ${CMAKE_BINARY_DIR}/share)
add_custom_command(OUTPUT ${HONE_SHARE}/written
  COMMAND ${CMAKE_COMMAND} -DHONE=$<TARGET_FILE:hone> -DSHARE=${HONE_SHARE} -DVERSION=${PROJECT_VERSION} -DCHANGES=${PROJECT_SOURCE_DIR}/CHANGES.md
          -DLICENSE=${PROJECT_SOURCE_DIR}/LICENSE -P ${CMAKE_CURRENT_LIST_DIR}/WriteShare.cmake
  DEPENDS hone ${CMAKE_CURRENT_LIST_DIR}/WriteShare.cmake ${PROJECT_SOURCE_DIR}/CHANGES.md ${PROJECT_SOURCE_DIR}/LICENSE VERBATIM)
add_custom_target(hone_share ALL DEPENDS ${HONE_SHARE}/written)
install(DIRECTORY ${HONE_SHARE}/ DESTINATION share PATTERN written EXCLUDE)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME hone)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR hone)
set(CPACK_PACKAGE_CONTACT "The hone authors <hone@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains transformers and shows where every microsecond of a step goes")
set(CPACK_PACKAGE_DESCRIPTION "hone trains transformers on CPUs and NVIDIA GPUs, measures where the
time of a step goes, makes the changes that win and proves each of them.
It also reads traces of the PyTorch profiler, and gives the same
diagnosis to programs that stay there.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Loaded at run time, by path: the library of products, and what starts ranks.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libopenblas0-pthread | libblis4-serial")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "openmpi-bin, python3")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
