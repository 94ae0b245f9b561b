#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "server/api/server_state.hpp"
#include "server/catalog/definition.hpp"
#include "server/handlers/handler_run.hpp"
#include "sluice/content.hpp"
#include "sluice/detail/handler.hpp"
#include "sluice/error.hpp"
#include "sluice/task.hpp"

namespace sluice {

/// How a tool's exception is answered. A ToolError, which the model should read, becomes a result.
inline Result<ToolResult> tool_failure(const std::exception_ptr& exception, FailureLog& log) {
  try {
    std::rethrow_exception(exception);
  } catch (const ToolError& failure) {
    return ToolResult{.text = std::string(what_of(failure)), .is_error = true};
  } catch (...) {
    return std::unexpected(error_of(exception, log));
  }
}

template <class Out>
struct HandlerFailure {
  static Result<Out> of(const std::exception_ptr& exception, FailureLog& log) {
    return std::unexpected(error_of(exception, log));
  }
};
template <>
struct HandlerFailure<ToolResult> {
  static Result<ToolResult> of(const std::exception_ptr& exception, FailureLog& log) {
    return tool_failure(exception, log);
  }
};

/// A handler, ready to be called. Either `immediate` or `deferred` is set.
template <class Request, class Out>
struct OwnedHandler {
  std::function<Out(const Request& request)> immediate;
  std::function<Task<Out>(const Request& request, Call& call)> deferred;
  std::shared_ptr<FailureLog> failures;
};

/// Calls the immediate handler. Turns an exception into a result or an Error.
template <class Request, class Out>
auto guarded(OwnedHandler<Request, Out> handler) {
  return [handler = std::move(handler)](const Request& request) -> Result<Out> {
    try {
      return handler.immediate(request);
    } catch (...) {
      return HandlerFailure<Out>::of(std::current_exception(), *handler.failures);
    }
  };
}

/// Runs the deferred handler for the request. `then` gets its result, or what its exception
/// becomes.
template <class Request, class Out>
auto running(OwnedHandler<Request, Out> handler, const detail::ServerState& state) {
  HandlerRun::Options options = state.runs();
  options.failures = handler.failures;
  return [handler = std::move(handler), options = std::move(options)](
             const Request& in, std::shared_ptr<PendingRequest> request,
             std::function<void(PendingRequest&, Result<Out>)> then) -> Result<void> {
    // `in` belongs to the message: the handler decodes what it needs before it suspends.
    HandlerRun::start<Out>(
        std::move(request), options, [&](Call& call) { return handler.deferred(in, call); },
        [then](PendingRequest& asker, Out out) { then(asker, std::move(out)); },
        [then, failures = handler.failures](PendingRequest& asker,
                                            const std::exception_ptr& exception) {
          then(asker, HandlerFailure<Out>::of(exception, *failures));
        });
    return {};
  };
}

/// Does not suspend, so `request` exists until the end.
template <class Request, class Out>
Task<Out> run_at_once(const detail::HandlerTable<Request, Out>& table,
                      std::shared_ptr<void> handler, const Request& request, Call& call) {
  co_return table.answer_call(handler.get(), request, call);
}

/// Makes an OwnedHandler that owns `object`. `table` must exist as long as the program runs. `kind`
/// and `name` are for the log.
template <class Request, class Out>
OwnedHandler<Request, Out> owned(const detail::HandlerTable<Request, Out>& table, void* object,
                                 std::string_view kind, std::string_view name) {
  std::shared_ptr<void> handler(object, table.destroy);
  auto failures = std::make_shared<FailureLog>(kind, std::string(name));
  if (table.answer != nullptr) {
    return {.immediate = [answer = table.answer, handler = std::move(handler)](
                             const Request& request) { return answer(handler.get(), request); },
            .deferred = {},
            .failures = std::move(failures)};
  }
  return {.immediate = {},
          .deferred =
              [&table, handler = std::move(handler)](const Request& request, Call& call) {
                return table.run != nullptr ? table.run(handler, request, call)
                                            : run_at_once(table, handler, request, call);
              },
          .failures = std::move(failures)};
}

template <class Request, class Out>
FeatureHandler<Request, Out> feature(OwnedHandler<Request, Out> handler,
                                     const detail::ServerState& state) {
  if (handler.immediate) return guarded(std::move(handler));
  using Deferred = typename FeatureHandler<Request, Out>::Deferred;
  return Deferred(running(std::move(handler), state));
}

/// Wraps a handler: fills in the URI and the MIME type where its result has none.
template <class Request>
OwnedHandler<Request, ResourceResult> completed(OwnedHandler<Request, ResourceResult> handler,
                                                std::string mime_type) {
  const auto fill = [mime_type = std::move(mime_type)](ResourceResult result,
                                                       const Request& request) {
    for (ResourceContents& each : result.contents) {
      if constexpr (std::same_as<Request, std::string>) {
        if (each.uri.empty()) each.uri = request;
      } else {
        if (each.uri.empty()) each.uri = request.uri;
      }
      if (each.mime_type.empty()) each.mime_type = mime_type;
    }
    return result;
  };
  if (handler.immediate) {
    return {.immediate = [answer = std::move(handler.immediate),
                          fill](const Request& request) { return fill(answer(request), request); },
            .deferred = {},
            .failures = std::move(handler.failures)};
  }
  struct Wait {
    static Task<ResourceResult> run(Task<ResourceResult> result, Request request,
                                    decltype(fill) fill) {
      co_return fill(co_await std::move(result), request);
    }
  };
  return {.immediate = {},
          .deferred = [begin = std::move(handler.deferred), fill](
                          const Request& request,
                          Call& call) { return Wait::run(begin(request, call), request, fill); },
          .failures = std::move(handler.failures)};
}

}  // namespace sluice
