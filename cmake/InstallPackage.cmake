# A package file for CMake and one for pkg-config.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/aijtccusparse)
configure_package_config_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/aijtccusparseConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/aijtccusparseConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/aijtccusparseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/aijtccusparse.pc.in ${CMAKE_CURRENT_BINARY_DIR}/aijtccusparse.pc @ONLY)
install(EXPORT aijtccusparseTargets NAMESPACE aijtccusparse:: DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/aijtccusparseConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/aijtccusparseConfigVersion.cmake cmake/FindPETSc.cmake DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/aijtccusparse.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
