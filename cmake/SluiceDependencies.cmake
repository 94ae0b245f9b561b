# Third-party libraries. Why each was chosen: docs/dependencies.md.

find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(ZLIB REQUIRED)
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.81 REQUIRED COMPONENTS json)

# The archive: the shared library would bring a second C++ runtime into the process.
find_library(SLUICE_RE2_LIBRARY libre2.a REQUIRED)
find_path(SLUICE_RE2_INCLUDE_DIR re2/re2.h REQUIRED)
add_library(sluice_re2 INTERFACE)
target_link_libraries(sluice_re2 INTERFACE ${SLUICE_RE2_LIBRARY} Threads::Threads)
target_include_directories(sluice_re2 SYSTEM INTERFACE ${SLUICE_RE2_INCLUDE_DIR})

# Asio without its deprecated names and without the Boost.Date_Time timers nobody here uses.
add_library(sluice_asio INTERFACE)
target_link_libraries(sluice_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(sluice_asio INTERFACE
  BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_DATE_TIME)

if(SLUICE_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(SLUICE_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
