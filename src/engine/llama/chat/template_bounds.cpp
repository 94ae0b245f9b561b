#include "engine/llama/chat/template_bounds.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/text/text.hpp"

namespace sluice {
namespace {

// Several times what the templates of known models have.
constexpr std::size_t kMaxBlocks = 200;
constexpr std::size_t kMaxBrackets = 100;
constexpr std::size_t kMaxCode = 4096;  // bytes of a tag, without its texts

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kEnds = " \t\r\n-+";  // of what is in a tag

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("it has " + what);
}

/// Where a tag ends that has begun before `at`: at `close`, or at the end of `source`.
std::size_t end_of_tag(std::string_view source, std::size_t at, std::string_view close) {
  std::size_t code = 0;
  std::size_t depth = 0;
  for (char quote = 0; at < source.size(); ++at) {
    const char c = source[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      if (c == quote) quote = 0;
      continue;
    }
    if (depth == 0 && source.substr(at).starts_with(close)) break;
    if (c == '\'' || c == '"') quote = c;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
    if (depth > kMaxBrackets) refuse("more than 100 brackets in each other");
    if (!kBlanks.contains(c) && ++code > kMaxCode) {
      refuse("a tag that is longer than 4096 bytes, without the texts in it");
    }
  }
  return at;
}

/// The blocks that are open. What follows an `elif` is nested in what precedes it.
class OpenBlocks {
 public:
  void add(std::string_view statement) {
    std::size_t length = 0;
    while (length < statement.size() && is_letter(statement[length])) ++length;
    const std::string_view word = statement.substr(0, length);
    const bool is_assignment = word == "set" && statement.contains('=');
    if (std::ranges::find(kBlocks, word) != kBlocks.end() && !is_assignment) {
      open_.push_back({.word = word, .depth = 1});
      ++depth_;
    } else if (word == "elif" && !open_.empty()) {
      ++open_.back().depth;
      ++depth_;
    } else if (word.starts_with("end") && !open_.empty() && word.substr(3) == open_.back().word) {
      depth_ -= open_.back().depth;
      open_.pop_back();
    }
    if (depth_ > kMaxBlocks) refuse("more than 200 blocks in each other");
  }

 private:
  static constexpr std::array<std::string_view, 6> kBlocks = {"if",   "for",    "macro",
                                                              "call", "filter", "set"};
  struct Block {
    std::string_view word;
    std::size_t depth;
  };
  std::vector<Block> open_;
  std::size_t depth_ = 0;
};

}  // namespace

void check_template_bounds(std::string_view source) {
  OpenBlocks blocks;
  for (std::size_t at = source.find('{'); at != std::string_view::npos; at = source.find('{', at)) {
    const std::string_view open = source.substr(at, 2);
    at += 1;
    if (open == "{#") {
      at = source.find("#}", at);
    } else if (open == "{{") {
      at = end_of_tag(source, at + 1, "}}");
    } else if (open == "{%") {
      const std::size_t end = end_of_tag(source, at + 1, "%}");
      blocks.add(trim(source.substr(at + 1, end - at - 1), kEnds));
      at = end;
    }
  }
}

}  // namespace sluice
