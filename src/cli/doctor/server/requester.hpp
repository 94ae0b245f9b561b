#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/authorization/oauth_http.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "json/json.hpp"
#include "net/client/http_client.hpp"

namespace sluice {

/// The value of the first field of that name; empty: there is none.
std::string_view field_in(const HttpHeaderList& fields, std::string_view name);

/// When enough of a reply has come.
enum class Until : std::uint8_t {
  answer,       // the end of the body, or the JSON-RPC response on an event stream
  first_event,  // one event, or the end
  first_bytes,  // any of the body, such as a comment on an event stream; or the end
};

/// One HTTP request to the server that is examined.
struct Ask {
  std::string method = "POST";
  HttpHeaderList headers = {};  // besides those that each request of the user has
  std::string body = {};
  Until until = Until::answer;
  Duration patience = kPatience;
  Duration at_least = {};       // of that, also when the examination has no time left
  bool is_anonymous = false;    // without what authorizes the user
  bool is_foreign = false;      // without the other header fields of the user, too
  bool may_be_refused = false;  // by the rules, so that a refusal says nothing of a login
  std::string revision = {};    // of `initialize`, which may begin a session; empty: it is another
  std::string asked = {};       // the method of another request of MCP

  /// A server that is silent for so long does not answer.
  static constexpr Duration kPatience = std::chrono::seconds(5);
};

struct ReplyEvent {
  std::string type;
  std::string data;
  std::string id;
};

/// What has come of a reply.
struct Reply {
  int status = 0;
  HttpHeaderList headers = {};
  std::string body = {};                    // at most kMaxBody bytes
  std::vector<ReplyEvent> events = {};      // of an event stream, at most kMaxEvents
  bool is_whole = false;                    // the body has ended
  Duration head_after = {};                 // since the request was begun
  std::optional<Duration> body_after = {};  // its first byte
  std::optional<Duration> retry_after = {};
  std::optional<Error> cut_off = {};  // why not enough of it has come; nothing: it has

  [[nodiscard]] std::string_view header(std::string_view name) const {
    return field_in(headers, name);
  }
  [[nodiscard]] bool has_type(std::string_view media_type) const;
  [[nodiscard]] bool is_event_stream() const { return has_type("text/event-stream"); }
  /// The JSON-RPC response in it: an object with `result` or `error`.
  [[nodiscard]] std::optional<json::object> answer() const;

  static constexpr std::size_t kMaxBody = std::size_t{8} << 20U;
  static constexpr std::size_t kMaxEvents = 1000;
};

/// The JSON-RPC response that `text` is, if it is one.
std::optional<json::object> response_in(std::string_view text);
/// Whether it has an answer of JSON-RPC 2.0: gateways have members named `error` too.
bool is_of_mcp(const Reply& reply);
/// The `result` of an answer, or null.
const json::object* result_in(const std::optional<json::object>& answer);
/// The code of its error; 0: it has none.
int error_code_in(const std::optional<json::object>& answer);

/// How an examination reaches its server. Its functions block. Checks are run over it, so that
/// tests give them canned replies.
class Requester {
 public:
  virtual ~Requester() = default;
  /// Errors: 502 and 504, there is no reply, or not in time; kLimitReached, the examination has no
  /// time or no requests left. If only the head has come, the reply is `cut_off` by that error.
  virtual Result<Reply> ask(const Ask& ask) = 0;
  /// Gets a document of authorization, guarded as GuardedHttp is. Errors: the same; 400, the place
  /// may not be asked.
  virtual Result<OauthReply> fetch(const std::string& url) = 0;
  /// The time that the examination has left.
  [[nodiscard]] virtual Duration left() const = 0;
  [[nodiscard]] bool has_time() const { return left() > Duration(); }
  /// Waits. False: there is less time left, or an interrupt came, so it has not waited to the end.
  virtual bool pause(Duration time) = 0;
};

}  // namespace sluice
