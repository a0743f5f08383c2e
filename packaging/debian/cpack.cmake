# `cpack -G DEB` makes libparsearch-dev of all that is installed.
set(CPACK_PACKAGE_NAME parsearch)
set(CPACK_PACKAGE_VENDOR parsearch)
set(CPACK_PACKAGE_CONTACT "parsearch maintainers <maintainers@parsearch.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "search for parallelization strategies of neural networks (headers)")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Given an operator graph, a device topology and a cost oracle, this
C++20 library searches how a neural network runs best on the devices:
which operators are split, along which dimensions, into how many
shards, on which devices. Its components need what is recommended and
suggested here.")
set(CPACK_DEBIAN_PACKAGE_NAME libparsearch-dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libboost-dev (>= 1.74), librange-v3-dev")
# Headers are the same everywhere; the component compiled is a library of one architecture, which is then the default.
if(NOT PARSEARCH_COMPILED)
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
endif()

# What the components in the package need: those of the program plan are recommended.
set(io_packages nlohmann-json3-dev)
set(onnx_packages libonnx-dev libprotobuf-dev)
set(verifier_packages libz3-dev)
set(flatbuffers_packages libflatbuffers-dev)
set(mpi_packages libboost-mpi-dev)
foreach(strength IN ITEMS RECOMMENDS:io,onnx SUGGESTS:verifier,flatbuffers,mpi)
    string(REGEX MATCHALL "[A-Za-z]+" components ${strength})
    list(POP_FRONT components field)
    set(packages)
    foreach(component IN LISTS components)
        if(TARGET parsearch_${component})
            list(APPEND packages ${${component}_packages})
        endif()
    endforeach()
    list(JOIN packages ", " CPACK_DEBIAN_PACKAGE_${field})
endforeach()

set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/layout.cmake)
include(CPack)
