#include "engine/llama/chat/control_texts.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"

namespace sluice {
namespace {

bool is_of_word(char c) {
  return is_letter(c) || is_digit(c);
}

/// Whether a token that the makers of a vocabulary have added is more than a word or blanks.
bool is_format(std::string_view text) {
  const char first = text.empty() ? ' ' : text.front();
  return first > ' ' && first < 0x7F && !is_of_word(first);
}

/// How a text begins.
enum class TextBeginning : std::uint8_t {
  other,
  part,  // it is the beginning of one of them
  whole  // with one of them
};

/// How `text` begins, of those that are `sorted`.
TextBeginning beginning_of(std::string_view text, const std::vector<std::string>& sorted) {
  auto left = std::ranges::subrange(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < text.size() && !left.empty(); ++i) {
    left = std::ranges::equal_range(
        left, static_cast<unsigned char>(text[i]), {},
        [i](const std::string& each) { return static_cast<unsigned char>(each[i]); });
    if (!left.empty() && left.front().size() == i + 1) return TextBeginning::whole;
  }
  return left.empty() ? TextBeginning::other : TextBeginning::part;
}

/// Whether a name with this character is none of a programming language. A schema has the others in
/// several places, which must stay the same.
bool is_of_format(char c) {
  constexpr std::string_view kOfNames = "_-.$@";
  return !is_of_word(c) && !kOfNames.contains(c);
}

void sort_once(std::vector<std::string>& texts) {
  std::ranges::sort(texts);
  const auto repeated = std::ranges::unique(texts);
  texts.erase(repeated.begin(), repeated.end());
}

std::vector<std::string> control_texts(const llama_vocab* vocab) {
  std::vector<std::string> out;
  for (llama_token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    const unsigned attributes = llama_vocab_get_attr(vocab, token);
    const char* const text = llama_vocab_get_text(vocab, token);
    const bool is_control =
        (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0 ||
        llama_vocab_is_eog(vocab, token) ||
        ((attributes & LLAMA_TOKEN_ATTR_USER_DEFINED) != 0 && is_format(text));
    if (is_control) out.emplace_back(text);
  }
  return out;
}

}  // namespace

ControlTexts ControlTexts::of(const ChatTemplateText& tokenizer, bool are_joined) {
  std::vector<std::string> texts = tokenizer.special_tokens;
  std::ranges::copy_if(tokenizer.added_tokens, std::back_inserter(texts), is_format);
  return ControlTexts(std::move(texts), are_joined);
}

ControlTexts::ControlTexts(const llama_vocab* vocab, bool are_joined)
    : ControlTexts(control_texts(vocab), are_joined) {}

ControlTexts::ControlTexts(std::vector<std::string> texts, bool are_joined)
    : texts_(std::move(texts)), are_joined_(are_joined) {
  std::erase_if(texts_, [](const std::string& text) {
    return text.empty() || first_utf8_part(text).length == text.size();
  });
  sort_once(texts_);
  for (const std::string& text : texts_) {
    firsts_.set(static_cast<unsigned char>(text.front()));
    for (std::size_t at = first_utf8_part(text).length; at < text.size(); ++at) {
      if (!is_of_word(text[at])) rests_.push_back(text.substr(at));
    }
  }
  sort_once(rests_);
  for (const std::string& rest : rests_) rest_firsts_.set(static_cast<unsigned char>(rest.front()));
}

bool ControlTexts::may_begin(std::string_view text) const {
  return is_first(text.front()) &&
         (are_joined_ || beginning_of(text, texts_) != TextBeginning::other);
}

bool ControlTexts::break_up(std::string& text, std::string_view mark) const {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view left = std::string_view(text).substr(at);
    if (!may_begin(left)) {
      ++at;
      continue;
    }
    at += first_utf8_part(left).length;
    out.append(text, done, at - done).append(mark);
    done = at;
  }
  if (done == 0) return false;
  text = out.append(text, done);
  return true;
}

std::string ControlTexts::joined(std::string_view text, std::string_view mark,
                                 std::string_view between) const {
  std::vector<std::size_t> places;
  std::string plain;
  if (mark.empty()) return std::string(text);
  for (std::size_t end = text.find(mark); end != std::string_view::npos; end = text.find(mark)) {
    plain.append(text.substr(0, end));
    places.push_back(plain.size());
    text.remove_prefix(end + mark.size());
  }
  plain.append(text);
  std::string out;
  std::size_t done = 0;
  for (const std::size_t place : places) {
    // A mark stands behind the first character of what it breaks up.
    std::size_t start = place == 0 ? 0 : place - 1;
    while (start > 0 && (static_cast<unsigned char>(plain[start]) & 0xC0U) == 0x80) --start;
    if (start == place || place == done) continue;
    const std::string_view from = std::string_view(plain).substr(start);
    if (beginning_of(from, texts_) != TextBeginning::whole) continue;
    out.append(plain, done, place - done).append(between);
    done = place;
  }
  return out.append(plain, done);
}

bool ControlTexts::break_up_json(std::string& text, std::string_view mark) const {
  // A backslash may stand for any character.
  const auto may_matter = [this](char c) {
    return c == '\\' || is_first(c) || rest_firsts_[static_cast<unsigned char>(c)];
  };
  if (std::ranges::none_of(text, may_matter)) return false;
  auto value = parse_json(text);
  if (!value) return break_up(text, mark);
  const bool is_broken = break_up_value(*value, mark);
  if (is_broken) text = to_json(*value);
  return is_broken;
}

bool ControlTexts::break_up_value(json::value& value, std::string_view mark) const {
  bool is_broken = false;
  if (value.is_string()) {
    std::string text(value.get_string());
    is_broken = break_up(text, mark);
    if (is_broken) value = text;
  } else if (value.is_array()) {
    for (json::value& each : value.get_array()) is_broken |= break_up_value(each, mark);
  } else if (value.is_object()) {
    json::object renamed;
    for (auto& member : value.get_object()) {
      std::string name(member.key());
      is_broken |= break_up(name, mark);
      if (std::ranges::any_of(name, is_of_format) &&
          beginning_of(name, rests_) != TextBeginning::other) {
        name.insert(0, mark);
        is_broken = true;
      }
      is_broken |= break_up_value(member.value(), mark);
      renamed.emplace(name, std::move(member.value()));
    }
    value = std::move(renamed);
  }
  return is_broken;
}

}  // namespace sluice
