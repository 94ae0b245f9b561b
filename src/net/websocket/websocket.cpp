#include "net/websocket/websocket.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <openssl/sha.h>
#include <utility>

#include "core/release_memory.hpp"
#include "core/text/base64.hpp"
#include "core/text/text.hpp"
#include "core/text/utf8.hpp"
#include "net/http/http_types.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr int kProtocolError = 1002;
constexpr int kInvalidData = 1007;
constexpr std::size_t kMaxControl = 125;
constexpr std::size_t kMaxHeader = 14;
/// The cost of an empty frame, in units of WorkLimits.
constexpr std::size_t kFrameCost = 16;

bool is_control(WebSocketOpcode opcode) {
  return static_cast<std::uint8_t>(opcode) >= 8;
}

void unmask(std::span<char> payload, const std::uint8_t (&mask)[4]) {
  std::uint64_t wide = 0;
  std::memcpy(&wide, mask, 4);
  std::memcpy(reinterpret_cast<char*>(&wide) + 4, mask, 4);
  std::size_t i = 0;
  for (; i + 8 <= payload.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, payload.data() + i, 8);
    word ^= wide;
    std::memcpy(payload.data() + i, &word, 8);
  }
  for (; i < payload.size(); ++i) {
    payload[i] = static_cast<char>(static_cast<std::uint8_t>(payload[i]) ^ mask[i % 4]);
  }
}

Result<void> check_utf8(std::string_view text) {
  if (is_valid_utf8(text)) return {};
  return fail(kInvalidData, "A text message that is not valid UTF-8");
}

/// Checks and reports a whole message.
Result<void> deliver(WebSocketOpcode opcode, std::string_view payload, WebSocketEvents& events) {
  if (opcode == WebSocketOpcode::text) {
    if (Result<void> checked = check_utf8(payload); !checked) return checked;
  }
  events.on_message(opcode, payload);
  return {};
}

/// Does one step. Returns true when all has come out.
Result<bool> expand(MessageInflater& inflater, std::string_view payload, WebSocketEvents& events) {
  const std::size_t before = inflater.work();
  Result<bool> done = inflater.step(payload);
  const bool is_whole = done && *done;
  events.on_work((inflater.work() - before) / kExpandedPerCost +
                 (is_whole ? inflater.text().size() : 0));
  return done;
}

/// Whether `value` is a window size as a parameter gives it (RFC 7692, section 7.1.2).
bool is_window_bits(std::string_view value) {
  return value == "15" || value == "14" || value == "13" || value == "12" || value == "11" ||
         value == "10" || value == "9" || value == "8";
}

std::string_view unquoted(std::string_view value) {
  const bool is_quoted = value.size() > 1 && value.front() == '"' && value.back() == '"';
  return is_quoted ? value.substr(1, value.size() - 2) : value;
}

/// A parameter of permessage-deflate, and whether an offer with a given value can be accepted.
struct DeflateParameter {
  using Value = std::optional<std::string_view>;
  std::string_view name;
  bool (*may_be)(const Value& value);
};
constexpr std::array<DeflateParameter, 4> kDeflateParameters{{
    {"server_no_context_takeover", [](const auto& value) { return !value; }},
    {"client_no_context_takeover", [](const auto& value) { return !value; }},
    {"client_max_window_bits", [](const auto& value) { return !value || is_window_bits(*value); }},
    // We compress with the full window only.
    {"server_max_window_bits", [](const auto& value) { return value == "15"; }},
}};

/// Whether `offer` is a valid offer of permessage-deflate that we can accept (RFC 7692, section
/// 7.1).
bool can_meet(std::string_view offer) {
  std::array<bool, kDeflateParameters.size()> seen{};
  std::size_t end = offer.find(';');
  if (!equals_ignoring_case(trim(offer.substr(0, end)), "permessage-deflate")) return false;
  while (end != std::string_view::npos) {
    offer.remove_prefix(end + 1);
    end = offer.find(';');
    const std::string_view parameter = trim(offer.substr(0, end));
    const std::size_t equals = parameter.find('=');
    const std::string_view name = trim(parameter.substr(0, equals));
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) value = unquoted(trim(parameter.substr(equals + 1)));
    const auto* const known = std::ranges::find_if(kDeflateParameters, [name](const auto& each) {
      return equals_ignoring_case(each.name, name);
    });
    if (known == kDeflateParameters.end() || !known->may_be(value)) return false;
    if (std::exchange(seen[static_cast<std::size_t>(known - kDeflateParameters.begin())], true)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool is_websocket_key(std::string_view key) {
  static constexpr std::size_t kDigits = 22;
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return key.size() == kDigits + 2 && key.find_first_not_of(kAlphabet) == kDigits &&
         key.ends_with("==");
}

// Uses the plain SHA-1 functions: EVP would first load OpenSSL's configuration and providers, two
// megabytes, for a hash that protects nothing (RFC 6455, section 1.3).
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
std::string websocket_accept_key(std::string_view key) {
  static constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const std::string text = std::string(key).append(kGuid);
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA_CTX context;
  SHA1_Init(&context);
  SHA1_Update(&context, text.data(), text.size());
  SHA1_Final(digest.data(), &context);
  std::string out;
  append_base64(out, {reinterpret_cast<const char*>(digest.data()), digest.size()});
  return out;
}
#pragma clang diagnostic pop

std::optional<std::string> negotiate_deflate(std::string_view offers) {
  while (!offers.empty()) {
    const std::size_t comma = offers.find(',');
    if (can_meet(offers.substr(0, comma))) {
      return "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    }
    if (comma == std::string_view::npos) break;
    offers.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

void append_websocket_frame(std::string& out, WebSocketOpcode opcode, std::string_view payload,
                            bool compressed, std::optional<std::uint32_t> mask) {
  static constexpr unsigned kFinal = 0x80;
  static constexpr unsigned kCompressed = 0x40;
  const std::uint8_t mask_bit = mask ? 0x80 : 0;
  out.push_back(
      static_cast<char>(kFinal | (compressed ? kCompressed : 0U) | static_cast<unsigned>(opcode)));
  if (payload.size() < 126) {
    out.push_back(static_cast<char>(mask_bit | payload.size()));
  } else if (payload.size() < 65536) {
    out.push_back(static_cast<char>(mask_bit | 126U));
    out.push_back(static_cast<char>(payload.size() >> 8U));
    out.push_back(static_cast<char>(payload.size()));
  } else {
    out.push_back(static_cast<char>(mask_bit | 127U));
    for (int shift = 56; shift >= 0; shift -= 8) {
      out.push_back(static_cast<char>(payload.size() >> static_cast<unsigned>(shift)));
    }
  }
  std::uint8_t key[4] = {};
  if (mask) {
    for (std::size_t i = 0; i < 4; ++i) key[i] = static_cast<std::uint8_t>(*mask >> (24 - 8 * i));
    out.append(reinterpret_cast<const char*>(key), 4);
  }
  const std::size_t start = out.size();
  out.append(payload);
  if (mask) unmask(std::span(out).subspan(start), key);
}

void append_websocket_close(std::string& out, int code, std::string_view reason,
                            std::optional<std::uint32_t> mask) {
  std::string payload;
  if (code != kNoStatus) {
    payload.push_back(static_cast<char>(static_cast<unsigned>(code) >> 8U));
    payload.push_back(static_cast<char>(code));
    std::string text;
    append_utf8(text, reason.substr(0, kMaxControl));
    text.resize(std::min(text.size(), kMaxControl - 2));
    payload.append(text, 0, complete_utf8_prefix(text));
  }
  append_websocket_frame(out, WebSocketOpcode::close, payload, false, mask);
}

bool is_sendable_close_code(int code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

Result<std::optional<WebSocketDecoder::Header>> WebSocketDecoder::parse_header(
    std::string_view bytes) const {
  if (bytes.size() < 2) return std::nullopt;
  const auto byte = [bytes](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  Header header;
  header.final = (byte(0) & 0x80U) != 0;
  header.compressed = (byte(0) & 0x40U) != 0;
  header.masked = (byte(1) & 0x80U) != 0;
  header.opcode = static_cast<WebSocketOpcode>(byte(0) & 0x0FU);
  if ((byte(0) & 0x30U) != 0) return fail(kProtocolError, "A reserved bit is set");
  const std::uint8_t short_length = byte(1) & 0x7FU;
  std::size_t length_bytes = 0;
  if (short_length == 126) length_bytes = 2;
  if (short_length == 127) length_bytes = 8;
  header.size = 2 + length_bytes + (header.masked ? 4 : 0);
  header.length = short_length;
  if (bytes.size() >= 2 + length_bytes && length_bytes > 0) {
    header.length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i)
      header.length = header.length << 8U | byte(2 + i);
    if ((length_bytes == 2 && header.length < 126) ||
        (length_bytes == 8 && (header.length < 65536 || header.length >> 63U != 0))) {
      return fail(kProtocolError, "A frame's length is not in its shortest form");
    }
  }
  // Checked before the header is complete, so that an invalid frame is refused early.
  if (Result<void> checked = check_header(header); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (bytes.size() < header.size) return std::nullopt;
  if (header.masked) {
    for (std::size_t i = 0; i < 4; ++i) header.mask[i] = byte(header.size - 4 + i);
  }
  return header;
}

Result<void> WebSocketDecoder::check_header(const Header& header) const {
  if (header.masked != (role_ == Role::server)) {
    return fail(kProtocolError, role_ == Role::server ? "A client's frame must be masked"
                                                      : "A server's frame must not be masked");
  }
  switch (header.opcode) {
    case WebSocketOpcode::continuation:
      if (!fragmented_) return fail(kProtocolError, "A continuation without a message to continue");
      if (header.compressed) return fail(kProtocolError, "RSV1 on a continuation");
      break;
    case WebSocketOpcode::text:
    case WebSocketOpcode::binary:
      if (fragmented_) return fail(kProtocolError, "A new message within a fragmented one");
      if (header.compressed && !deflate_) {
        return fail(kProtocolError, "RSV1 without permessage-deflate");
      }
      break;
    case WebSocketOpcode::close:
    case WebSocketOpcode::ping:
    case WebSocketOpcode::pong:
      if (!header.final) return fail(kProtocolError, "A control frame must not be fragmented");
      if (header.compressed) return fail(kProtocolError, "RSV1 on a control frame");
      if (header.length > kMaxControl) {
        return fail(kProtocolError, "A control frame's payload is longer than 125 bytes");
      }
      return {};
    default:
      return fail(kProtocolError, "An unknown opcode");
  }
  const std::size_t before = partial_ == nullptr ? 0 : partial_->message.size();
  if (header.length > max_message_ || before + header.length > max_message_) {
    const std::string_view remedy =
        role_ == Role::server ? " (max_message, or --max-body of sluice serve)" : "";
    return fail(kMessageTooBig, "A message is longer than " + std::to_string(max_message_) +
                                    " bytes" + std::string(remedy));
  }
  return {};
}

Result<void> WebSocketDecoder::feed(std::span<char> bytes, WebSocketEvents& events) {
  std::string joined;
  if (partial_ != nullptr && !partial_->bytes.empty() && !ended_) {
    partial_->bytes.append(bytes.data(), bytes.size());
    joined = std::exchange(partial_->bytes, {});
    bytes = joined;
  }
  // Keeps the remaining bytes. If they are in `joined`, reuses that buffer.
  const auto keep_rest = [&] {
    if (bytes.empty()) return;
    std::string& kept = partial().bytes;
    if (joined.empty()) {
      kept.assign(bytes.data(), bytes.size());
    } else {
      joined.erase(0, joined.size() - bytes.size());
      kept = std::move(joined);
    }
  };
  while (!ended_ && (is_expanding() || !bytes.empty())) {
    Result<void> taken;
    if (is_expanding()) {
      taken = expand_some(events);
    } else if (is_within_frame()) {
      const std::size_t size =
          static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), partial_->frame->length));
      taken = take_piece(bytes.first(size), events);
      bytes = bytes.subspan(size);
    } else {
      const Result<std::optional<Header>> header =
          parse_header({bytes.data(), std::min(bytes.size(), kMaxHeader)});
      if (!header) {
        stop();
        return std::unexpected(header.error());
      }
      const bool is_whole = *header && bytes.size() - (*header)->size >= (*header)->length;
      if (!*header || (!is_whole && is_control((*header)->opcode))) {
        keep_rest();
        return {};
      }
      bytes = bytes.subspan((*header)->size);
      events.on_work(kFrameCost);
      if (is_whole) {
        const std::size_t length = static_cast<std::size_t>((*header)->length);
        taken = take_frame(**header, bytes.first(length), events);
        bytes = bytes.subspan(length);
      } else {
        begin_frame(**header);
      }
    }
    if (!taken) {
      stop();
      return taken;
    }
    if (!ended_ && (is_expanding() || !bytes.empty()) && !events.wants_more()) {
      keep_rest();
      return {};
    }
  }
  if (ended_ || (!fragmented_ && !is_within_frame())) partial_.reset();
  return {};
}

void WebSocketDecoder::stop() {
  ended_ = true;
  partial_.reset();
}

std::size_t WebSocketDecoder::held_bytes() const {
  if (partial_ == nullptr) return 0;
  return partial_->bytes.capacity() + partial_->message.capacity() +
         (partial_->inflater ? partial_->inflater->held_bytes() : 0);
}

WebSocketDecoder::Partial& WebSocketDecoder::partial() {
  if (partial_ == nullptr) partial_ = std::make_unique<Partial>();
  return *partial_;
}

Result<void> WebSocketDecoder::take_frame(const Header& header, std::span<char> payload,
                                          WebSocketEvents& events) {
  const bool is_of_control = is_control(header.opcode);
  if (!is_of_control && (fragmented_ || !header.final)) {
    begin_frame(header);
    return take_piece(payload, events);
  }
  if (header.masked) unmask(payload, header.mask);
  const std::string_view view(payload.data(), payload.size());
  return is_of_control ? take_control(header, view, events)
                       : take_message(header.opcode, header.compressed, view, events);
}

void WebSocketDecoder::begin_frame(const Header& header) {
  partial().frame = header;
  if (fragmented_) return;
  opcode_ = header.opcode;
  compressed_ = header.compressed;
}

/// Takes the next piece of the current frame.
Result<void> WebSocketDecoder::take_piece(std::span<char> piece, WebSocketEvents& events) {
  Header& frame = *partial_->frame;
  if (frame.masked) {
    unmask(piece, frame.mask);
    std::ranges::rotate(frame.mask, frame.mask + piece.size() % 4);
  }
  std::string& message = partial_->message;
  make_room(message, message.size() + static_cast<std::size_t>(frame.length));
  message.append(piece.data(), piece.size());
  frame.length -= piece.size();
  const bool is_frame_whole = frame.length == 0;
  const bool is_message_whole = is_frame_whole && frame.final;
  if (!compressed_) {
    if (Result<void> checked = check_text(message, is_message_whole); !checked) return checked;
  }
  if (!is_frame_whole) return {};
  partial_->frame.reset();
  fragmented_ = !is_message_whole;
  return is_message_whole ? end_message(events) : Result<void>();
}

/// Checks what has arrived of a text message. More follows unless `is_whole`.
Result<void> WebSocketDecoder::check_text(std::string_view text, bool is_whole) {
  if (opcode_ != WebSocketOpcode::text) return {};
  text.remove_prefix(partial_->checked);
  if (!is_whole) text = text.substr(0, complete_utf8_prefix(text));
  partial_->checked += text.size();
  return check_utf8(text);
}

/// Reports the complete message, or begins to expand it.
Result<void> WebSocketDecoder::end_message(WebSocketEvents& events) {
  if (compressed_) {
    partial_->inflater.emplace(max_message_);
    return expand_some(events);
  }
  partial_->checked = 0;
  events.on_joined_message(opcode_, std::exchange(partial_->message, {}));
  return {};
}

Result<void> WebSocketDecoder::take_control(const Header& header, std::string_view payload,
                                            WebSocketEvents& events) {
  if (header.opcode == WebSocketOpcode::ping) {
    events.on_ping(payload);
    return {};
  }
  if (header.opcode == WebSocketOpcode::pong) {
    events.on_pong(payload);
    return {};
  }
  if (payload.size() == 1) return fail(kProtocolError, "A close frame with half a code");
  int code = kNoStatus;
  if (payload.size() >= 2) {
    code = static_cast<std::uint8_t>(payload[0]) << 8 | static_cast<std::uint8_t>(payload[1]);
    if (!is_sendable_close_code(code)) {
      return fail(kProtocolError, "A close code that must not be sent: " + std::to_string(code));
    }
    payload.remove_prefix(2);
    if (!is_valid_utf8(payload)) {
      return fail(kInvalidData, "A close reason that is not valid UTF-8");
    }
  }
  ended_ = true;
  events.on_close(code, payload);
  return {};
}

Result<void> WebSocketDecoder::take_message(WebSocketOpcode opcode, bool compressed,
                                            std::string_view payload, WebSocketEvents& events) {
  if (!compressed) return deliver(opcode, payload, events);
  // A message of usual size is expanded without a copy of its payload.
  MessageInflater inflater(max_message_);
  const Result<bool> done = expand(inflater, payload, events);
  if (!done) return std::unexpected(done.error());
  if (*done) return deliver(opcode, inflater.text(), events);
  Partial& rest = partial();
  rest.message = payload;
  rest.inflater.emplace(std::move(inflater));
  opcode_ = opcode;
  return {};
}

/// Continues to expand the current message.
Result<void> WebSocketDecoder::expand_some(WebSocketEvents& events) {
  const Result<bool> done = expand(*partial_->inflater, partial_->message, events);
  if (!done) return std::unexpected(done.error());
  if (Result<void> checked = check_text(partial_->inflater->text(), *done); !checked) {
    return checked;
  }
  if (!*done) return {};
  std::string whole = partial_->inflater->take();
  partial_->inflater.reset();
  release_memory(partial_->message);
  partial_->checked = 0;
  events.on_joined_message(opcode_, std::move(whole));
  return {};
}

}  // namespace sluice
