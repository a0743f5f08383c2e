# Boost.MPI with the MPI that it is built on: Boost::mpi and MPI::MPI_CXX.
find_package(MPI QUIET COMPONENTS CXX)
find_package(Boost 1.74 QUIET OPTIONAL_COMPONENTS mpi)
include(FindPackageHandleStandardArgs)
set(BoostMPI_LIBRARY)
if(TARGET Boost::mpi)
    set(BoostMPI_LIBRARY Boost::mpi)
endif()
find_package_handle_standard_args(BoostMPI REQUIRED_VARS BoostMPI_LIBRARY MPI_CXX_FOUND)
