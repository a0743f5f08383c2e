# The project's own programs: <build>/<folder>/<name> each; `parsearch_<folder>` builds all of a folder.

# Options on a command line, formatted text and JSON, for programs that have them: parsearch_tools, where all of it is found.
if(TARGET parsearch::io)
    find_package(CLI11 QUIET)
    find_package(fmt QUIET)
endif()
if(TARGET parsearch::io AND CLI11_FOUND AND fmt_FOUND)
    add_library(parsearch_tools INTERFACE)
    target_link_libraries(parsearch_tools INTERFACE parsearch_io_compiled CLI11::CLI11 fmt::fmt)
else()
    message(STATUS "some programs are left out: they need nlohmann/json, CLI11 and fmt")
endif()

# parsearch_quick_to_compile(<target> [-O0]): -O1 for -O2, a third quicker to compile, or -O0, twice as quick again; what decides how fast a search is
# is compiled at -O2 in parsearch::compiled. At -O1 g++ takes what it does not see initialised for uninitialised. It collects garbage when its heap
# has doubled: from 500 MB on, a tenth quicker than from 128.
function(parsearch_quick_to_compile target)
    set(level -O1)
    if(ARGN)
        set(level ${ARGN})
    endif()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>
        "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;--param=ggc-min-heapsize=500000>")
endfunction()

# parsearch::io with what is no template compiled once; instances of the search apart, which few programs read.
if(TARGET parsearch::io AND NOT PARSEARCH_TAKEN_FROM)
    file(GLOB io_compiled_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/io/*.cpp)
    set(instances_source ${PROJECT_SOURCE_DIR}/src/io/instances.cpp)
    list(REMOVE_ITEM io_compiled_sources ${instances_source})
    add_library(parsearch_io_compiled STATIC EXCLUDE_FROM_ALL ${io_compiled_sources})
    target_compile_definitions(parsearch_io_compiled PUBLIC PARSEARCH_IO_COMPILED)
    target_link_libraries(parsearch_io_compiled PUBLIC parsearch::compiled parsearch::io)
    add_library(parsearch_instances_compiled STATIC EXCLUDE_FROM_ALL ${instances_source})
    target_link_libraries(parsearch_instances_compiled PUBLIC parsearch_io_compiled)
    parsearch_quick_to_compile(parsearch_io_compiled)
    parsearch_quick_to_compile(parsearch_instances_compiled)
endif()

# parsearch_program(<folder> <name> <source>...)
function(parsearch_program folder name)
    if(NOT TARGET parsearch_${folder})
        add_custom_target(parsearch_${folder})
    endif()
    add_executable(${folder}_${name} ${ARGN})
    set_target_properties(${folder}_${name} PROPERTIES OUTPUT_NAME ${name})
    target_link_libraries(${folder}_${name} PRIVATE parsearch::compiled parsearch_dev)
    add_dependencies(parsearch_${folder} ${folder}_${name})
endfunction()

# parsearch_programs(<folder> [WITH_TOOLS <name>...]): each <name>.cpp here is one program; those named get parsearch_tools, or are left out.
function(parsearch_programs folder)
    cmake_parse_arguments(PARSE_ARGV 1 programs "" "" "WITH_TOOLS")
    file(GLOB sources CONFIGURE_DEPENDS *.cpp)
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM name)
        if(NOT name IN_LIST programs_WITH_TOOLS)
            parsearch_program(${folder} ${name} ${source})
        elseif(TARGET parsearch_tools)
            parsearch_program(${folder} ${name} ${source})
            target_link_libraries(${folder}_${name} PRIVATE parsearch_tools)
        endif()
    endforeach()
endfunction()
