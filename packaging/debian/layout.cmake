# Called by cpack before it packs: Debian has docs and licence in the folder of the package.
if(CPACK_GENERATOR STREQUAL "DEB")
    set(share ${CPACK_TEMPORARY_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
    file(RENAME ${share}/doc/parsearch ${share}/doc/libparsearch-dev)
    file(REMOVE_RECURSE ${share}/licenses)
    file(COPY ${CMAKE_CURRENT_LIST_DIR}/copyright DESTINATION ${share}/doc/libparsearch-dev)
endif()
