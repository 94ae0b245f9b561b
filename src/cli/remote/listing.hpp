#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/terminal/terminal.hpp"
#include "json/json.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// The arguments of a tool, as in `(query: string, limit?: integer)`. Optional ones have a question
/// mark. Of prompts too, whose arguments are texts.
std::string signature_of(const json::object& definition);

/// The first sentence of a description, on one line and of at most kMaxSentence bytes.
std::string first_sentence(std::string_view description);
inline constexpr std::size_t kMaxSentence = 200;

/// A line for each entry: its name with `signature_of()`, or its URI, then what it is.
std::string listing_of(std::span<const Listed> entries, const Style& style);

/// {"KEY":[...]}, with the definitions as the server sent them, on one line.
std::string json_listing(std::string_view key, std::span<const Listed> entries);

}  // namespace sluice
