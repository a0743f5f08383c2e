# The header that flatc makes of the schema of parsearch::flatbuffers, in ${flatbuffers_dir}.
set(flatbuffers_dir ${PROJECT_BINARY_DIR}/generated)
set(schema_dir parsearch/io/flatbuffers)
set(schema ${PROJECT_SOURCE_DIR}/include/${schema_dir}/flexnet_task_graph.fbs)
set(generated ${flatbuffers_dir}/${schema_dir}/flexnet_task_graph_generated.h)
add_custom_command(OUTPUT ${generated}
    COMMAND flatbuffers::flatc --cpp --scoped-enums -o ${flatbuffers_dir}/${schema_dir} ${schema}
    DEPENDS ${schema}
    VERBATIM)
add_custom_target(parsearch_flatbuffers_header DEPENDS ${generated})
add_dependencies(parsearch_flatbuffers parsearch_flatbuffers_header)
# Code that others made: its warnings are not ours.
target_include_directories(parsearch_flatbuffers SYSTEM INTERFACE $<BUILD_INTERFACE:${flatbuffers_dir}>)
