#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/outline.hpp"
#include "json/json.hpp"

namespace sluice {

/// A word that may stand where the user types, and what it is.
struct Offer {
  std::string word;  // one that ends with "=" is to be continued
  std::string about = {};

  bool operator==(const Offer&) const = default;
};

/// Whether the words of a command are a target and what its server has.
bool takes_target(const CommandOutline& command);

/// What of a server the user is about to type.
struct TypedWord {
  enum class Place : std::uint8_t {
    target,
    tool,
    resource,
    prompt,
    tool_argument,
    prompt_argument
  };
  Place place = Place::target;
  std::string begin = {};                     // of the word
  std::string target = {};                    // if that is typed already
  std::string name = {};                      // of the tool or prompt, for arguments
  std::vector<std::string> assignments = {};  // before the word
  std::vector<std::string> headers = {};      // of --header
  std::string revision = {};                  // of --revision
};

/// Reads a command line without the program's name, whose last word is typed, by the operands of
/// its command in `program`. Nothing, if that word is no matter of a server: an option or its
/// value, a word of a command behind "--", or one that the command has no use for.
std::optional<TypedWord> typed_word(const CommandOutline& program,
                                    std::span<const std::string> words);

/// The arguments that a tool still takes, as `name=`; or behind `name=` the values that its schema
/// lists. `schema` is its inputSchema.
std::vector<Offer> tool_argument_offers(const json::object& schema, const TypedWord& typed);

/// The arguments that a prompt still takes. `definition` is its entry in the list of prompts.
std::vector<Offer> prompt_argument_offers(const json::object& definition, const TypedWord& typed);

/// The offers that begin as the word does, a line each: the word, a tab, what it is. Words that
/// cannot be typed, with control characters, are left out, and so are those beyond kMaxOffers.
std::string offer_lines(std::span<const Offer> offers, std::string_view begin);
inline constexpr std::size_t kMaxOffers = 1000;

}  // namespace sluice
