# sluice_unity(<target>): compiles the target's files in batches, each batch as one file, because
# most of the time is spent on the headers that they all include. Names in anonymous namespaces must
# therefore be unique within a target. The preset debug compiles file by file, which is faster if a
# single file has changed.
function(sluice_unity target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${SLUICE_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# sluice_test(<target>): registers the test program <target> with CTest as one test. The program
# itself reports how many tests it ran.
function(sluice_test target)
  target_link_libraries(${target} PRIVATE sluice_test_options GTest::gmock GTest::gtest_main)
  sluice_unity(${target})
  add_test(NAME ${target} COMMAND ${target} --gtest_shuffle)
  set_tests_properties(${target} PROPERTIES TIMEOUT 300)
endfunction()

# sluice_module(<name> [LINK <targets>...] [EXCLUDE_REGEX <re>] [FOLDER <folder>])
#
# Makes the static library sluice_<name> from every .cpp file in src/<folder>/, which is src/<name>/
# if it is not given, and the folders inside it and, from every *_test.cpp among them, the test program sluice_<name>_test.
function(sluice_module name)
  cmake_parse_arguments(ARG "" "EXCLUDE_REGEX;FOLDER" "LINK" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER "${name}")
  endif()
  set(dir "${CMAKE_SOURCE_DIR}/src/${ARG_FOLDER}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${dir}/*.cpp")
  if(ARG_EXCLUDE_REGEX)
    list(FILTER sources EXCLUDE REGEX "${ARG_EXCLUDE_REGEX}")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")

  if(NOT sources AND NOT tests)
    return()
  endif()
  if(sources)
    add_library(sluice_${name} STATIC ${sources})
    target_link_libraries(sluice_${name} PUBLIC sluice_options ${ARG_LINK})
    sluice_unity(sluice_${name})
  else()
    add_library(sluice_${name} INTERFACE)
    target_link_libraries(sluice_${name} INTERFACE sluice_options ${ARG_LINK})
  endif()

  if(SLUICE_BUILD_TESTS AND tests)
    add_executable(sluice_${name}_test ${tests})
    target_link_libraries(sluice_${name}_test PRIVATE sluice_${name})
    sluice_test(sluice_${name}_test)
  endif()
endfunction()
