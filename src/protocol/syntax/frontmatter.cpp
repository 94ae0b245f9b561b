#include "protocol/syntax/frontmatter.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

std::unexpected<Error> refuse(std::size_t line, const std::string& why) {
  return fail(kInvalidParams, "frontmatter, line " + std::to_string(line) + ": " + why);
}

/// The value of a plain scalar by the rules of YAML's core schema.
json::value resolve(std::string_view text) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, text) != words.end();
  };
  if (is_one_of({"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of({"true", "True", "TRUE"})) return true;
  if (is_one_of({"false", "False", "FALSE"})) return false;
  std::int64_t integer = 0;
  for (const auto& [prefix, base] : {std::pair("0x", 16), std::pair("0o", 8)}) {
    if (!text.starts_with(prefix)) continue;
    const auto [stop, error] =
        std::from_chars(text.data() + 2, text.data() + text.size(), integer, base);
    const bool whole = error == std::errc() && stop == text.data() + text.size();
    return whole && text[2] != '-' ? json::value(integer) : json::value(text);
  }
  const std::string_view digits = text.substr(text[0] == '+' ? 1 : 0);
  const bool is_number = digits.find_first_not_of("+-.0123456789eE") == std::string_view::npos &&
                         digits.find_first_of("0123456789") != std::string_view::npos;
  if (!is_number || digits.starts_with('+')) return json::value(text);
  const char* const end = digits.data() + digits.size();
  if (const auto [stop, error] = std::from_chars(digits.data(), end, integer);
      error == std::errc() && stop == end) {
    return integer;
  }
  double number = 0;
  if (const auto [stop, error] = std::from_chars(digits.data(), end, number);
      error == std::errc() && stop == end) {
    return number;
  }
  return json::value(text);
}

/// Where and why the frontmatter is refused; thrown through yaml-cpp.
struct Refused {
  int line;  // in the YAML, from 0
  std::string why;
};

/// Builds the value from yaml-cpp's events, which tell of depth and size before memory is used.
class ValueBuilder final : public YAML::EventHandler {
 public:
  json::value take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(mark, nullptr, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) throw Refused{mark.line, "an alias stands within its own anchor"};
    // An alias is a copy in JSON; copies of copies grow exponentially.
    const json::value& value = found->second;
    copied_ += to_json(value).size();
    if (copied_ > kMaxFrontmatter) throw Refused{mark.line, "its aliases repeat too much"};
    check_depth(mark, depth_of(value));
    add(mark, value, YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    // yaml-cpp's tags: "?" for a plain scalar and "!" for a quoted one or a block.
    if (tag == "?") {
      add(mark, is_key() ? json::value(text) : resolve(text), anchor);
    } else if (tag == "!" || tag == "tag:yaml.org,2002:str") {
      add(mark, json::value(text), anchor);
    } else {
      throw Refused{mark.line, "the tag " + tag + " is not supported"};
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, json::array());
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, json::object());
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    json::value value;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    std::optional<std::string> key = {};  // of a mapping, until its value comes
  };

  static std::size_t depth_of(const json::value& value) {
    std::size_t deepest = 0;
    if (const json::array* array = value.if_array()) {
      for (const json::value& each : *array) deepest = std::max(deepest, depth_of(each));
      return deepest + 1;
    }
    if (const json::object* object = value.if_object()) {
      for (const auto& member : *object) deepest = std::max(deepest, depth_of(member.value()));
      return deepest + 1;
    }
    return 0;
  }

  void check_depth(const YAML::Mark& mark, std::size_t more) const {
    if (open_.size() + more > kMaxFrontmatterDepth) throw Refused{mark.line, "nested too deeply"};
  }

  bool is_key() const {
    return !open_.empty() && open_.back().value.is_object() && !open_.back().key;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            json::value value) {
    // "?" and "!" are yaml-cpp's tags for what has none.
    if (tag != "?" && tag != "!" && !tag.empty()) {
      throw Refused{mark.line, "the tag " + tag + " is not supported"};
    }
    if (is_key()) throw Refused{mark.line, "a name must be a text"};
    check_depth(mark, 1);
    open_.push_back({std::move(value), anchor, mark});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(done.mark, std::move(done.value), done.anchor);
  }

  void add(const YAML::Mark& mark, json::value value, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchored_[anchor] = value;
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (json::array* array = open_.back().value.if_array()) {
      array->push_back(std::move(value));
    } else if (is_key()) {
      const json::string* name = value.if_string();
      if (name == nullptr) throw Refused{mark.line, "a name must be a text"};
      open_.back().key = std::string(*name);
    } else {
      json::object& object = open_.back().value.get_object();
      const std::string name = *std::exchange(open_.back().key, std::nullopt);
      if (!object.emplace(name, std::move(value)).second) {
        throw Refused{mark.line, "'" + name + "' appears twice"};
      }
    }
  }

  json::value root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, json::value> anchored_;
  std::size_t copied_ = 0;  // bytes that aliases repeated, as JSON
};

/// `first`: the number of the line on which `yaml` begins.
Result<json::object> parse_yaml(const std::string& yaml, std::size_t first) {
  const auto line = [&](int from_zero) {
    return first + static_cast<std::size_t>(std::max(from_zero, 0));
  };
  try {
    std::istringstream input(yaml);
    YAML::Parser parser(input);
    ValueBuilder builder;
    if (!parser.HandleNextDocument(builder)) return json::object();
    json::value value = builder.take();
    if (value.is_null()) return json::object();
    if (!value.is_object()) return refuse(first, "expected a name, a colon and a value");
    return std::move(value.get_object());
  } catch (const Refused& refused) {
    return refuse(line(refused.line), refused.why);
  } catch (const YAML::Exception& error) {
    return refuse(line(error.mark.line), error.msg);
  }
}

}  // namespace

Result<json::object> parse_frontmatter(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string yaml;
  for (std::size_t number = 1;; ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (yaml.size() + line.size() >= kMaxFrontmatter) {
      return refuse(number,
                    "the frontmatter has more than " + std::to_string(kMaxFrontmatter) + " bytes");
    }
    const bool is_fence = line.starts_with("---") && trim(line, " \t") == "---";
    if (number == 1) {
      if (!is_fence) return refuse(1, "the document must begin with the line ---");
    } else if (is_fence) {
      return parse_yaml(yaml, 2);
    } else {
      if (!is_valid_utf8(line)) return refuse(number, "the line is not valid UTF-8");
      if (std::ranges::any_of(line, [](unsigned char c) { return c < 0x20 && c != '\t'; })) {
        return refuse(number, "the line contains control characters");
      }
      yaml.append(line).push_back('\n');
    }
    if (end == std::string_view::npos)
      return refuse(number, "the frontmatter must end with the line ---");
    text.remove_prefix(end + 1);
  }
}

}  // namespace sluice
