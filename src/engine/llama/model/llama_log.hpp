#pragma once

#include <stdexcept>
#include <string>

namespace sluice {

/// Initializes llama.cpp once and sends what it logs to our log: as debug, but errors as warnings
/// where no LlamaGuard says that the caller deals with them. Thread-safe.
void initialize_llama();

/// An assertion inside llama.cpp failed. The object it was working on is in doubt.
class LlamaAssertion : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// While one lives, a failed assertion of llama.cpp on this thread throws LlamaAssertion instead of
/// ending the process, and the last error that it logged on this thread is kept.
class LlamaGuard {
 public:
  LlamaGuard();
  ~LlamaGuard();
  LlamaGuard(const LlamaGuard&) = delete;
  LlamaGuard& operator=(const LlamaGuard&) = delete;

  /// Without llama.cpp's function names; "" if none was logged.
  [[nodiscard]] static std::string last_error();
};

}  // namespace sluice
