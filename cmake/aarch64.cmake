# A toolchain file: for 64-bit ARM, on another machine. HONE_ROOT, of CMake or of the environment, is a folder with Debian's libraries for it, as
# scripts/package-aarch64 makes one; programs of the build run here, those for ARM in qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(HONE_ROOT "$ENV{HONE_ROOT}" CACHE PATH "a folder with Debian's libraries for aarch64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HONE_ROOT)
if(NOT IS_DIRECTORY "${HONE_ROOT}/usr/lib/aarch64-linux-gnu")
  message(FATAL_ERROR "HONE_ROOT is '${HONE_ROOT}', and holds no libraries for aarch64; scripts/package-aarch64 makes such a folder")
endif()
set(CMAKE_SYSROOT ${HONE_ROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64-static;-L;${HONE_ROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HONE_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${HONE_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${HONE_ROOT}/usr/share/pkgconfig)

# CMake asks mpicc, which is of this machine.
set(MPI_C_COMPILER MPI_C_COMPILER-NOTFOUND CACHE FILEPATH "none")
set(MPI_C_HEADER_DIR ${HONE_ROOT}/usr/lib/aarch64-linux-gnu/openmpi/include CACHE PATH "of mpi.h")
set(MPI_C_LIB_NAMES mpi CACHE STRING "of MPI")
set(MPI_mpi_LIBRARY ${HONE_ROOT}/usr/lib/aarch64-linux-gnu/openmpi/lib/libmpi.so CACHE FILEPATH "of MPI")
