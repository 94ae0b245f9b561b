// What a client says about itself, about a stream and about a task. Whatever negotiation and the
// decoders of parameters accept is within the limits they promise, and whatever they refuse gives
// an error that can be sent.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/error_codes.hpp"
#include "protocol/negotiation.hpp"
#include "protocol/parameters.hpp"
#include "protocol/stream_params.hpp"
#include "protocol/task.hpp"
#include "require.hpp"
#include "rpc/error_codes.hpp"
#include "stream/stream_manager.hpp"

namespace {

using namespace sluice;

constexpr Seq kMaxSeq = Seq{1} << 63U;

void check_refusal(const Error& error) {
  require(error.code == kInvalidParams);
  require(error.message.starts_with("Invalid params: "));
}

void check_decoders(const json::object& params) {
  if (const auto start = decode_run_start(params)) {
    require(start->priority >= StreamManager::kMinPriority);
    require(start->priority <= StreamManager::kMaxPriority);
    require(start->window <= kMaxWindow);
  } else {
    check_refusal(start.error());
  }
  if (const auto poll = decode_run_poll(params)) {
    require(is_poll(params));
    require(poll->wait >= std::chrono::milliseconds(0) && poll->wait <= kMaxPollWait);
    require(poll->from.has_value() == (find_parameter(params, "from_seq") != nullptr));
    require(poll->from.value_or(0) < kMaxSeq);
  } else {
    check_refusal(poll.error());
  }
  if (const auto subscribe = decode_subscribe(params)) {
    require(subscribe->window <= kMaxWindow);
    require(subscribe->from.value_or(0) < kMaxSeq);
    require(decode_stream_id(params).value() == subscribe->stream_id);
  } else {
    check_refusal(subscribe.error());
  }
  if (const auto ack = decode_ack(params)) {
    require(params.contains("seq") && ack->seq < kMaxSeq);
  } else {
    check_refusal(ack.error());
  }
}

void check_task_decoders(const json::object& params) {
  if (const auto request = decode_task_request(params)) {
    require(request->has_value() == params.contains("task"));
    // Limited so that no sum of times overflows.
    if (*request && (*request)->ttl) {
      require((*request)->ttl->count() >= 0 && *(*request)->ttl <= std::chrono::years(101));
    }
  } else {
    check_refusal(request.error());
  }
  if (const auto id = decode_task_id(params)) {
    require(!id->empty() && id->size() <= kMaxTaskId);
  } else {
    check_refusal(id.error());
  }
  if (const auto responses = decode_input_responses(params)) {
    require(*responses == &params.at("inputResponses").get_object());
  } else {
    check_refusal(responses.error());
  }
  if (const auto cursor = decode_cursor(params); !cursor) check_refusal(cursor.error());
}

void check_negotiation(const Message& message, const MirroredHeaders* headers) {
  const Result<RequestContext> context = negotiate(message, headers, nullptr);
  if (context) {
    require(context->revision == find_revision(context->revision->name));
    if (!context->progress_token.empty()) require(parse_json(context->progress_token).has_value());
    // The specification does not define the headers of notifications (2026-07-28, Streamable HTTP).
    if (context->revision->era == Era::modern && headers != nullptr &&
        message.kind == MessageKind::request) {
      require(headers->protocol_version == context->revision->name);
      require(headers->method == message.method);
    }
    return;
  }
  const int code = context.error().code;
  require(code == kInvalidParams || code == kHeaderMismatch || code == kUnsupportedProtocolVersion);
  require((code == kUnsupportedProtocolVersion) == !context.error().data.empty());
  std::string answer;
  append_error(answer, message.id, context.error());
  require(parse_json(answer).has_value());
}

}  // namespace

/// The input has three lines for the header fields (`-`: absent), then the message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, 3> fields;
  for (std::string_view& field : fields) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return 0;
    if (rest.substr(0, end) != "-") field = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  const MirroredHeaders headers{
      .protocol_version = fields[0], .method = fields[1], .name = fields[2]};
  if (const auto name = decode_header_value(fields[2])) require(name->size() <= fields[2].size());
  if (const auto seq = parse_seq(fields[2])) require(*seq < kMaxSeq);
  negotiate_initialize(fields[0]);

  MessageParser parser;
  const std::expected<Message, MessageError> message = parser.parse(rest);
  if (!message || message->kind == MessageKind::response) return 0;
  check_negotiation(*message, nullptr);
  check_negotiation(*message, &headers);
  if (message->params != nullptr) {
    check_decoders(*message->params);
    check_task_decoders(*message->params);
  }
  return 0;
}
