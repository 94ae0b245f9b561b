// The JSON-RPC parser. Each message that it accepts keeps the promises of Message, its id is
// returned unchanged, and parsing one text does not affect how the next is parsed.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/utf8.hpp"
#include "require.hpp"
#include "rpc/error_codes.hpp"
#include "rpc/message.hpp"

namespace {

using namespace sluice;

void check_id(const RequestId& id) {
  if (id.empty()) return;
  if (id.starts_with('"')) {
    const Result<json::value> value = parse_json(id);
    require(value && value->is_string());
  } else {
    const std::string_view digits = std::string_view(id).substr(id.starts_with('-') ? 1 : 0);
    require(!digits.empty());
    require(digits.find_first_not_of("0123456789") == std::string_view::npos);
    require(digits.size() == 1 || !digits.starts_with('0'));
  }
}

void check_error(const MessageError& error) {
  require(error.error.code == kParseError || error.error.code == kInvalidRequest);
  check_id(error.id);
  std::string out;
  append_error(out, error.id, error.error);
  require(parse_json(out).has_value());
}

void check(const Message& message, std::string_view text) {
  check_id(message.id);
  require(message.text.data() == text.data() && message.text.size() == text.size());
  require(is_valid_utf8(text));
  require(message.body != nullptr);
  require((message.kind == MessageKind::notification) == message.id.empty());
  require(message.kind != MessageKind::response || message.method.empty());
  require((message.params != nullptr) == message.body->contains("params"));
  const json::value& first = message.body->begin()->value();
  exact_text(first, text, {message.body->begin()->key()});
  if (message.id.empty()) return;

  std::string out;
  append_result(out, message.id, to_json(*message.body));
  MessageParser parser;
  const std::expected<Message, MessageError> back = parser.parse(out);
  // The reply is nested one level deeper than the input, so it may exceed the depth limit by one.
  require(back ? back->kind == MessageKind::response && back->id == message.id
               : back.error().error.code == kParseError);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  MessageParser fresh;
  const std::expected<Message, MessageError> message = fresh.parse(text);
  if (message) {
    check(*message, text);
  } else {
    check_error(message.error());
  }

  static MessageParser used;
  const std::expected<Message, MessageError> again = used.parse(text);
  require(again.has_value() == message.has_value());
  if (again) {
    require(again->id == message->id && again->method == message->method);
    require(to_json(*again->body) == to_json(*message->body));
  } else {
    require(again.error().error.message == message.error().error.message);
  }
  return 0;
}
