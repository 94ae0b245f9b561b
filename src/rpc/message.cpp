#include "rpc/message.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Walks JSON text without building anything, for what a number loses in a double and for how many
/// messages a batch has. It comes to an end also where the text is not well-formed.
class TextWalker {
 public:
  explicit TextWalker(std::string_view text) : text_(text) {}

  /// The text of the last member at `path`, or empty.
  std::string_view member(std::initializer_list<std::string_view> path) {
    std::string_view found = text_;
    for (const std::string_view name : path) found = TextWalker(found).last_member(name);
    return found;
  }

  /// The texts of an array's elements, at most `max` of them.
  std::vector<std::string_view> elements(std::size_t max) {
    std::vector<std::string_view> found;
    skip_space();
    ++at_;  // the bracket
    for (;;) {
      skip_space();
      if (at_ >= text_.size() || text_[at_] == ']' || found.size() == max) return found;
      const std::size_t start = at_;
      skip_value();
      if (at_ == start) return found;
      found.push_back(text_.substr(start, at_ - start));
      skip_space();
      if (at_ < text_.size() && text_[at_] == ',') ++at_;
    }
  }

  /// Calls `visit` with the name and the text of each member of an object.
  template <class Visit>
  void each_member(Visit&& visit) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != '{') return;
    ++at_;
    for (;;) {
      skip_space();
      if (at_ >= text_.size() || text_[at_] == '}') return;
      const std::size_t key_start = at_ + 1;
      skip_string();
      const std::string_view key = text_.substr(key_start, at_ - key_start - 1);
      skip_space();
      ++at_;  // the colon
      skip_space();
      const std::size_t value_start = std::min(at_, text_.size());
      skip_value();
      visit(key, text_.substr(value_start, at_ - value_start));
      skip_space();
      if (at_ < text_.size() && text_[at_] == ',') ++at_;
    }
  }

 private:
  std::string_view last_member(std::string_view name) {
    std::string_view found;
    each_member([&](std::string_view key, std::string_view value) {
      if (key == name) found = value;
    });
    return found;
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  void skip_string() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    ++at_;
  }

  void skip_value() {
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') {
        if (depth == 0) return;
        --depth;
      }
      if (depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t')) return;
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// The most values and names that a message has, or one for so many of its bytes.
constexpr std::size_t kMaxValues = std::size_t{1} << 18U;
constexpr std::size_t kBytesPerValue = 16;

/// Bytes of a message whose memory is not kept for the next.
constexpr std::size_t kLong = std::size_t{64} << 10U;

std::unexpected<MessageError> invalid(std::string why, RequestId id = {}) {
  return std::unexpected(
      MessageError{{kInvalidRequest, "Invalid Request: " + std::move(why), {}}, std::move(id)});
}

}  // namespace

void MessageParser::forget_long() {
  if (!std::exchange(is_long_, false)) return;
  std::destroy_at(&root_);
  std::construct_at(&root_);
  parser_ = JsonParser();  // a parser keeps the buffers it has grown
  memory_.clear();
}

bool is_batch(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '[';
}

std::expected<void, MessageError> MessageParser::read(std::string_view text) {
  root_ = json::value();
  is_long_ = text.size() > kLong;
  memory_.clear();
  std::expected<json::value, JsonSyntaxError> value =
      parser_.parse(text, &memory_, std::max(kMaxValues, text.size() / kBytesPerValue));
  if (!value) {
    return std::unexpected(MessageError{
        {kParseError,
         "Parse error: " + value.error().reason + " at byte " + std::to_string(value.error().at) +
             "; send one JSON-RPC message as UTF-8 JSON",
         {}},
        {}});
  }
  // Construct instead of assigning: an assigned value would keep its previous memory resource.
  std::destroy_at(&root_);
  std::construct_at(&root_, *std::move(value));
  return {};
}

std::expected<std::vector<std::string_view>, MessageError> MessageParser::parse_batch(
    std::string_view text, std::size_t max) {
  std::vector<std::string_view> messages;
  if (is_batch(text)) messages = TextWalker(text).elements(max + 1);
  // Before anything is built of them.
  if (messages.size() > max) {
    return invalid("the batch has more than " + std::to_string(max) + " messages; split it");
  }
  if (std::expected<void, MessageError> is_json = read(text); !is_json) {
    return std::unexpected(std::move(is_json.error()));
  }
  if (!root_.is_array()) return invalid("a batch must be a JSON array");
  if (messages.empty()) return invalid("the batch is empty; send at least one message");
  // Each of them will be built by itself.
  forget_long();
  return messages;
}

std::expected<Message, MessageError> MessageParser::parse(std::string_view text) {
  if (std::expected<void, MessageError> is_json = read(text); !is_json) {
    return std::unexpected(std::move(is_json.error()));
  }
  const json::object* const body = root_.if_object();
  if (body == nullptr) {
    return invalid(root_.is_array() ? "batches are not part of this protocol revision; send one "
                                      "message at a time"
                                    : "a message must be a JSON object");
  }
  Message message;
  message.body = body;
  message.text = text;
  message.values = parser_.values();
  if (const json::value* id = body->if_contains("id")) {
    std::optional<std::string> exact = exact_text(*id, text, {"id"});
    if (!exact) return invalid("\"id\" must be a string or an integer");
    if (exact->size() > kMaxRequestId) {
      return invalid("\"id\" may have at most " + std::to_string(kMaxRequestId) + " bytes");
    }
    message.id = std::move(*exact);
  }
  const json::value* const version = body->if_contains("jsonrpc");
  if (version == nullptr || !version->is_string() || version->get_string() != "2.0") {
    return invalid("\"jsonrpc\" must be \"2.0\"", std::move(message.id));
  }
  if (const json::value* params = body->if_contains("params")) {
    message.params = params->if_object();
    if (message.params == nullptr) {
      return invalid("\"params\" must be an object", std::move(message.id));
    }
  }
  if (const json::value* method = body->if_contains("method")) {
    if (!method->is_string()) return invalid("\"method\" must be a string", std::move(message.id));
    message.method = method->get_string();
    message.kind = message.id.empty() ? MessageKind::notification : MessageKind::request;
    return message;
  }
  if (!message.id.empty() && (body->contains("result") || body->contains("error"))) {
    message.kind = MessageKind::response;
    return message;
  }
  return invalid("\"method\" is missing", std::move(message.id));
}

std::optional<std::string> exact_text(const json::value& value, std::string_view text,
                                      std::initializer_list<std::string_view> path) {
  std::string out;
  if (const json::string* string = value.if_string()) {
    append_json_string(out, *string);
  } else if (const std::int64_t* integer = value.if_int64()) {
    append_number(out, *integer);
  } else if (const std::uint64_t* natural = value.if_uint64()) {
    append_number(out, *natural);
  } else if (value.is_double()) {
    const std::string_view digits = TextWalker(text).member(path);
    // The walker compares names without resolving escapes. It may therefore have found a different
    // member with the same name (one of the two written with escapes), which need not be a number.
    if (digits.empty() || digits.find_first_not_of("-0123456789") != std::string_view::npos) {
      return {};
    }
    out = digits;
  } else {
    return {};
  }
  return out;
}

namespace {

RequestId id_of(std::string_view text, bool is_request) {
  std::string_view id;
  bool has_method = false;
  TextWalker(text).each_member([&](std::string_view name, std::string_view value) {
    if (name == "id") id = value;
    if (name == "method") has_method = true;
  });
  if (has_method != is_request || id.size() > kMaxRequestId) return {};
  const Result<json::value> value = parse_json(id);
  if (!value) return {};
  std::optional<std::string> exact = exact_text(*value, id, {});
  if (!exact || exact->size() > kMaxRequestId) return {};
  return *std::move(exact);
}

}  // namespace

RequestId request_id_of(std::string_view text) {
  return id_of(text, true);
}

RequestId response_id_of(std::string_view text) {
  return id_of(text, false);
}

void append_result(std::string& out, const RequestId& id, std::string_view result) {
  static constexpr std::size_t kRest = 40;  // at least what stands around the two
  out.reserve(out.size() + id.size() + result.size() + kRest);
  begin_result(out, id);
  out.append(result);
  end_result(out);
}

void begin_result(std::string& out, const RequestId& id) {
  out.append(R"({"jsonrpc":"2.0","id":)").append(id).append(R"(,"result":)");
}

void end_result(std::string& out) {
  out.push_back('}');
}

const json::object& params_of(const Message& message) {
  static const json::object kNone;
  return message.params == nullptr ? kNone : *message.params;
}

void append_error(std::string& out, const RequestId& id, const Error& error) {
  out.append(R"({"jsonrpc":"2.0")");
  if (!id.empty()) out.append(R"(,"id":)").append(id);
  out.append(R"(,"error":)");
  append_json_error(out, error);
  out.push_back('}');
}

std::optional<int> error_code_of(std::string_view response, const RequestId& id) {
  static constexpr std::string_view kError = R"(,"error":{"code":)";
  const std::size_t head = std::string_view(R"({"jsonrpc":"2.0","id":)").size() + id.size();
  if (response.size() <= head || !response.substr(head).starts_with(kError)) return {};
  int code = 0;
  const std::string_view digits = response.substr(head + kError.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), code);
  return code;
}

}  // namespace sluice
