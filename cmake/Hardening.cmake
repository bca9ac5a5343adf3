# What makes a mistake in reading a file harder to misuse; tests/cli/binary.sh looks for it in the program. Sanitizers bring checks
# of their own, which _FORTIFY_SOURCE would hide.
if(NOT HONE_SANITIZE)
  target_compile_options(hone_flags INTERFACE -fstack-protector-strong
                         $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
  if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    target_compile_options(hone_flags INTERFACE -fstack-clash-protection)
  endif()
  target_link_options(hone_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> "LINKER:-z,relro,-z,now,-z,noexecstack")
endif()
