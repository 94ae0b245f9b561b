#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "dice.hpp"
#include "json/json.hpp"
#include "net/http/http_parser.hpp"
#include "net/websocket/websocket.hpp"
#include "plan.hpp"

namespace sluice::faults {

/// What the server does on one of its connections.
struct Step {
  enum class Kind : std::uint8_t { send, end, reset };
  std::size_t connection;
  Kind kind = Kind::send;
  std::string bytes = {};
  Duration after = {};  // the connection's step before
};

/// What has been done to bytes, so that a test can tell whether all of it was.
struct Coverage {
  struct Cut {
    Place place;
    Kind manner;
    std::size_t at;
  };
  std::vector<Cut> cuts;
  std::map<Place, std::size_t> drips;
  /// Characters of so many bytes of which so many came alone, and how often.
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> splits;
};

/// The name of the tool that is called.
inline constexpr std::string_view kTool = "tool ñ語😀";
/// The message of a progress notification.
std::string progress_text(std::int64_t step);
/// What a log message says, and who says it on the stream that belongs to no request.
inline constexpr std::string_view kNews = "news: ñ語😀.";
inline constexpr std::string_view kListener = "listening";
std::string log_message(std::string_view logger);
/// Texts that are in an answer to this call, and in no other.
std::string nonce_of(std::uint64_t seed, std::size_t call);

/// A server that follows a plan, without I/O: it gets what clients send, and says what to do. A
/// call says by its argument `call` which of the plan's it is; others are answered as they should
/// be.
class FaultServer {
 public:
  explicit FaultServer(const Plan& plan);
  ~FaultServer();

  void opened(std::size_t connection);
  void received(std::size_t connection, std::string_view bytes);
  void closed(std::size_t connection);
  std::vector<Step> take_steps() { return std::exchange(steps_, {}); }

  /// What the client has done wrong.
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }
  /// Connections whose reply has answered its request, and goes on.
  [[nodiscard]] std::size_t unended() const { return unended_.size(); }
  [[nodiscard]] const Coverage& coverage() const { return coverage_; }

 private:
  class Socket;
  struct Connection {
    std::string input;
    std::unique_ptr<Socket> socket;  // null before the handshake of a WebSocket
    bool is_over = false;            // nothing more is sent
  };
  /// The messages with which a request is answered, in order.
  using Texts = std::vector<std::string>;
  /// A reply that is a stream of events, which can be resumed.
  struct Stream {
    Texts texts;
    const Fault* fault;
    int resumed = 0;
    std::string odd_id = {};
  };

  // fault_server.cpp: messages.
  const Fault& fault_for(const json::object& request);
  int count_attempt(int& attempts);
  Texts texts_for(const json::object& request, const Fault& fault);
  std::string answer_to(const json::object& request, const Fault& fault);
  std::string result_of(const json::object& request, const Fault& fault);
  Texts hostile_questions();
  void take_response(std::string_view text);
  std::optional<json::object> read(std::string_view text);
  void complain(std::string what) { complaints_.push_back(std::move(what)); }

  // message_wire.cpp: transports that carry messages both ways.
  void take_message(std::size_t connection, std::string_view text);
  void say(std::size_t connection, const Texts& texts, const Fault& fault);
  std::string frame(const std::string& text, const Fault& fault, bool is_answer);
  void shake_hands(std::size_t connection, const HttpRequest& request);
  void open_events(std::size_t connection);
  void take_post(std::size_t connection, std::string_view body);

  // http_wire.cpp
  void take_http(std::size_t connection);
  void take_request(std::size_t connection, const HttpRequest& request, std::string_view body);
  void post(std::size_t connection, const HttpRequest& request, std::string_view body);
  void get(std::size_t connection, const HttpRequest& request);
  void reply(std::size_t connection, const json::object& request, const Fault& fault,
             const Texts& texts);
  void reply_events(std::size_t connection, const std::string& head, std::size_t stream,
                    std::size_t from, const Fault& fault);
  bool reply_wrongly(std::size_t connection, const Texts& texts, const Fault& fault);
  std::string wrong_reply(Kind kind, const Texts& texts);
  void reply_shortly(std::size_t connection, std::string_view head, std::string_view body = {},
                     Kind manner = Kind::none);
  void listen(std::size_t connection);
  std::string event(std::string_view id, std::string_view text);
  /// The stream, and how much of it is known, of an event's id.
  std::optional<std::pair<std::size_t, std::size_t>> find_event(std::string_view id);
  std::string session_field(const json::object& request);

  // Bytes.
  void send(std::size_t connection, std::string bytes, Duration after = {});
  void end(std::size_t connection, Step::Kind how, Duration after = {});
  /// Sends bytes in pieces, or as much of them as the fault allows. The first `head` of them are a
  /// place of their own, Place::event_head.
  void deliver(std::size_t connection, const std::string& bytes, Kind kind,
               Place place = Place::answer, std::size_t head = 0);
  /// Somewhere in the bytes, or at their end; often within a character.
  std::size_t draw_place(std::string_view bytes);
  void note_split(std::string_view bytes, std::size_t at);

  Plan plan_;
  Dice dice_;
  HttpHeadParser heads_;
  std::map<std::size_t, Connection> connections_;
  std::vector<Step> steps_;
  std::vector<std::string> complaints_;
  std::set<std::size_t> unended_;
  Coverage coverage_;

  std::map<std::string, int> asked_;  // ids of questions, and how often each may still be answered
  std::map<std::size_t, int> attempts_;  // of the plan's calls that have come
  int connecting_attempts_ = 0;
  Texts held_;  // of a call whose answer comes after another
  int sessions_ = 0;
  std::map<std::size_t, Stream> streams_;
  std::optional<std::size_t> standalone_;  // a connection
  std::optional<std::size_t> events_;      // the connection of the messages of HTTP with SSE
};

}  // namespace sluice::faults
