#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

#include "sluice/json.hpp"

namespace sluice::detail {

/// What a handler takes, decoded by a worker before the handler is called, or why it could not be.
struct DecodedInput {
  std::shared_ptr<void> value;
  std::exception_ptr failure;
  std::size_t memory = 0;  // of `value`, besides its texts
};

/// The arguments of one `tools/call`. They are used during the call of the handler only.
class ToolArguments {
 public:
  ToolArguments(const json::object& json)  // NOLINT(google-explicit-constructor): they are that
      : json_(&json) {}
  ToolArguments(const json::object& json, DecodedInput& decoded)
      : json_(&json), decoded_(&decoded) {}

  operator const json::object&() const {  // NOLINT(google-explicit-constructor): they are that
    return *json_;
  }

  /// The input, if it has been decoded, for the caller to move from; null otherwise. Throws why it
  /// could not be decoded.
  template <class In>
  [[nodiscard]] In* decoded() const {
    if (decoded_ == nullptr) return nullptr;
    if (decoded_->failure) std::rethrow_exception(decoded_->failure);
    return static_cast<In*>(decoded_->value.get());
  }

 private:
  const json::object* json_;
  DecodedInput* decoded_ = nullptr;
};

}  // namespace sluice::detail
