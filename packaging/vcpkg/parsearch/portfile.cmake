# An overlay port, which installs the checkout that it lies in. A port in a registry would get an archive of a release here.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

# Without the feature compiled it is headers, the same in every build.
if(NOT "compiled" IN_LIST FEATURES)
    set(VCPKG_BUILD_TYPE release)
endif()

vcpkg_check_features(OUT_FEATURE_OPTIONS components
    FEATURES
        compiled PARSEARCH_COMPILED
        flatbuffers PARSEARCH_FLATBUFFERS
        io PARSEARCH_IO
        mpi PARSEARCH_MPI
        onnx PARSEARCH_ONNX
        verifier PARSEARCH_VERIFIER)
if("flatbuffers" IN_LIST FEATURES)
    list(APPEND components "-DPARSEARCH_FLATC=${CURRENT_HOST_INSTALLED_DIR}/tools/flatbuffers/flatc${VCPKG_HOST_EXECUTABLE_SUFFIX}")
endif()
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${components}
        -DPARSEARCH_BUILD_TESTS=OFF
        -DPARSEARCH_BUILD_EXAMPLES=OFF
        -DPARSEARCH_BUILD_BENCH=OFF
        -DPARSEARCH_CUDA_PROFILER=OFF
        -DPARSEARCH_CPU_PROFILER=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/parsearch)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE
    "${CURRENT_PACKAGES_DIR}/debug/include"
    "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/doc"
    "${CURRENT_PACKAGES_DIR}/share/licenses")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
