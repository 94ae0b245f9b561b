# llama.cpp as the target sluice_llama_cpp: llama, ggml and llama.cpp's `common` library (chat
# templates, JSON Schema to GBNF), static. scripts/llama-cpp builds it once per machine, outside the
# build tree and without sanitizers, so that every preset shares one build.

set(SLUICE_LLAMA_PREFIX "" CACHE PATH "An installed llama.cpp (default: what scripts/llama-cpp built)")

set(llama_prefix "${SLUICE_LLAMA_PREFIX}")
if(NOT llama_prefix)
  execute_process(
    COMMAND "${CMAKE_SOURCE_DIR}/scripts/llama-cpp" prefix
    OUTPUT_VARIABLE llama_prefix OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  # SLUICE_CACHE, which determines the folder, may have been set only for scripts/build. The
  # folder's name identifies everything else.
  get_filename_component(wanted "${llama_prefix}" NAME)
  get_filename_component(found "${SLUICE_LLAMA_FOUND}" NAME)
  if(NOT EXISTS "${llama_prefix}/.complete" AND found STREQUAL wanted
     AND EXISTS "${SLUICE_LLAMA_FOUND}/.complete")
    message(STATUS "llama.cpp: staying with ${SLUICE_LLAMA_FOUND}")
    set(llama_prefix "${SLUICE_LLAMA_FOUND}")
  endif()
  if(NOT EXISTS "${llama_prefix}/.complete")
    message(FATAL_ERROR
      "llama.cpp is not built yet: run scripts/setup (or scripts/llama-cpp build), point "
      "-DSLUICE_LLAMA_PREFIX at an installation, or leave it out with -DSLUICE_WITH_LLAMA=OFF.")
  endif()
  set(SLUICE_LLAMA_FOUND "${llama_prefix}" CACHE INTERNAL "The llama.cpp of the last configuration")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    "${CMAKE_SOURCE_DIR}/scripts/llama-cpp" "${CMAKE_SOURCE_DIR}/cmake/llama.cmake"
    "${CMAKE_SOURCE_DIR}/cmake/llama-prefetch.patch")
elseif(NOT EXISTS "${llama_prefix}/lib/libllama-common.a")
  message(FATAL_ERROR "There is no ${llama_prefix}/lib/libllama-common.a (SLUICE_LLAMA_PREFIX)")
endif()

# In link order: each library precedes those that it needs.
set(llama_libraries "")
foreach(name llama-common llama-common-base llama ggml ggml-cpu ggml-base)
  list(APPEND llama_libraries "${llama_prefix}/lib/lib${name}.a")
endforeach()

add_library(sluice_llama_cpp INTERFACE)
# SYSTEM, because our warnings do not apply to its headers.
target_include_directories(sluice_llama_cpp SYSTEM INTERFACE
  "${llama_prefix}/include" "${llama_prefix}/include/common")
target_link_libraries(sluice_llama_cpp INTERFACE
  ${llama_libraries} Threads::Threads ${CMAKE_DL_LIBS} m)
