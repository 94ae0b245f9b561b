#include "fault_server.hpp"

#include <algorithm>
#include <chrono>

#include "json/members.hpp"
#include "socket.hpp"

namespace sluice::faults {
namespace {

using namespace std::chrono_literals;

/// A request's progress token as JSON text, or empty.
std::string token_of(const json::object& request) {
  const json::object* const params = object_at(request, "params");
  const json::object* const meta = params == nullptr ? nullptr : object_at(*params, "_meta");
  const json::value* const token = meta == nullptr ? nullptr : meta->if_contains("progressToken");
  return token == nullptr ? std::string() : to_json(*token);
}

std::string progress_of(std::string_view token, int step) {
  return R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" +
         std::string(token) + R"(,"progress":)" + std::to_string(step) + R"(,"message":")" +
         progress_text(step) + R"("}})";
}

bool is_inner(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
}

/// Which of the plan's calls a request is.
std::optional<std::size_t> call_of(const json::object& request) {
  const json::object* const params = object_at(request, "params");
  const json::object* const arguments =
      params == nullptr ? nullptr : object_at(*params, "arguments");
  const json::value* const call = arguments == nullptr ? nullptr : arguments->if_contains("call");
  if (call == nullptr || !call->is_int64()) return std::nullopt;
  return static_cast<std::size_t>(call->get_int64());
}

bool connects(const json::object& request) {
  const std::string_view method = text_at(request, "method");
  return method == "initialize" || method == "server/discover";
}

/// How often one request comes at most, with its rounds and what a correct client repeats. HTTP
/// with SSE looks at each twice.
constexpr int kMostAttempts = 20;

constexpr std::string_view kHostileIds[] = {R"("x")",
                                            R"("\"},{\"id\":1")",
                                            R"("\u0000\n\r")",
                                            "0",
                                            "-1",
                                            "9223372036854775807",
                                            "1e3",
                                            "1.5",
                                            "null",
                                            "true",
                                            "[]",
                                            "{}",
                                            R"("é😀")",
                                            "123456789012345678901234567890"};
constexpr std::string_view kQuestions[] = {
    "sampling/createMessage", "elicitation/create", "roots/list", "ping", "tasks/get", "x/\\u0000"};

}  // namespace

std::string nonce_of(std::uint64_t seed, std::size_t call) {
  std::string text(kCharacters);
  text.append(" nonce ").append(std::to_string(seed)).append(kCharacters);
  return text.append(std::to_string(call)).append(kCharacters);
}

std::string log_message(std::string_view logger) {
  return R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":")" +
         std::string(logger) + R"(","data":")" + std::string(kNews) + R"("}})";
}

std::string progress_text(std::int64_t step) {
  std::string text(kCharacters);
  return text.append(std::to_string(step)).append(kCharacters);
}

FaultServer::FaultServer(const Plan& plan)
    : plan_(plan), dice_(plan.seed ^ 0x5eed), heads_({.header_bytes = std::size_t{1} << 20U}) {}
FaultServer::~FaultServer() = default;

// --- messages -----------------------------------------------------------------------------------

std::optional<json::object> FaultServer::read(std::string_view text) {
  Result<json::value> value = parse_json(text);
  if (!value || !value->is_object() || text_at(value->get_object(), "jsonrpc") != "2.0") {
    complain("the client sends what is no message: " + std::string(text.substr(0, 200)));
    return std::nullopt;
  }
  json::object message = std::move(value->get_object());
  if (!message.contains("method")) {
    take_response(text);
    return std::nullopt;
  }
  if (!message.contains("id")) return std::nullopt;
  return message;
}

/// An answer of the client must have the id of a question, as that was written, and come once.
void FaultServer::take_response(std::string_view text) {
  for (auto& [id, times] : asked_) {
    if (times > 0 && text.starts_with(R"({"jsonrpc":"2.0","id":)" + id + ",")) return void(--times);
  }
  complain("an answer to what was not asked, or is answered: " + std::string(text.substr(0, 200)));
}

const Fault& FaultServer::fault_for(const json::object& request) {
  // A client that looks for a revision does not expect to be understood.
  const bool is_probe =
      plan_.revision->era == Era::legacy && text_at(request, "method") == "server/discover";
  if (connects(request) && !is_probe && sessions_ == 0) {
    count_attempt(connecting_attempts_);
    return *plan_.connecting;
  }
  const auto call = call_of(request);
  if (!call || *call >= plan_.calls.size()) return fault_of(Kind::none);
  if (text_at(*object_at(request, "params"), "name") != kTool) {
    complain("the tool's name is spoilt");
  }
  const Fault& fault = *plan_.calls[*call].fault;
  const bool is_first = count_attempt(attempts_[*call]) == 1;
  const bool is_once = fault.kind == Kind::forgotten_once;
  return is_first || !is_once ? fault : fault_of(Kind::none);
}

int FaultServer::count_attempt(int& attempts) {
  if (++attempts == kMostAttempts + 1) complain("a request is sent again and again");
  return attempts;
}

FaultServer::Texts FaultServer::texts_for(const json::object& request, const Fault& fault) {
  Texts texts;
  const std::string token = token_of(request);
  const auto call = call_of(request);
  if (call && *call < plan_.calls.size() && !token.empty()) {
    for (int i = 0; i < plan_.calls[*call].progress; ++i) {
      texts.push_back(progress_of(token, i));
      if (dice_.one_in(3)) {
        texts.push_back(log_message("call"));
      }
    }
  }
  const std::string answer = answer_to(request, fault);
  const auto with_id = [&request, this, &fault](std::string_view id) {
    json::object other = request;
    other["id"] = json::value(parse_json(id).value());
    return answer_to(other, fault);
  };
  switch (fault.kind) {
    case Kind::silent:
      return texts;
    case Kind::duplicate:
      texts.push_back(answer);
      break;
    case Kind::unknown_before:
      for (const std::string_view id : {"987654", "-3", "\"1\"", "1.5"}) {
        texts.push_back(with_id(id));
      }
      break;
    case Kind::unknown_only:
      texts.push_back(with_id("987654"));
      return texts;
    case Kind::quoted_id:
      texts.push_back(with_id("\"" + to_json(request.at("id")) + "\""));
      return texts;
    case Kind::other_id:
      texts.push_back(with_id(
          std::to_string(request.at("id").to_number<std::int64_t>() + (dice_.one_in(2) ? 1 : -1))));
      return texts;
    case Kind::many_notifications:
      for (int i = 0; i < 300; ++i) {
        texts.push_back(dice_.one_in(2) || token.empty() ? log_message("call")
                                                         : progress_of(token, i));
      }
      break;
    case Kind::hostile_questions: {
      Texts questions = hostile_questions();
      texts.insert(texts.end(), questions.begin(), questions.end());
      break;
    }
    case Kind::many_questions:
      for (int i = 0; i < 200; ++i) {
        const std::string id = std::to_string(1000 + i);
        ++asked_[id];
        texts.push_back(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"roots/list"})");
      }
      break;
    case Kind::odd_progress:
      for (const std::string_view odd : {"1e300", "-1", "\"1\"", "null", "{}", "987654"}) {
        texts.push_back(progress_of(odd, 1));
      }
      texts.emplace_back(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{}})");
      texts.emplace_back(R"({"jsonrpc":"2.0","method":"notifications/progress"})");
      texts.emplace_back(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{}})");
      texts.emplace_back(
          R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}})");
      break;
    default:
      break;
  }
  texts.push_back(answer);
  return texts;
}

std::string FaultServer::answer_to(const json::object& request, const Fault& fault) {
  const std::string begin = R"({"jsonrpc":"2.0","id":)" + to_json(request.at("id"));
  const auto with_text = [&begin](std::string_view text) {
    return begin + R"(,"result":{"text":")" + std::string(text) + R"("}})";
  };
  const bool is_probe =
      plan_.revision->era == Era::legacy && text_at(request, "method") == "server/discover";
  if (is_probe) return begin + R"(,"error":{"code":-32601,"message":"Method not found"}})";
  switch (fault.kind) {
    case Kind::error:
      return begin + R"(,"error":{"code":-32099,"message":")" + std::string(kRefusal) + R"("}})";
    case Kind::odd_error:
      return begin +
             (dice_.one_in(2) ? R"(,"error":"boom"})" : R"(,"error":{"code":1e99,"message":[]}})");
    case Kind::no_result:
      return begin + "}";
    case Kind::result_array:
      return begin + R"(,"result":[1,2]})";
    case Kind::wrong_version:
      return R"({"jsonrpc":"1.0","id":)" + to_json(request.at("id")) + R"(,"result":{}})";
    case Kind::truncated_json: {
      std::string text = begin + R"(,"result":)" + result_of(request, fault) + "}";
      std::size_t size = begin.size() + 1 + dice_.below(text.size() - begin.size() - 1);
      while (is_inner(text[size])) --size;  // half a character is another fault
      text.resize(size);
      return text;
    }
    case Kind::not_json:
      return begin + (dice_.one_in(2) ? ",'result':{}}" : R"(,"result":NaN})");
    case Kind::invalid_utf8: {
      static constexpr std::string_view kInvalid[] = {"\xff", "\xc3", "\xed\xa0\x80", "\xc0\x80"};
      return with_text(dice_.pick(kInvalid));
    }
    case Kind::nul:
      return with_text(std::string_view("a\0b", 3));
    case Kind::deep: {
      const std::size_t levels = 129 + dice_.below(10000);
      return begin + R"(,"result":{"a":)" + std::string(levels, '[') + std::string(levels, ']') +
             "}}";
    }
    case Kind::array:
      return "[" + begin + R"(,"result":)" + result_of(request, fault) + "}]";
    case Kind::too_long:
      return with_text(std::string(plan_.max_message, 'x'));
    default:
      return begin + R"(,"result":)" + result_of(request, fault) + "}";
  }
}

std::string FaultServer::result_of(const json::object& request, const Fault& fault) {
  const std::string_view method = text_at(request, "method");
  const std::string revision(plan_.revision->name);
  if (method == "initialize") {
    return R"({"protocolVersion":")" + revision +
           R"(","capabilities":{},"serverInfo":{"name":"faulty","version":"1"}})";
  }
  if (method == "server/discover") {
    return R"({"resultType":"complete","supportedVersions":[")" + revision +
           R"("],"capabilities":{}})";
  }
  const auto call = call_of(request);
  if (!call) return "{}";
  if (fault.kind == Kind::endless_rounds) {
    return dice_.one_in(2)
               ? R"({"resultType":"input_required","requestState":"s"})"
               : R"({"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}})";
  }
  if (fault.kind == Kind::many_inputs) {
    json::object wanted;
    for (int i = 0; i < 500; ++i) wanted[std::to_string(i)] = {{"method", "roots/list"}};
    return to_json(json::object{{"resultType", "input_required"}, {"inputRequests", wanted}});
  }
  return R"({"resultType":"complete","content":[{"type":"text","text":")" +
         nonce_of(plan_.seed, *call) + R"("}]})";
}

FaultServer::Texts FaultServer::hostile_questions() {
  Texts texts;
  const std::size_t count = 1 + dice_.below(8);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string id(dice_.pick(kHostileIds));
    const std::string_view method = dice_.pick(kQuestions);
    ++asked_[id];
    texts.push_back(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + std::string(method) +
                    R"(","params":{"messages":[],"maxTokens":1,"message":"?",)"
                    R"("requestedSchema":{"type":"object","properties":{}}}})");
  }
  return texts;
}

// --- bytes --------------------------------------------------------------------------------------

void FaultServer::opened(std::size_t connection) {
  connections_[connection];
}

void FaultServer::received(std::size_t connection, std::string_view bytes) {
  Connection& at = connections_.at(connection);
  if (at.socket != nullptr) return at.socket->feed(bytes);
  at.input.append(bytes);
  if (plan_.transport != Transport::lines) return take_http(connection);
  for (std::size_t end = 0; (end = at.input.find('\n')) != std::string::npos;) {
    const std::string line = at.input.substr(0, end);
    at.input.erase(0, end + 1);
    take_message(connection, line);
  }
}

void FaultServer::closed(std::size_t connection) {
  connections_.erase(connection);
  unended_.erase(connection);
  if (standalone_ == connection) standalone_.reset();
  if (events_ == connection) events_.reset();
}

void FaultServer::send(std::size_t connection, std::string bytes, Duration after) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || found->second.is_over) return;
  steps_.push_back({.connection = connection, .bytes = std::move(bytes), .after = after});
}

void FaultServer::end(std::size_t connection, Step::Kind how, Duration after) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || std::exchange(found->second.is_over, true)) return;
  steps_.push_back({.connection = connection, .kind = how, .after = after});
}

std::size_t FaultServer::draw_place(std::string_view bytes) {
  const std::size_t place = dice_.below(bytes.size() + 1);
  if (!dice_.one_in(3)) return place;
  const auto inner = std::ranges::find_if(bytes.substr(place), is_inner);
  return inner == bytes.end() ? place : static_cast<std::size_t>(inner - bytes.begin());
}

void FaultServer::note_split(std::string_view bytes, std::size_t at) {
  if (at >= bytes.size() || !is_inner(bytes[at])) return;
  std::size_t first = at;
  while (first > 0 && is_inner(bytes[first])) --first;
  const auto lead = static_cast<unsigned char>(bytes[first]);
  if (lead < 0xC2 || lead > 0xF4) return;  // a number in a WebSocket's frame
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (at - first < size) ++coverage_.splits[{size, at - first}];
}

void FaultServer::deliver(std::size_t connection, const std::string& bytes, Kind kind, Place place,
                          std::size_t head) {
  std::size_t size = bytes.size();
  if (is_cut(kind)) {
    // A connection that is silent after a whole reply would be used again.
    const std::size_t most = kind == Kind::cut_silent ? size - 1 : size;
    // Heads are short beside what follows.
    const std::size_t until = head > 0 && dice_.one_in(2) ? head - 1 : size;
    const std::size_t drawn = draw_place(std::string_view(bytes).substr(0, until));
    size = std::min(most, plan_.cut_at.value_or(drawn));
    coverage_.cuts.push_back({size < head ? Place::event_head : place, kind, size});
  }
  if (kind == Kind::drip) {
    ++coverage_.drips[place];
    if (head > 0) ++coverage_.drips[Place::event_head];
  }
  Duration wait = kind == Kind::late ? Duration(70s) : Duration();
  const std::size_t pieces = dice_.one_in(2) ? 1 : 1 + dice_.below(6);
  for (std::size_t at = 0, piece = 0; at < size; ++piece) {
    std::size_t length = size - at;
    if (kind == Kind::drip && piece < 2000) {
      length = 1;
    } else if (piece + 1 < pieces) {
      length = std::max(std::size_t{1}, draw_place(std::string_view(bytes).substr(at, length)));
    }
    // What is sent at once is read at once.
    if (wait > 0ms) note_split(bytes, at);
    send(connection, bytes.substr(at, length), wait);
    at += length;
    wait = kind == Kind::drip ? 5ms : std::chrono::milliseconds(dice_.below(3) * 5);
  }
  if (kind == Kind::double_reply) send(connection, bytes, dice_.one_in(2) ? 0ms : 1ms);
  // A client opens this again as often as it ends, here without a pause of its own.
  if (place == Place::listening) wait = 1s;
  // After a whole reply the connection may be used again, and a request on its way would be lost.
  const bool is_reusable = plan_.transport == Transport::http || place == Place::refusal;
  if (size == bytes.size() && is_reusable) wait = 0ms;
  if (kind == Kind::cut_end) end(connection, Step::Kind::end, wait);
  if (kind == Kind::cut_reset) end(connection, Step::Kind::reset, wait);
  if (kind == Kind::cut_silent) connections_.at(connection).is_over = true;
}

}  // namespace sluice::faults
