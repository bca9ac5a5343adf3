# Where the BLAS libraries are that src/ops/cpu/blas.c loads at run time, by absolute path. They have no threads of their own, or are told
# to use one: hone splits products over its own team, so that results depend on the number of threads alone. Debian's openblas-serial is
# not among them: it is wrong when several threads call it at once. HONE_BLAS: auto (those that are there), blis, openblas, or none.
set(HONE_BLAS auto CACHE STRING "auto, blis, openblas or none")
one_of(HONE_BLAS auto blis openblas none)

find_library(HONE_OPENBLAS NAMES openblas-pthread/libopenblas.so.0 libopenblasp.so.0)
find_library(HONE_BLIS NAMES blis-serial/libblis.so.4 libblis.so.4)

add_library(hone_blas INTERFACE)
target_link_libraries(hone_blas INTERFACE ${CMAKE_DL_LIBS})
set(found "")
foreach(name IN ITEMS openblas blis)
  string(TOUPPER HONE_${name} path)
  if(${path} AND HONE_BLAS MATCHES "^(auto|${name})$")
    path_on_target(library ${${path}})
    target_compile_definitions(hone_blas INTERFACE ${path}="${library}")
    list(APPEND found ${library})
  endif()
endforeach()
if(found)
  message(STATUS "BLAS: ${found}")
elseif(HONE_BLAS STREQUAL none)
  message(STATUS "BLAS: none, hone's own kernels do all products")
else()
  message(STATUS "BLAS: none was found, hone's own kernels do all products, as they do by rule where there is one; for autotune to try another, "
                 "Debian has libblis4-serial and libopenblas0-pthread")
endif()
