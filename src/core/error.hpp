#pragma once

#include <exception>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/error.hpp"

namespace sluice {

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(int code, std::string message, std::string data = {}) {
  return std::unexpected(Error{code, std::move(message), std::move(data)});
}

/// Returns the what() of an exception from user code, or an empty text if that is null.
inline std::string_view what_of(const std::exception& exception) {
  const char* const what = exception.what();
  return what == nullptr ? std::string_view() : std::string_view(what);
}

}  // namespace sluice
