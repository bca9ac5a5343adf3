# TensorBoard's event messages: protoc-c turns src/trace/events.proto into C in the build tree.
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
find_program(PROTOC_C protoc-c REQUIRED)

set(EVENTS_DIR ${PROJECT_BINARY_DIR}/generated/trace)
set(EVENTS_FILES ${EVENTS_DIR}/events.pb-c.c ${EVENTS_DIR}/events.pb-c.h)
file(MAKE_DIRECTORY ${EVENTS_DIR})
add_custom_command(OUTPUT ${EVENTS_FILES}
                   COMMAND ${PROTOC_C} --proto_path=${PROJECT_SOURCE_DIR}/src/trace --c_out=${EVENTS_DIR} events.proto
                   DEPENDS ${PROJECT_SOURCE_DIR}/src/trace/events.proto VERBATIM)
set_source_files_properties(${EVENTS_DIR}/events.pb-c.c PROPERTIES COMPILE_OPTIONS -w)

target_sources(hone_core PRIVATE ${EVENTS_FILES})
target_link_libraries(hone_core PUBLIC PkgConfig::PROTOBUF_C)
target_include_directories(hone_core SYSTEM PUBLIC ${EVENTS_DIR})
