#pragma once

#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// How a kind of server differs from what all servers of the API have in common.
struct Dialect {
  std::string_view name;
  /// Takes llama.cpp's ways to choose a token: top_k, min_p and repeat_penalty.
  bool has_local_sampling = false;
  std::string_view repeat_penalty = {};  // its name for that
  bool has_grammar = false;              // GBNF, in `grammar`
  /// `max_completion_tokens` in place of `max_tokens`, which its newer models refuse.
  bool renames_max_tokens = false;
  /// Its Responses API takes the parameters of its chat completions, and their form of a schema.
  bool responses_take_chat_parameters = false;
  /// Its Responses API calls an answer complete that has reached its limit.
  bool hides_limit = false;
};

extern const Dialect kCommonDialect;

/// The dialect of a server by its host, and by an entry of its list of models (GET /v1/models),
/// which names an owner.
const Dialect& dialect_of(std::string_view host, const json::object& model);

}  // namespace sluice
