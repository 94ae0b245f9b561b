# Installs the library: libsluice.a, its headers, and what find_package(sluice) and pkg-config read.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(modules core json json_schema coding stream rpc protocol net auth server client local
  engine agent)
list(TRANSFORM modules REPLACE "(.+)" "$<TARGET_OBJECTS:sluice_\\1>" OUTPUT_VARIABLE objects)
add_library(libsluice STATIC ${objects})
set_target_properties(libsluice PROPERTIES OUTPUT_NAME sluice LINKER_LANGUAGE CXX)

install(TARGETS libsluice ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/sluice"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT library)

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/sluice")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/sluiceConfig.cmake.in"
  "${CMAKE_BINARY_DIR}/sluiceConfig.cmake"
  INSTALL_DESTINATION "${config_dir}"
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/sluiceConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
# Paths are relative to sluice.pc, so any prefix works, including one given to cmake --install. With
# absolute install folders, only the configured prefix works.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(SLUICE_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
  set(SLUICE_PC_INCLUDEDIR "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
  file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
  set(SLUICE_PC_PREFIX "\${pcfiledir}/${to_prefix}")
  set(SLUICE_PC_INCLUDEDIR "\${pcfiledir}/${to_prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/sluice.pc.in" "${CMAKE_BINARY_DIR}/sluice.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/sluiceConfig.cmake" "${CMAKE_BINARY_DIR}/sluiceConfigVersion.cmake"
  DESTINATION "${config_dir}" COMPONENT library)
install(FILES "${CMAKE_BINARY_DIR}/sluice.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT library)
