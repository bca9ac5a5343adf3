# MPI is a module: a shared library that `hone` loads when ranks are asked for (src/dist/load.c), so that the program itself needs nothing
# of it. HONE_MPI: auto (built where MPI is found, but not under sanitizers), on, or off.
set(HONE_MPI auto CACHE STRING "auto, on or off")
one_of(HONE_MPI auto on off)

set(HONE_MPI_FOUND OFF)
if(HONE_MPI STREQUAL on OR (HONE_MPI STREQUAL auto AND NOT HONE_SANITIZE))
  set(MPI_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    set(HONE_MPI_FOUND ON)
  elseif(HONE_MPI STREQUAL on)
    message(FATAL_ERROR "HONE_MPI is on, and MPI was not found; install libopenmpi-dev and openmpi-bin, or HONE_MPI=off")
  endif()
endif()
if(NOT HONE_MPI_FOUND)
  message(STATUS "MPI: no module is built (HONE_MPI=${HONE_MPI})")
  return()
endif()

module_build(HONE_MPI_BUILD src/core/error.h src/dist/transport.h src/dist/module.h)

add_library(hone_mpi MODULE src/dist/mpi.c src/core/error.c src/core/clean.c)
set_target_properties(hone_mpi PROPERTIES NO_SONAME ON POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_include_directories(hone_mpi PRIVATE src $<TARGET_PROPERTY:PkgConfig::JANSSON,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(hone_mpi PRIVATE _GNU_SOURCE HONE_MPI_BUILD="${HONE_MPI_BUILD}")
target_compile_options(hone_mpi PRIVATE -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wpointer-arith -Werror
                       -ffunction-sections -fdata-sections)
target_link_libraries(hone_mpi PRIVATE MPI::MPI_C)
target_link_options(hone_mpi PRIVATE -Wl,--no-undefined -Wl,--gc-sections -Wl,--exclude-libs,ALL)
# MPI that is not where the system looks for libraries is found again where it was found.
list(GET MPI_C_LIBRARIES 0 library)
cmake_path(GET library PARENT_PATH folder)
file(REAL_PATH ${folder} folder)
path_on_target(folder ${folder})
if(NOT folder MATCHES "^/(usr/)?lib")
  target_link_options(hone_mpi PRIVATE -Wl,-rpath,${folder})
endif()
find_program(HONE_MPIRUN NAMES mpirun mpiexec HINTS ${folder}/../bin)
message(STATUS "MPI: ${MPI_C_LIBRARIES}, started by ${HONE_MPIRUN}")

set_source_files_properties(src/dist/load.c PROPERTIES COMPILE_DEFINITIONS
                            "HONE_MPI_BUILD=\"${HONE_MPI_BUILD}\";HONE_MPI_MODULE=\"${PROJECT_BINARY_DIR}/libhone_mpi.so\"")
if(HONE_MPIRUN)
  set_source_files_properties(src/cli/cmd_launch.c PROPERTIES COMPILE_DEFINITIONS "HONE_MPIRUN=\"${HONE_MPIRUN}\"")
endif()
install(TARGETS hone_mpi DESTINATION lib/hone COMPONENT hone-mpi)      # a package of its own: the program needs nothing of MPI
