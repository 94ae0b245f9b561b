#pragma once

#include <expected>
#include <string>
#include <utility>

#include "sluice/error.hpp"

namespace sluice {

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(int code, std::string message, std::string data = {}) {
  return std::unexpected(Error{code, std::move(message), std::move(data)});
}

}  // namespace sluice
