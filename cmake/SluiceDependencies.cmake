# Third-party libraries. Why each was chosen: docs/dependencies.md.

find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost 1.81 REQUIRED)

# Static libraries, because shared ones would bring a second C++ runtime into the process.
# Statically: a program that is started for a moment loads less then.
find_library(SLUICE_SQLITE_LIBRARY libsqlite3.a REQUIRED)
find_library(SLUICE_YAML_CPP_LIBRARY libyaml-cpp.a REQUIRED)
find_path(SLUICE_YAML_CPP_INCLUDE_DIR yaml-cpp/parser.h REQUIRED)
add_library(sluice_yaml_cpp INTERFACE)
target_link_libraries(sluice_yaml_cpp INTERFACE ${SLUICE_YAML_CPP_LIBRARY})
target_include_directories(sluice_yaml_cpp SYSTEM INTERFACE ${SLUICE_YAML_CPP_INCLUDE_DIR})
find_library(SLUICE_RE2_LIBRARY libre2.a REQUIRED)
find_path(SLUICE_RE2_INCLUDE_DIR re2/re2.h REQUIRED)
add_library(sluice_re2 INTERFACE)
target_link_libraries(sluice_re2 INTERFACE ${SLUICE_RE2_LIBRARY} Threads::Threads)
target_include_directories(sluice_re2 SYSTEM INTERFACE ${SLUICE_RE2_INCLUDE_DIR})

# Beast and the buffers of Asio that it uses, without deprecated names and Boost.Date_Time.
add_library(sluice_beast INTERFACE)
target_link_libraries(sluice_beast INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(sluice_beast INTERFACE
  BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_DATE_TIME)

if(SLUICE_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(SLUICE_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
