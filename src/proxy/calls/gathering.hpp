#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/clients/proxy_client.hpp"
#include "proxy/translation/merging.hpp"
#include "server/calls/pending_request.hpp"

namespace sluice {

/// Asks several servers the same for one request of a client, and puts together what they answer. A
/// server that cannot be reached, answers with an error or takes too long is left out, unless it is
/// asked for the rest of a list: then the request fails with -32602, because a list that only looks
/// complete is worse. Keeps itself alive until the request is over. Belongs to its loop.
class Gathering final : public StreamProducer, public std::enable_shared_from_this<Gathering> {
 public:
  /// Answers `call` with what `merge` makes of the answers, in the order of the servers. That of a
  /// server that is left out is empty. If there is none, with the first error.
  using Merge = std::function<json::object(std::vector<PartAnswer>)>;
  Gathering(std::shared_ptr<ProxyClient> client, std::shared_ptr<PendingRequest> call,
            std::string method, Merge merge);
  ~Gathering() override;
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  /// What is asked of the server at `index`: the params, or nothing if it is not asked.
  using Params = std::function<std::optional<json::object>(std::size_t index)>;
  /// Asks the servers with a list that the method is for.
  void list(const Params& params);
  /// Takes the servers' descriptions.
  void describe();

  void on_writable() override {}
  void on_cancel() override;

  /// How long servers are waited for after which others have answered.
  static constexpr Duration kPatience = std::chrono::seconds(10);

 private:
  class Question;
  struct Part {
    std::optional<json::object> params = {};
    std::optional<Result<json::object>> answer = {};  // nothing: it is waited for
    bool is_absent = false;                           // it has no such list
    std::shared_ptr<UpstreamSession> session;         // that it is made in
    std::uint64_t number = 0;                         // of the request; 0: there is none
  };

  void start();
  void open(std::size_t index);
  void on_open(std::size_t index, const Result<void>& outcome);
  void answered(std::size_t index, Result<json::object> answer);
  void left_out(std::size_t index);
  static std::string_view why_missing(const Part& part);
  void proceed();
  void finish();

  std::shared_ptr<ProxyClient> client_;
  std::shared_ptr<PendingRequest> call_;  // null once it is over
  std::string method_;
  Merge merge_;
  bool describes_ = false;
  bool goes_on_ = false;  // the servers are asked with cursors
  std::vector<Part> parts_;
  bool is_late_ = false;
  Executor::TimerId timer_ = 0;
  std::shared_ptr<Gathering> self_;
};

}  // namespace sluice
