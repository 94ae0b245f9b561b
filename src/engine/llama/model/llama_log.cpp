#include "engine/llama/model/llama_log.hpp"

#include <common/log.h>
#include <ggml.h>
#include <llama.h>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/log/log.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxLine = 4096;

thread_local int guards = 0;
thread_local std::string line;
thread_local bool is_error = false;
thread_local std::string kept_error;

/// Removes the prefixes that only concern llama.cpp: "llama_model_load: error loading model: x"
/// becomes "x".
std::string without_origin(std::string_view text) {
  for (const std::string_view prefix : {"error loading model: ", "failed to "}) {
    if (const auto at = text.find(prefix); at != std::string_view::npos) {
      text.remove_prefix(prefix.starts_with("error") ? at + prefix.size() : at);
    }
  }
  const auto colon = text.find(": ");
  const auto space = text.find(' ');
  if (colon != std::string_view::npos && colon < space) text.remove_prefix(colon + 2);
  return std::string(text);
}

void on_log(ggml_log_level level, const char* text, void* /*user*/) {
  if (level != GGML_LOG_LEVEL_CONT) {
    line.clear();
    is_error = level == GGML_LOG_LEVEL_ERROR;
  }
  if (line.size() < kMaxLine) line += text;
  if (line.empty() || line.back() != '\n') return;
  line.pop_back();
  if (is_error && guards > 0) {
    // The last line says only that loading failed; the line before it says why.
    std::string error = without_origin(line);
    if (error != "failed to load model" && !error.empty()) kept_error = std::move(error);
  }
  log(is_error && guards == 0 ? LogLevel::warning : LogLevel::trace, line,
      {{"source", std::string_view("llama.cpp")}});
  line.clear();
}

void on_abort(const char* message) {
  log(guards > 0 ? LogLevel::trace : LogLevel::error, "llama.cpp failed an assertion",
      {{"message", std::string_view(message)}});
  if (guards > 0) throw LlamaAssertion(message);
}

}  // namespace

void initialize_llama() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(on_log, nullptr);
    common_log_set_verbosity_thold(-1);
    ggml_set_abort_callback(on_abort);
    llama_backend_init();
  });
}

LlamaGuard::LlamaGuard() {
  if (guards++ == 0) kept_error.clear();
}

LlamaGuard::~LlamaGuard() {
  --guards;
}

std::string LlamaGuard::last_error() {
  return kept_error;
}

}  // namespace sluice
