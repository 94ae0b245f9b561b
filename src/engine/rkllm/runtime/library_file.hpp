#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/rkllm/abi/abi.hpp"

namespace sluice::rkllm {

/// What a librkllmrt.so says about itself.
struct LibraryFacts {
  std::string path;
  std::string version = {};       // such as "1.2.3"; empty: it does not say
  const AbiFacts* abi = nullptr;  // of that version; null: it is not known
};

/// The places where the runtime is looked for, in their order: the folders of `library_path`
/// (LD_LIBRARY_PATH), then those of the system.
std::vector<std::string> library_places(std::string_view library_path);

/// The first of `places` that has a file; nothing: none has.
std::optional<std::string> find_library(const std::vector<std::string>& places);

/// Reads the file, and does not load it: loading runs its code. Errors: 404, there is no such file;
/// 403, it cannot be read; 422, it is no shared library, one of 32 bits, or one for another
/// processor.
Result<LibraryFacts> inspect_library(const std::string& path);

/// The runtime at `path`, or if that is empty where libraries are (LD_LIBRARY_PATH too). `abi`: the
/// name of its ABI; empty: that of its version. Errors: those of inspect_library(); 404, there is
/// no library; 422, there is no such ABI, or the version is not known.
Result<LibraryFacts> find_runtime(const std::string& path, const std::string& abi);

/// The version that the bytes of a librkllmrt.so name; empty: none, or not clearly one.
std::string version_in(std::string_view bytes);

}  // namespace sluice::rkllm
