// The file of a model's vocabulary. What is accepted has each token once, and is what the grammar's
// mask is made of.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "engine/grammar/vocabulary_file.hpp"
#include "json/json.hpp"
#include "require.hpp"

using namespace sluice;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<json::value> file = parse_json(text);
  if (!file || !file->is_object()) return 0;
  const auto tokens = parse_vocabulary(file->get_object(), {.texts = {"</s>"}, .tokens = {0}});
  if (!tokens) {
    require(tokens.error().message.starts_with("has "));
    return 0;
  }
  std::set<TokenId> seen;
  for (const TokenPieces::Entry& each : *tokens) {
    require(each.token >= 0 && static_cast<std::size_t>(each.token) < kMaxTokens);
    require(seen.insert(each.token).second);
  }
  const TokenPieces pieces(*tokens);
  require(!pieces.ends().empty());
  for (const TokenPieces::Entry& each : *tokens) {
    require(pieces.bytes_of(each.token) == (each.ends ? std::string_view() : each.bytes));
  }
  return 0;
}
