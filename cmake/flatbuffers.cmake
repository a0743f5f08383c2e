# The header that flatc makes of the schema of parsearch::flatbuffers, in ${flatbuffers_dir}. Made here and not by a build, so that the library, all
# headers, can be installed without one.
if(NOT PARSEARCH_FLATC)
    message(FATAL_ERROR "parsearch::flatbuffers needs flatc, the compiler of FlatBuffers' schemas")
endif()
set(flatbuffers_dir ${PROJECT_BINARY_DIR}/generated)
set(schema_dir parsearch/io/flatbuffers)
set(schema ${PROJECT_SOURCE_DIR}/include/${schema_dir}/flexnet_task_graph.fbs)
set(generated ${flatbuffers_dir}/${schema_dir}/flexnet_task_graph_generated.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schema})
if(${schema} IS_NEWER_THAN ${generated} OR ${PARSEARCH_FLATC} IS_NEWER_THAN ${generated})
    execute_process(COMMAND ${PARSEARCH_FLATC} --cpp --scoped-enums -o ${flatbuffers_dir}/${schema_dir} ${schema} COMMAND_ERROR_IS_FATAL ANY)
endif()
# Code that others made: its warnings are not ours.
target_include_directories(parsearch_flatbuffers SYSTEM INTERFACE $<BUILD_INTERFACE:${flatbuffers_dir}>)
