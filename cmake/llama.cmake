# scripts/llama-cpp injects this file into the CMake project of the pinned llama.cpp. The build then
# takes half the time, and upstream's files stay unchanged. CMake reads this file before upstream
# defines the targets; the settings are applied at the end of upstream's top CMakeLists.txt.

set(sluice_patched "${CMAKE_BINARY_DIR}/patched") # what scripts/llama-cpp made of upstream's files

# Makes the objects independent of the path of the sources.
add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}=llama.cpp"
                    "-ffile-prefix-map=${sluice_patched}=llama.cpp")

# A model may answer until the process has ended, so what it uses stays until then.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-c++-static-destructors>)

# Removes the sources that match `regex` from `target`. If Sluice ever needs one of them, linking
# fails.
function(sluice_leave_out target regex)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "${regex}")
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
endfunction()

# Compiles `target` as one unit per given regex. Each unit takes the sources that match its regex
# and no earlier one. The compiler then parses each header and instantiates each template once per
# unit. The paths are relative to the target's directory.
function(sluice_unite target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(directory ${target} SOURCE_DIR)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  string(REPLACE "${directory}/" "" sources "${sources}")
  set(unit 0)
  foreach(regex IN LISTS ARGN)
    set(members ${sources})
    list(FILTER members INCLUDE REGEX "${regex}")
    list(FILTER sources EXCLUDE REGEX "${regex}")
    list(TRANSFORM members PREPEND "${directory}/")
    set_source_files_properties(${members} TARGET_DIRECTORY ${target}
      PROPERTIES UNITY_GROUP ${unit} SKIP_UNITY_BUILD_INCLUSION OFF)
    math(EXPR unit "${unit} + 1")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(sluice_apply_settings)
  # Sluice does not use quantization, the command line and downloads.
  sluice_leave_out(llama "llama-quant")
  sluice_leave_out(llama-common
    "^(arg|console|debug|download|hf-cache|imatrix-loader|llguidance|preset|subproc)[.]")
  get_target_property(libraries llama-common LINK_LIBRARIES)
  list(REMOVE_ITEM libraries cpp-httplib)
  set_target_properties(llama-common PROPERTIES LINK_LIBRARIES "${libraries}")

  # The file that cmake/llama-prefetch.patch changes.
  set(tinyblas ggml/src/ggml-cpu/llamafile)
  sluice_leave_out(ggml-cpu "llamafile/sgemm[.]cpp$")
  target_sources(ggml-cpu PRIVATE "${sluice_patched}/${tinyblas}/sgemm.cpp")
  target_include_directories(ggml-cpu PRIVATE "${CMAKE_SOURCE_DIR}/${tinyblas}")

  # The units are of similar size, so that several cores share the work, and the users of the slow
  # std::regex are in one unit. Sources that define the same names must be in different units:
  # llama-graph and llama-kv-cache-dsv4; json and all others.
  sluice_unite(llama
    "^models/[a-f]" "^models/[g-m]" "^models/[n-z]"
    "^llama-(kv-cache|memory|context)" "^llama-(model|grammar|sampler)|^unicode" ".")
  sluice_unite(llama-common
    "^parsers/" "^chat" "^jinja/" "^json[.]"
    "^(common|json-schema|peg-parser)" ".")

  # ggml, which computes the tensors, keeps -O3. llama samples and tokenizes, and common handles
  # text: -O2 is enough.
  target_compile_options(llama PRIVATE -O2)
  target_compile_options(llama-common PRIVATE -Os)
endfunction()

cmake_language(DEFER CALL sluice_apply_settings)
