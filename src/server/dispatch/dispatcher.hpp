#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/negotiation.hpp"
#include "rpc/message.hpp"
#include "server/calls/calls.hpp"
#include "server/catalog/catalog.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/dispatch/feature_methods.hpp"
#include "server/dispatch/request_chain.hpp"
#include "server/notifications/change_notifier.hpp"
#include "server/sessions/session.hpp"
#include "server/streams/stream_service.hpp"
#include "server/tasks/task_service.hpp"

namespace sluice {

class LongMessages;
class SessionRegistry;

/// What became of a message.
struct Outcome {
  enum class Kind : std::uint8_t {
    answered,  // the response has been appended
    accepted,  // a notification or response: nothing to send
    pending,   // answered later through a channel of the caller
  };
  Kind kind = Kind::answered;
  int http_status = 200;
};

/// Handles MCP's methods on one loop, for every era and transport.
class Dispatcher {
 public:
  /// `sessions` are those of all loops. `quota` limits the calls of all loops together, as in
  /// Calls. `checks` validates arguments that take long to check; its workers also check long
  /// results.
  Dispatcher(RefPtr<LoopCatalog> catalog, StreamService& streams, SessionRegistry& sessions,
             ClientQuota& quota, ChangeNotifier& changes, TaskStore& tasks,
             LongMessages& long_messages, LongMessages& checks, WorkerPool* writers = nullptr);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Requests that arrive from now on use `catalog`. Those under way keep the one they started
  /// with.
  void take(RefPtr<LoopCatalog> catalog);

  /// Handles one message of `caller` and appends an immediate response to `out`. `headers` is as
  /// for negotiate(): null on transports that have none.
  Outcome dispatch(const Message& message, const MirroredHeaders* headers, Caller& caller,
                   std::string& out);

  /// Is told of the user code that runs on the loop.
  [[nodiscard]] TurnWatch& watch() { return calls_.watch(); }

  /// Stops the calls that are under way or wait in the middleware, and answers them with `error`.
  void end_calls(const Error& error);

  /// Appends to `out` the response to a text that is not a valid message.
  static Outcome reject(const MessageError& error, std::string& out);

  /// The id of the request that `message` cancels, if it is a notification that does.
  static std::optional<RequestId> cancelled_by(const Message& message);

 private:
  friend class RequestChain;

  /// What the answer to a request depends on besides its parameters.
  struct Scope {
    const Revision& revision;
    Session* session;  // or null
    TurnWatch& watch;  // is told of the handler that answers
    const Caller& caller;
  };
  struct Method {
    std::string_view name;
    std::optional<Era> era;  // the only era that has the method; none: every era has it
    Result<FeatureAnswer> (Dispatcher::*handler)(const json::object& params,
                                                 const Scope& scope) const;
  };
  static const std::array<Method, 15> kMethods;

  Outcome response(const Message& message, Caller& caller, std::string& out);
  /// Answers a request that has passed the middleware.
  Outcome answer(const Message& message, const MirroredHeaders* headers,
                 UnderstoodRequest&& request, Caller& caller, std::string& out);
  Outcome stream_method(const Message& message, Caller& caller, std::string& out);
  void notification(const Message& message, const std::shared_ptr<Session>& session);
  Outcome request(const Message& message, const MirroredHeaders* headers, RequestContext&& context,
                  std::shared_ptr<Session> session, Caller& caller, std::string& out);
  // These return the members of the result, or a function that answers the request later.
  template <FeatureList kList>
  Result<FeatureAnswer> list(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> read(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> get(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> complete(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> list_skills(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> get_skill(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> read_directory(const json::object& params, const Scope& scope) const;
  [[nodiscard]] Result<FeatureAnswer> cached(Result<std::string> members,
                                             const Revision& revision) const;
  Result<FeatureAnswer> discover(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> ping(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> set_level(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> subscribe(const json::object& params, const Scope& scope) const;
  Result<FeatureAnswer> unsubscribe(const json::object& params, const Scope& scope) const;
  /// Answers an initialize. `revision` is the negotiated one, or null if the request names no
  /// version.
  Outcome initialize(const Message& message, const Revision* revision, Caller& caller,
                     std::string& out);
  Outcome call_tool(const Message& message, const MirroredHeaders* headers,
                    RequestContext&& context, std::shared_ptr<Session> session, Caller& caller,
                    std::string& out);
  /// Starts a task that does `run`, and answers the call with that task.
  Outcome begin_task(const Message& message, const Tool& tool, RequestContext context,
                     std::shared_ptr<Session> session, Caller& caller, const TaskPlan& plan,
                     TaskService::Run run, std::string& out);
  Outcome listen(const Message& message, RequestContext context, Caller& caller, std::string& out);
  /// Opens a call and passes it to `later`, which answers it. `tool` is as for open_call().
  Outcome defer(const Message& message, const CompiledTool* tool, RequestContext context,
                std::shared_ptr<Session> session, Caller& caller, std::string& out,
                const std::function<Result<void>(std::shared_ptr<PendingRequest>)>& later);
  /// Opens a call of `catalog` that is answered later. `tool` is null for methods other than
  /// tools/call. An Error is for the immediate response.
  Result<std::shared_ptr<PendingRequest>> open_call(
      const Message& message, const CompiledTool* tool, RequestContext context,
      std::shared_ptr<Session> session, Caller& caller, const RefPtr<LoopCatalog>& catalog);
  /// The same for a long result that is there already. Null: answer now.
  std::shared_ptr<PendingRequest> open_for_long(const Message& message, const CompiledTool* tool,
                                                RequestContext context, Caller& caller);
  std::shared_ptr<const ClientInfo> shared_info(ClientInfo info);
  /// Fills in what handlers may ask about who sent the request.
  void describe_sender(RequestContext& context, const std::shared_ptr<Session>& session,
                       Caller& caller) const;
  [[nodiscard]] Result<MemoryHold> memory_for(const Message& message, const RequestContext& context,
                                              const Caller& caller,
                                              std::size_t more_values = 0) const;
  Outcome no_session(const RequestId& id, const Error& error, std::string& out);
  Outcome error(const RequestId& id, const Error& failure, const Revision* revision,
                std::string& out);

  [[nodiscard]] const ServerDefinition& definition() const { return catalog_->definition(); }
  [[nodiscard]] const FeatureLists& lists() const { return catalog_->lists(); }
  [[nodiscard]] const ResultWriter& results() const { return catalog_->results(); }

  RequestChains chains_;
  RefPtr<LoopCatalog> catalog_;
  /// For calls that use nothing of it, and so should not keep a version alive: this one lives as
  /// long as the server.
  const RefPtr<LoopCatalog> first_catalog_;
  StreamService* streams_;
  SessionRegistry* sessions_;
  Calls calls_;
  ChangeNotifier* changes_;
  TaskService tasks_;
  LongMessages* long_messages_;
  LongMessages* checks_;
  std::string instructions_;                   // a JSON member with a comma before it, or empty
  std::weak_ptr<const ClientInfo> last_info_;  // of the last session that has one
};

}  // namespace sluice
