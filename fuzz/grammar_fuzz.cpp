// The check of a request's grammar, and llama.cpp's parser behind it: what passes the one must not
// upset the other.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <llama.h>
#include <string>

#include "engine/llama/grammar_check.hpp"
#include "engine/llama/llama_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::initialize_llama();
  const std::string grammar(reinterpret_cast<const char*>(data), size);
  if (!sluice::check_grammar(grammar)) return 0;
  const sluice::LlamaGuard guard;
  try {
    llama_sampler_free(llama_sampler_init_grammar(nullptr, grammar.c_str(), "root"));
  } catch (const std::exception&) {
    // Left recursion.
  }
  return 0;
}
