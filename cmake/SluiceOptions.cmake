# Language standard, warnings, sanitizers and caching for everything below src/, bench/ and fuzz/.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(SLUICE_BUILD_TESTS "Build the unit tests" ON)
option(SLUICE_BUILD_BENCH "Build the micro-benchmarks and the bench's floor servers" ON)
option(SLUICE_BUILD_EXAMPLES "Build the examples" ON)
option(SLUICE_BUILD_FUZZERS "Build the libFuzzer targets" OFF)
option(SLUICE_WITH_LLAMA "Build the llama.cpp engine" ON)
option(SLUICE_UNITY_BUILD "Compile files in batches" ON)
option(SLUICE_WERROR "Treat warnings as errors" OFF)
set(SLUICE_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, for example address,undefined")

# In depend mode ccache uses the compiler's list of headers and need not preprocess files that are
# not cached yet, which would take a fifth of a cold build.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros
    "${CCACHE_PROGRAM}")
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()

add_library(sluice_options INTERFACE)
target_compile_options(sluice_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${SLUICE_WERROR}>:-Werror>)
target_include_directories(sluice_options INTERFACE
  "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")

# Tests run the libraries, which are optimised. The tests themselves are not: that would double
# their build time.
add_library(sluice_test_options INTERFACE)
target_link_libraries(sluice_test_options INTERFACE sluice_options)
target_compile_options(sluice_test_options INTERFACE -O0)

# Sanitizers reach every target of the project, so that no object file is left uninstrumented.
if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
  add_compile_definitions(SLUICE_SANITIZED)
endif()
# The fuzzer needs code that reports its coverage. The unit tests need not report theirs, which
# would make them take half as long again to compile.
if(SLUICE_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
  target_compile_options(sluice_test_options INTERFACE -fno-sanitize=fuzzer-no-link)
endif()
# Each function can then be placed, or left out, separately.
add_compile_options(-ffunction-sections)

# What runs under load is known to the compiler, which puts it together and the rest out of the way.
# scripts/bench --profile writes the profile. A function that has changed since is compiled as without
# one. The copy has a name of its own for each profile, so that everything is compiled anew with it.
set(SLUICE_PROFILE use CACHE STRING "Profile of the program under load: use, write or none")
set(profile "${CMAKE_CURRENT_LIST_DIR}/load.profdata")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${profile}")
if(SLUICE_PROFILE STREQUAL "write")
  add_compile_options(-fprofile-instr-generate)
  add_link_options(-fprofile-instr-generate)
elseif(SLUICE_PROFILE STREQUAL "use" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT SLUICE_SANITIZE
       AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 19)
  file(MD5 "${profile}" hash)
  set(copy "${CMAKE_BINARY_DIR}/load-${hash}.profdata")
  configure_file("${profile}" "${copy}" COPYONLY)
  add_compile_options("-fprofile-instr-use=${copy}" -Wno-profile-instr-out-of-date
    -Wno-profile-instr-unprofiled)
endif()
add_link_options(-fuse-ld=lld)
