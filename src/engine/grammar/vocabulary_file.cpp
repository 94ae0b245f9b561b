#include "engine/grammar/vocabulary_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/text/utf8.hpp"
#include "engine/chat/text_file.hpp"
#include "engine/chat/tokenizer_files.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

/// The bytes that stand for themselves in GPT-2's letters. The others are the letters from U+0100
/// on, in their order.
bool is_own_letter(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/// The bytes of GPT-2's letters, by code point; nothing: it is none.
using ByteLetters = std::array<std::optional<char>, 324>;

ByteLetters byte_letters() {
  ByteLetters out{};
  std::size_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    out[is_own_letter(byte) ? byte : next++] = static_cast<char>(byte);
  }
  return out;
}

/// The bytes of a token in GPT-2's letters; empty: it is no such token.
std::string bytes_of_letters(std::string_view text) {
  static const ByteLetters kLetters = byte_letters();
  std::string out;
  while (!text.empty()) {
    const Utf8Part part = first_utf8_part(text);
    const char32_t letter = part.valid ? code_point_of(text.substr(0, part.length)) : char32_t{0};
    if (letter >= kLetters.size() || !kLetters[letter]) return {};
    out += *kLetters[letter];
    text.remove_prefix(part.length);
  }
  return out;
}

/// The byte that <0xNN> stands for.
std::optional<char> fallback_byte(std::string_view text) {
  constexpr std::string_view kStart = "<0x";
  if (text.size() != 6 || !text.starts_with(kStart) || text.back() != '>') return std::nullopt;
  const std::string_view digits = text.substr(kStart.size(), 2);
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), byte, 16);
  if (error != std::errc() || end != digits.end()) return std::nullopt;
  return static_cast<char>(byte);
}

/// The bytes of a token as SentencePiece writes it.
std::string bytes_of_piece(std::string_view text) {
  constexpr std::string_view kBlank = "\u2581";
  if (const std::optional<char> byte = fallback_byte(text)) return {*byte};
  std::string out;
  for (std::size_t at = 0; (at = text.find(kBlank)) != std::string_view::npos;
       text.remove_prefix(at + kBlank.size())) {
    out.append(text.substr(0, at)) += ' ';
  }
  return out.append(text);
}

/// The types of a decoder, and of those that it is a sequence of.
std::set<std::string_view> decoder_types(const json::object& file) {
  std::set<std::string_view> out;
  const json::object* const decoder = object_at(file, "decoder");
  if (decoder == nullptr) return out;
  out.insert(text_at(*decoder, "type"));
  const json::value* const all = decoder->if_contains("decoders");
  if (all == nullptr || !all->is_array()) return out;
  for (const json::value& each : all->get_array()) {
    if (const json::object* const one = each.if_object()) out.insert(text_at(*one, "type"));
  }
  return out;
}

std::unexpected<Error> is_unusable(std::string why) {
  return fail(kUnprocessableContent, std::move(why));
}

/// The number of a token; nothing: it is none.
std::optional<TokenId> token_number(const json::value* value) {
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  const std::int64_t number = value->get_int64();
  if (number < 0 || std::cmp_greater_equal(number, kMaxTokens)) return std::nullopt;
  return static_cast<TokenId>(number);
}

void add_ends(const json::value* value, AnswerEnds& ends) {
  if (value == nullptr) return;
  if (const auto token = token_number(value)) ends.tokens.push_back(*token);
  if (!value->is_array()) return;
  for (const json::value& each : value->get_array()) {
    if (const auto token = token_number(&each)) ends.tokens.push_back(*token);
  }
}

}  // namespace

Result<std::vector<TokenPieces::Entry>> parse_vocabulary(const json::object& file,
                                                         const AnswerEnds& ends) {
  const std::set<std::string_view> types = decoder_types(file);
  const bool has_letters = types.contains("ByteLevel");
  if (!has_letters && !types.contains("ByteFallback") && !types.contains("Metaspace")) {
    return is_unusable("has a decoder that is neither of bytes nor of SentencePiece's texts");
  }
  const json::object* const model = object_at(file, "model");
  const json::object* const words = model == nullptr ? nullptr : object_at(*model, "vocab");
  if (words == nullptr) return is_unusable("has no object `vocab` in its `model`");
  std::map<TokenId, TokenPieces::Entry> tokens;
  if (const json::value* const added = file.if_contains("added_tokens");
      added != nullptr && added->is_array()) {
    for (const json::value& each : added->get_array()) {
      const json::object* const facts = each.if_object();
      const auto token = facts == nullptr ? std::nullopt : token_number(facts->if_contains("id"));
      if (!token) return is_unusable("has a token without a number in `added_tokens`");
      const json::value* const special = facts->if_contains("special");
      tokens[*token] = {.token = *token,
                        .bytes = std::string(text_at(*facts, "content")),
                        .control = special != nullptr && special->is_bool() && special->get_bool()};
    }
  }
  std::set<TokenId> seen;
  for (const auto& [text, number] : *words) {
    const auto token = token_number(&number);
    if (!token) return is_unusable("has a token without a number from 0 to 999999 in `vocab`");
    if (!seen.insert(*token).second) {
      return is_unusable("has several tokens with the number " + std::to_string(*token));
    }
    // A token that is added has its text as it is.
    if (tokens.contains(*token)) continue;
    tokens[*token] = {.token = *token,
                      .bytes = has_letters ? bytes_of_letters(text) : bytes_of_piece(text)};
  }
  bool has_end = false;
  std::vector<TokenPieces::Entry> out;
  out.reserve(tokens.size());
  for (auto& [token, entry] : tokens) {
    entry.ends = std::ranges::find(ends.tokens, token) != ends.tokens.end() ||
                 std::ranges::find(ends.texts, entry.bytes) != ends.texts.end();
    has_end = has_end || entry.ends;
    out.push_back(std::move(entry));
  }
  if (!has_end) {
    return is_unusable(
        "has no token that ends an answer; put the model's tokenizer_config.json or "
        "generation_config.json beside it");
  }
  return out;
}

Result<std::vector<TokenPieces::Entry>> read_vocabulary(const std::string& folder) {
  const std::filesystem::path in(folder);
  AnswerEnds ends;
  const auto read_ends = [&](std::string_view name, auto take) -> Result<void> {
    const std::string path = (in / name).string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return {};
    const Result<json::object> file = read_json_file(path, kMaxTokenizerFile);
    if (!file) return std::unexpected(file.error());
    take(*file);
    return {};
  };
  auto read = read_ends("tokenizer_config.json", [&](const json::object& file) {
    if (std::string text = token_text(file.if_contains("eos_token")); !text.empty()) {
      ends.texts.push_back(std::move(text));
    }
  });
  if (read) {
    read = read_ends("generation_config.json", [&](const json::object& file) {
      add_ends(file.if_contains("eos_token_id"), ends);
    });
  }
  if (!read) return std::unexpected(std::move(read.error()));
  const std::string path = (in / kVocabularyFile).string();
  const Result<json::object> file = read_json_file(path, kMaxVocabularyFile);
  if (!file) return std::unexpected(file.error());
  auto tokens = parse_vocabulary(*file, ends);
  if (!tokens) return FileFaults(path)(tokens.error().message);
  return tokens;
}

}  // namespace sluice
