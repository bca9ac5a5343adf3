# A module of another build of hone must not be loaded: what both sides see of each other is in these headers, and their hash is a part of
# what the module is asked for. module_build(OUT HEADER...): "0.1.0-" and that.
function(module_build out)
  set(seen "")
  foreach(header IN LISTS ARGN)
    file(SHA256 ${PROJECT_SOURCE_DIR}/${header} hash)
    string(APPEND seen ${hash})
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  string(SHA256 seen "${seen}")
  string(SUBSTRING ${seen} 0 16 seen)
  set(${out} "${PROJECT_VERSION}-${seen}" PARENT_SCOPE)
endfunction()
