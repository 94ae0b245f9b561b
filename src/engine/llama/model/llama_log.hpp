#pragma once

#include <stdexcept>
#include <string>

namespace sluice {

/// Initializes llama.cpp once and forwards its log to ours, at level debug. Errors become warnings,
/// unless a LlamaGuard says that the caller handles them. Thread-safe.
void initialize_llama();

/// Thrown if an assertion in llama.cpp fails. The object it was working on may be in an invalid
/// state.
class LlamaAssertion : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// While a LlamaGuard exists, a failed assertion of llama.cpp on this thread throws LlamaAssertion
/// instead of ending the process, and the last error that llama.cpp logged on this thread is kept.
class LlamaGuard {
 public:
  LlamaGuard();
  ~LlamaGuard();
  LlamaGuard(const LlamaGuard&) = delete;
  LlamaGuard& operator=(const LlamaGuard&) = delete;

  /// The last error, without llama.cpp's function names; empty if none was logged.
  [[nodiscard]] static std::string last_error();
};

}  // namespace sluice
