#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/backoff.hpp"
#include "client/session/contract/server_link.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/log/log_limit.hpp"
#include "core/text/secrets.hpp"
#include "json/json.hpp"
#include "protocol/mirrored_headers.hpp"
#include "proxy/upstream/ending_sessions.hpp"

namespace sluice {

struct UpstreamOptions {
  std::string prefix = {};  // see names.hpp; empty for the only server
  std::string label;        // what errors and the log call the server; no secrets
  /// What neither clients nor the log may read, also if the server says it: parts of its URL, and
  /// what authorizes the proxy. Null: nothing.
  std::shared_ptr<const KnownSecrets> secrets = {};
  /// Makes a new way to it for the proxy's loop, which is that of its server.
  std::function<Result<std::unique_ptr<ServerLink>>(Executor& loop)> open_link;
  /// Whether the link starts a program. One that is not there is a server without a connection.
  bool starts_program = false;
  std::string revision = {};  // the one to speak; empty: what it speaks
  Duration connect_timeout = std::chrono::seconds(30);
  /// With a request unanswered and silent for so long, it is asked whether it still lives; 0:
  /// never.
  Duration idle_timeout = std::chrono::minutes(5);
};

/// A server behind a proxy: the way to it, and how it has fared with all clients. One that cannot
/// be reached is left alone for a while, so that its clients do not start it again and again.
/// Belongs to its loop.
class Upstream {
 public:
  /// `ending` are the sessions of its proxy.
  explicit Upstream(UpstreamOptions options,
                    std::shared_ptr<EndingSessions> ending = std::make_shared<EndingSessions>())
      : options_(std::move(options)), ending_(std::move(ending)) {}

  [[nodiscard]] const UpstreamOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<EndingSessions>& ending() const { return ending_; }
  /// Why it is not tried at present, or nothing.
  [[nodiscard]] std::optional<Error> resting(TimePoint now) const;
  /// Whether it was of the legacy era a while ago, so that it is not probed again: it may have been
  /// in trouble when it was. False if its revision is configured.
  [[nodiscard]] bool is_known_as_legacy(TimePoint now) const;
  /// It may have been replaced by one that speaks something else.
  void forget_era() { legacy_until_ = TimePoint::min(); }

  /// Learns from the server's result of `method` which arguments of its tools are mirrored in
  /// header fields. If it has learned kMaxTools tools or kMaxLearned bytes, it forgets them first.
  void learn(std::string_view method, const json::object& result);
  /// Checks that a client's call agrees with its header fields (2026-07-28, Streamable HTTP, Custom
  /// Headers from Tool Parameters), as far as its tool has been listed. Error: -32020.
  [[nodiscard]] Result<void> check(const json::object& call, const MirroredHeaders& headers) const;
  static constexpr std::size_t kMaxTools = 10'000;
  static constexpr std::size_t kMaxLearned = std::size_t{16} << 20U;

  void on_connected(const Revision& revision, TimePoint now);
  /// A session could not be opened. Logs it, and returns the answer to its client. The server is
  /// left alone for a while if it could not be reached or was silent, but not if it has refused the
  /// session: that may be for something in the client's own request, or for want of something here.
  /// `was_needed`: by a request. If it was not, the server rests no longer than at first.
  Error on_not_opened(const Error& why, TimePoint now, bool was_needed = true);
  /// An open session is lost. Logs it. The next request opens another at once.
  void on_lost(const Error& why) const;
  /// An Error of the way to the server, rather than of the server, as an answer to a client.
  [[nodiscard]] Error explained(const Error& why) const;

 private:
  /// A program that is not there is a server without a connection.
  [[nodiscard]] Error of_connection(const Error& why) const;

  UpstreamOptions options_;
  std::shared_ptr<EndingSessions> ending_;
  TimePoint legacy_until_ = TimePoint::min();
  Backoff backoff_{{.first = std::chrono::seconds(1),
                    .longest = std::chrono::seconds(30),
                    .attempts = UINT32_MAX}};
  TimePoint rests_until_{};
  Error failure_;  // the last one, as an answer to a client
  LogLimit refusals_;
  std::map<std::string, std::vector<ParameterHeader>, std::less<>> mirrored_;  // by tool
  std::size_t learned_ = 0;                                                    // bytes of it
};

}  // namespace sluice
