#pragma once

// Handlers of all shapes as one.

#include <concepts>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sluice/call.hpp"
#include "sluice/stream.hpp"
#include "sluice/task.hpp"

namespace sluice {

/// A handler that may wait for disks, locks and others: it runs on a worker thread.
template <class F>
struct Blocking {
  F handler;
};
template <class F>
Blocking<std::decay_t<F>> blocking(F&& handler) {
  return {std::forward<F>(handler)};
}

namespace detail {

/// A handler as the server sees it. One of the two is set.
template <class Request, class Result>
struct ErasedHandler {
  std::function<Result(const Request& request)> immediate;
  std::function<Task<Result>(const Request& request, Call& call)> deferred;
};

// What the handler `F` takes and returns. It must not be a template.

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class Out, class... In>
struct Signature<Out (*)(In...)> {
  using Returned = Out;
  using Taken = std::tuple<In...>;
};
template <class Out, class F, class... In>
struct Signature<Out (F::*)(In...)> : Signature<Out (*)(In...)> {};
template <class Out, class F, class... In>
struct Signature<Out (F::*)(In...) const> : Signature<Out (*)(In...)> {};
template <class Out, class F, class... In>
struct Signature<Out (F::*)(In...) noexcept> : Signature<Out (*)(In...)> {};
template <class Out, class F, class... In>
struct Signature<Out (F::*)(In...) const noexcept> : Signature<Out (*)(In...)> {};

struct Nothing {};

template <class Taken>
struct Parameters {
  static_assert(sizeof(Taken) == 0,
                "a handler has one of the shapes Out(), Out(In), Out(Call&) and Out(In, Call&)");
};
template <>
struct Parameters<std::tuple<>> {
  using In = Nothing;
  static constexpr bool kTakesIn = false, kTakesCall = false;
};
template <>
struct Parameters<std::tuple<Call&>> : Parameters<std::tuple<>> {
  static constexpr bool kTakesCall = true;
};
template <class T>
struct Parameters<std::tuple<T>> {
  using In = std::remove_cvref_t<T>;
  static constexpr bool kTakesIn = true, kTakesCall = false;
};
template <class T>
struct Parameters<std::tuple<T, Call&>> : Parameters<std::tuple<T>> {
  static constexpr bool kTakesCall = true;
};

template <class Returned>
struct Answer {
  using Out = Returned;
  static constexpr bool kTask = false, kStream = false;
};
template <class T>
struct Answer<Task<T>> {
  using Out = T;
  static constexpr bool kTask = true, kStream = false;
};
template <class T>
struct Answer<Stream<T>> {
  using Out = T;
  static constexpr bool kTask = false, kStream = true;
};

template <class F>
struct Shape : Parameters<typename Signature<F>::Taken>, Answer<typename Signature<F>::Returned> {
  static constexpr bool kBlocking = false;
};
template <class F>
struct Shape<Blocking<F>> : Shape<F> {
  static_assert(!Shape<F>::kTask && !Shape<F>::kStream,
                "a blocking() handler returns its result; a coroutine uses call.in_background()");
  static constexpr bool kBlocking = true;
};

template <class F>
using InOf = typename Shape<F>::In;
template <class F>
using OutOf = typename Shape<F>::Out;

template <class F>
decltype(auto) invoke(F& handler, InOf<F>& in, Call& call) {
  using Parts = Shape<F>;
  if constexpr (Parts::kTakesIn && Parts::kTakesCall) {
    return handler(std::move(in), call);
  } else if constexpr (Parts::kTakesIn) {
    return handler(std::move(in));
  } else if constexpr (Parts::kTakesCall) {
    return handler(call);
  } else {
    return handler();
  }
}

/// Calls the handler and makes a `Result` of what it returns.
template <class Result, class F, class Encode>
Result answer(F& handler, InOf<F>& in, Call& call, const Encode& encode) {
  if constexpr (std::is_void_v<OutOf<F>>) {
    invoke(handler, in, call);
    return encode();
  } else {
    return encode(invoke(handler, in, call));
  }
}

// The parameters live in the coroutine's frame as long as the handler runs.

template <class Result, class F, class Encode>
Task<Result> run(std::shared_ptr<F> handler, InOf<F> in, Call& call, Encode encode) {
  using Parts = Shape<F>;
  if constexpr (Parts::kStream) {
    if constexpr (std::is_void_v<OutOf<F>>) {
      co_await invoke(*handler, in, call).to(call);
      co_return encode();
    } else {
      co_return encode(co_await invoke(*handler, in, call).to(call));
    }
  } else if constexpr (Parts::kTask) {
    if constexpr (std::is_void_v<OutOf<F>>) {
      co_await invoke(*handler, in, call);
      co_return encode();
    } else {
      co_return encode(co_await invoke(*handler, in, call));
    }
  } else {
    co_return answer<Result>(*handler, in, call, encode);
  }
}

template <class Result, class F, class Encode>
Task<Result> run_blocking(std::shared_ptr<Blocking<F>> handler, InOf<F> in, Call& call,
                          Encode encode) {
  co_return co_await call.in_background(
      [handler, in = std::move(in), encode, backend = call.backend().for_worker()]() mutable {
        Call there(*backend);
        return answer<Result>(handler->handler, in, there, encode);
      });
}

/// `decode` makes the handler's parameter of a request, `encode` a result of what it returns; both
/// may throw what a handler may throw.
template <class Request, class Result, class F, class Decode, class Encode>
ErasedHandler<Request, Result> erase(F handler, Decode decode, Encode encode) {
  using Parts = Shape<F>;
  const auto shared = std::make_shared<F>(std::move(handler));
  ErasedHandler<Request, Result> out;
  if constexpr (Parts::kBlocking) {
    out.deferred = [shared, decode, encode](const Request& request, Call& call) {
      return run_blocking<Result>(shared, decode(request), call, encode);
    };
  } else if constexpr (Parts::kTakesCall || Parts::kTask || Parts::kStream) {
    out.deferred = [shared, decode, encode](const Request& request, Call& call) {
      return run<Result>(shared, decode(request), call, encode);
    };
  } else {
    out.immediate = [shared, decode, encode](const Request& request) -> Result {
      [[maybe_unused]] InOf<F> in = decode(request);
      if constexpr (Parts::kTakesIn && std::is_void_v<OutOf<F>>) {
        (*shared)(std::move(in));
        return encode();
      } else if constexpr (Parts::kTakesIn) {
        return encode((*shared)(std::move(in)));
      } else if constexpr (std::is_void_v<OutOf<F>>) {
        (*shared)();
        return encode();
      } else {
        return encode((*shared)());
      }
    };
  }
  return out;
}

}  // namespace detail

}  // namespace sluice
