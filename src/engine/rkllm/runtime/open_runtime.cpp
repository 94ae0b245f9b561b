#include <array>
#include <cstddef>
#include <dlfcn.h>

#include "engine/rkllm/runtime/runtime.hpp"
#include "engine/rkllm/runtime/runtime_of.hpp"
#include "net/http/status_codes.hpp"

namespace sluice::rkllm {
namespace {

Result<void*> load(const std::string& path) {
  // Its threads may outlive the last use, so it is never unloaded.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const why = ::dlerror();
  return fail(kUnprocessableContent,
              path + " cannot be loaded: " + (why == nullptr ? "no reason was given" : why));
}

/// More than any RKLLMParam has.
using Poisoned = std::array<std::byte, 1024>;

/// Calls rkllm_createDefaultParam() so that it writes its result, whatever that is, into `result`.
/// A result of this size is returned through a pointer that the caller passes: in rdi as a first
/// parameter (System V x86-64), or in x8 (AAPCS64).
void create_into(void* function, Poisoned& result) {
#if defined(__aarch64__)
  register void* place asm("x8") = result.data();
  register void* called asm("x9") = function;
  asm volatile("blr x9"
               : "+r"(place), "+r"(called)
               :
               : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x10", "x11", "x12", "x13", "x14",
                 "x15", "x16", "x17", "x18", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
                 "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
                 "v28", "v29", "v30", "v31", "memory", "cc");
#else
  reinterpret_cast<void* (*)(void*)>(function)(result.data());
#endif
}

/// How many bytes it writes, up to a multiple of 8, as the last ones may be padding.
std::size_t bytes_written_by(void* function) {
  std::size_t count = 0;
  for (const std::byte poison : {std::byte{0xA5}, std::byte{0x5A}}) {
    Poisoned result;
    result.fill(poison);
    create_into(function, result);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result.at(i) != poison) count = std::max(count, i + 1);
    }
  }
  return (count + 7) / 8 * 8;
}

}  // namespace

Result<std::unique_ptr<Runtime>> open_runtime(const std::string& path, Abi abi) {
  const Result<void*> library = load(path);
  if (!library) return std::unexpected(library.error());
  switch (abi) {
    case Abi::v1_1:
      return RuntimeOf<v1_1::Types>::find(*library, path);
    case Abi::v1_2_0:
      return RuntimeOf<v1_2_0::Types>::find(*library, path);
    case Abi::v1_2_1:
      return RuntimeOf<v1_2_1::Types>::find(*library, path);
    case Abi::v1_3_0:
      break;
  }
  return RuntimeOf<v1_3::Types>::find(*library, path);
}

Result<Abi> probe_abi(const std::string& path) {
  const Result<void*> library = load(path);
  if (!library) return std::unexpected(library.error());
  void* const create = ::dlsym(*library, "rkllm_createDefaultParam");
  if (create == nullptr) {
    return fail(kUnprocessableContent, path + " lacks rkllm_createDefaultParam");
  }
  const std::size_t bytes = bytes_written_by(create);
  // 1.2.0 and 1.2.1 have the same parameters, and other functions.
  const bool has_tools = ::dlsym(*library, "rkllm_set_function_tools") != nullptr;
  for (const AbiFacts& each : all_abis()) {
    if (each.param_bytes == bytes && each.has_function_tools == has_tools) return each.abi;
  }
  return fail(kUnprocessableContent,
              path + " has an interface that is not known: its parameters have " +
                  std::to_string(bytes) + " bytes");
}

}  // namespace sluice::rkllm
