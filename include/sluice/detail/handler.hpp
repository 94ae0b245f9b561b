#pragma once

// Type erasure for handlers of all shapes.

#include <exception>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "sluice/call.hpp"
#include "sluice/stream.hpp"
#include "sluice/task.hpp"

namespace sluice {

/// A handler that may block, for example on disks or locks. It runs on a worker thread.
template <class F>
struct Blocking {
  F handler;
};
template <class F>
Blocking<std::decay_t<F>> blocking(F&& handler) {
  return {std::forward<F>(handler)};
}

namespace detail {

/// The functions with which the server calls a type-erased handler. Exactly one of answer,
/// answer_call and run is set. Each throws what the handler throws.
template <class Request, class Result>
struct HandlerTable {
  void (*destroy)(void* handler);
  /// Makes what the handler takes, on any thread. Throws an Error if `request` does not fit. Null:
  /// the handler takes nothing.
  std::shared_ptr<void> (*decode)(const Request& request) = nullptr;
  Result (*answer)(void* handler, const Request& request) = nullptr;
  Result (*answer_call)(void* handler, const Request& request, Call& call) = nullptr;
  /// `request` is used only until `run` returns. The task keeps `handler` alive.
  Task<Result> (*run)(std::shared_ptr<void> handler, const Request& request, Call& call) = nullptr;
};

template <class... T>
struct TypeList {};

// The parameters and the result of a function, or of a call operator.

template <class Function>
struct FunctionSignature;
template <class Out, class... In>
struct FunctionSignature<Out (*)(In...)> {
  using Returned = Out;
  using Taken = TypeList<In...>;
};
template <class Out, class... In>
struct FunctionSignature<Out (*)(In...) noexcept> : FunctionSignature<Out (*)(In...)> {};
template <class Out, class F, class... In>
struct FunctionSignature<Out (F::*)(In...)> : FunctionSignature<Out (*)(In...)> {};
template <class Out, class F, class... In>
struct FunctionSignature<Out (F::*)(In...) const> : FunctionSignature<Out (*)(In...)> {};
template <class Out, class F, class... In>
struct FunctionSignature<Out (F::*)(In...) noexcept> : FunctionSignature<Out (*)(In...)> {};
template <class Out, class F, class... In>
struct FunctionSignature<Out (F::*)(In...) const noexcept> : FunctionSignature<Out (*)(In...)> {};

template <class F>
concept FunctionPointer = std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>;
template <class F>
concept CallableObject = requires { &F::operator(); };

/// The parameters and the result of the handler `F`.
template <class F>
struct Signature {
  static_assert(sizeof(F) == 0,
                "a handler is a function, or an object with one operator() that is no template: "
                "write out the types of its parameters, and wrap what std::bind_front() returns, "
                "or a pointer to a member, in a lambda");
  using Returned = void;
  using Taken = TypeList<>;
};
template <FunctionPointer F>
struct Signature<F> : FunctionSignature<F> {};
template <CallableObject F>
struct Signature<F> : FunctionSignature<decltype(&F::operator())> {};

struct Nothing {};

template <class Taken>
struct Parameters {
  static_assert(sizeof(Taken) == 0,
                "a handler has one of the shapes Out(), Out(In), Out(Call&) and Out(In, Call&)");
};
template <>
struct Parameters<TypeList<>> {
  using In = Nothing;
  static constexpr bool kTakesIn = false, kTakesCall = false;
};
template <>
struct Parameters<TypeList<Call&>> : Parameters<TypeList<>> {
  static constexpr bool kTakesCall = true;
};
template <class T>
struct Parameters<TypeList<T>> {
  static_assert(!std::is_same_v<std::remove_cvref_t<T>, Call>,
                "a handler takes the call as `sluice::Call&`");
  static_assert(!std::is_lvalue_reference_v<T> || std::is_const_v<std::remove_reference_t<T>>,
                "a handler takes its input by value or by const reference, such as `In in`");
  using In = std::remove_cvref_t<T>;
  static constexpr bool kTakesIn = true, kTakesCall = false;
};
template <class T>
struct Parameters<TypeList<T, Call&>> : Parameters<TypeList<T>> {
  static constexpr bool kTakesCall = true;
};

template <class Returned>
struct Answer {
  static_assert(!std::is_base_of_v<std::exception, std::remove_cvref_t<Returned>>,
                "a handler throws an Error; it does not return one");
  using Out = Returned;
  static constexpr bool kTask = false, kStream = false;
};
template <class T>
struct Answer<Task<T>> : Answer<T> {
  static constexpr bool kTask = true, kStream = false;
};
template <class T>
struct Answer<Stream<T>> : Answer<T> {
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

// An `Adapter` adapts one kind of handler, such as tools. It has the types Request and Result;
// decode<In>(request) makes what the handler takes, and encode() converts what it returns. If
// kDecodesAhead is true, a long request may be decoded before the handler is called.

template <class Adapter, class F>
typename Adapter::Result answer_with(F& handler, InOf<F>& in, Call& call) {
  if constexpr (std::is_void_v<OutOf<F>>) {
    invoke(handler, in, call);
    return Adapter::encode();
  } else {
    return Adapter::encode(invoke(handler, in, call));
  }
}

template <class Adapter, class F>
typename Adapter::Result answer(void* object, const typename Adapter::Request& request) {
  F& handler = *static_cast<F*>(object);
  if constexpr (Shape<F>::kTakesIn) {
    InOf<F> in = Adapter::template decode<InOf<F>>(request);
    if constexpr (std::is_void_v<OutOf<F>>) {
      handler(std::move(in));
      return Adapter::encode();
    } else {
      return Adapter::encode(handler(std::move(in)));
    }
  } else if constexpr (std::is_void_v<OutOf<F>>) {
    handler();
    return Adapter::encode();
  } else {
    return Adapter::encode(handler());
  }
}

template <class Adapter, class F>
typename Adapter::Result answer_call(void* object, const typename Adapter::Request& request,
                                     Call& call) {
  InOf<F> in = Adapter::template decode<InOf<F>>(request);
  return answer_with<Adapter>(*static_cast<F*>(object), in, call);
}

template <class Adapter, class F>
std::shared_ptr<void> decode_ahead(const typename Adapter::Request& request) {
  return std::make_shared<InOf<F>>(Adapter::template decode<InOf<F>>(request));
}

// The frame of this coroutine keeps the parameters alive while the handler runs.

template <class Adapter, class F>
Task<typename Adapter::Result> run_coroutine(std::shared_ptr<void> object, InOf<F> in, Call& call) {
  F& handler = *static_cast<F*>(object.get());
  if constexpr (Shape<F>::kStream) {
    if constexpr (std::is_void_v<OutOf<F>>) {
      co_await invoke(handler, in, call).to(call);
      co_return Adapter::encode();
    } else {
      co_return Adapter::encode(co_await invoke(handler, in, call).to(call));
    }
  } else {
    if constexpr (std::is_void_v<OutOf<F>>) {
      co_await invoke(handler, in, call);
      co_return Adapter::encode();
    } else {
      co_return Adapter::encode(co_await invoke(handler, in, call));
    }
  }
}

template <class Adapter, class F>
Task<typename Adapter::Result> run_blocking(std::shared_ptr<void> object, InOf<F> in, Call& call) {
  co_return co_await call.in_background(
      [object, in = std::move(in), backend = call.backend().for_worker()]() mutable {
        Call there(*backend);
        return answer_with<Adapter>(static_cast<F*>(object.get())->handler, in, there);
      });
}

template <class Adapter, class F>
Task<typename Adapter::Result> run(std::shared_ptr<void> object,
                                   const typename Adapter::Request& request, Call& call) {
  InOf<F> in = Adapter::template decode<InOf<F>>(request);
  if constexpr (Shape<F>::kBlocking) {
    return run_blocking<Adapter, F>(std::move(object), std::move(in), call);
  } else {
    return run_coroutine<Adapter, F>(std::move(object), std::move(in), call);
  }
}

/// Moves `handler` to the heap. Server::add() owns it at once and calls destroy_handler(). Throws
/// std::invalid_argument for a null pointer and an empty std::function.
template <class F>
void* new_handler(F handler) {
  if constexpr (!std::is_empty_v<F> && requires { handler == nullptr; }) {
    if (handler == nullptr) throw std::invalid_argument("a handler is null: give a function");
  }
  return static_cast<void*>(new F(std::move(handler)));
}
template <class F>
void destroy_handler(void* handler) {
  delete static_cast<F*>(handler);
}

template <class Adapter, class F>
constexpr auto make_handler_table() {
  using Parts = Shape<F>;
  HandlerTable<typename Adapter::Request, typename Adapter::Result> table{.destroy =
                                                                              destroy_handler<F>};
  if constexpr (Adapter::kDecodesAhead && !std::is_same_v<InOf<F>, Nothing>) {
    table.decode = decode_ahead<Adapter, F>;
  }
  if constexpr (Parts::kBlocking || Parts::kTask || Parts::kStream) {
    table.run = run<Adapter, F>;
  } else if constexpr (Parts::kTakesCall) {
    table.answer_call = answer_call<Adapter, F>;
  } else {
    table.answer = answer<Adapter, F>;
  }
  return table;
}

template <class Adapter, class F>
inline constexpr HandlerTable<typename Adapter::Request, typename Adapter::Result> kHandlerTable =
    make_handler_table<Adapter, F>();

}  // namespace detail

}  // namespace sluice
