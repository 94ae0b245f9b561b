#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// The functions of RKLLM's C interface (rkllm.h) as methods, whichever engine answers.

/// A function, as clients see it.
struct FunctionSpec {
  std::string_view name;    // such as "set_chat_template"
  std::string_view c_name;  // in rkllm.h; empty: it is made of `name`
  std::string_view description;
  /// JSON text: the `properties` of its parameters.
  std::string_view properties;

  /// Its name in C, or what that would be: rkllm_set_chat_template.
  [[nodiscard]] std::string full_name() const;
};

/// All functions but those that streams have: run, run_async, abort, is_running.
std::span<const FunctionSpec> function_specs();

/// Every way to write the name of a function: with no prefix, with `rkllm_` and with `rkllm.`.
std::vector<std::string> spellings_of(const FunctionSpec& function);

/// The schema of a tool's parameters that has those of `run` and the structs of the C interface.
std::string run_schema();

/// The result of get_constants: enumerations of rkllm.h by their names.
std::string constants_json();

/// The result of get_functions. `has`: whether this engine has the function of that name.
std::string functions_json(const std::function<bool(std::string_view name)>& has);

}  // namespace sluice
