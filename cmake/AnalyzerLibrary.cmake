# The functions of hone.h that are about traces, and of hone_core what they need.
add_library(hone_analyzer SHARED src/lib/hone.c src/lib/hone_analyze.c)
target_link_libraries(hone_analyzer PRIVATE hone_core)
target_link_options(hone_analyzer PRIVATE LINKER:--no-undefined LINKER:--as-needed -s)
