#include "engine/openai/dialect.hpp"

#include <array>

#include "json/members.hpp"

namespace sluice {
namespace {

struct Known {
  std::string_view host;   // empty: any
  std::string_view owner;  // of a model
  Dialect dialect;
};

constexpr std::array<Known, 4> kKnown = {{
    {.host = "api.openai.com",
     .owner = {},
     .dialect = {.name = "OpenAI", .renames_max_tokens = true}},
    {.host = {},
     .owner = "llamacpp",
     .dialect = {.name = "llama-server",
                 .has_local_sampling = true,
                 .repeat_penalty = "repeat_penalty",
                 .has_grammar = true,
                 .responses_take_chat_parameters = true,
                 .hides_limit = true}},
    {.host = {},
     .owner = "vllm",
     .dialect = {.name = "vLLM",
                 .has_local_sampling = true,
                 .repeat_penalty = "repetition_penalty"}},
    {.host = {}, .owner = "library", .dialect = {.name = "Ollama"}},
}};

}  // namespace

const Dialect kCommonDialect = {.name = "common"};

const Dialect& dialect_of(std::string_view host, const json::object& model) {
  const std::string_view owner = text_at(model, "owned_by");
  for (const Known& known : kKnown) {
    if (known.host.empty() ? known.owner == owner : known.host == host) return known.dialect;
  }
  return kCommonDialect;
}

}  // namespace sluice
