# Configures, builds and runs the consumer project.
# cmake -D way=find_package|add_subdirectory -D version= -D source_dir= -D build_dir= -D work_dir= -D compiler= -D generator=
#     -D components= -P consumer.cmake
function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work_dir})
if(way STREQUAL "find_package")
    run(${CMAKE_COMMAND} --install ${build_dir} --prefix ${work_dir}/prefix)
    set(library -D CMAKE_PREFIX_PATH=${work_dir}/prefix -D PARSEARCH_WANTED=${version})
else()
    set(library -D PARSEARCH_SOURCE_DIR=${source_dir})
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${work_dir}/build -G ${generator}
    -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0 -D CMAKE_CXX_COMPILER=${compiler} ${library}
    -D CONSUMER_COMPONENTS=${components})
run(${CMAKE_COMMAND} --build ${work_dir}/build)
run(${work_dir}/build/consumer)
string(REPLACE "|" ";" components "${components}")
foreach(target IN LISTS components)
    string(REPLACE "parsearch::" "" name ${target})
    run(${work_dir}/build/consumer_${name})
endforeach()
