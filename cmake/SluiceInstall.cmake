# Installs the library: libsluice.a, libsluice_llama.a, their headers, and what find_package(sluice) and
# pkg-config read.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(modules core json json_schema coding stream rpc protocol net auth server client local
  engine agent)
list(TRANSFORM modules REPLACE "(.+)" "$<TARGET_OBJECTS:sluice_\\1>" OUTPUT_VARIABLE objects)
add_library(libsluice STATIC ${objects})
set_target_properties(libsluice PROPERTIES OUTPUT_NAME sluice LINKER_LANGUAGE CXX)

install(TARGETS libsluice ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/sluice"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT library
  PATTERN local_model.hpp EXCLUDE)

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
set(packages sluice)
if(SLUICE_WITH_LLAMA)
  list(APPEND packages sluice-llama)
endif()
foreach(package ${packages})
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in" "${CMAKE_BINARY_DIR}/${package}.pc" @ONLY)
  install(FILES "${CMAKE_BINARY_DIR}/${package}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT library)
endforeach()
install(FILES "${CMAKE_BINARY_DIR}/sluiceConfig.cmake" "${CMAKE_BINARY_DIR}/sluiceConfigVersion.cmake"
  DESTINATION "${config_dir}" COMPONENT library)

if(SLUICE_WITH_LLAMA)
  # One file with llama.cpp's libraries in it: a program has one library to link, in no special order,
  # and none of its files is taken for that of another llama.cpp in the same prefix.
  add_library(libsluice_llama STATIC $<TARGET_OBJECTS:sluice_llama>)
  set_target_properties(libsluice_llama PROPERTIES OUTPUT_NAME sluice_llama LINKER_LANGUAGE CXX
    ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/install")
  add_custom_command(TARGET libsluice_llama POST_BUILD
    COMMAND "${CMAKE_AR}" qLs $<TARGET_FILE:libsluice_llama> ${llama_libraries} VERBATIM)
  install(TARGETS libsluice_llama ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library)
  install(FILES "${CMAKE_SOURCE_DIR}/include/sluice/local_model.hpp"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/sluice" COMPONENT library)
  if(EXISTS "${llama_prefix}/LICENSE")
    install(FILES "${llama_prefix}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
      RENAME llama.cpp-LICENSE COMPONENT library)
  endif()
endif()
