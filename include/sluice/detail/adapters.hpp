#pragma once

// What handlers of tools, resources, prompts and completions take and return, as what the server
// passes to them and gets from them.

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/content.hpp"
#include "sluice/detail/handler.hpp"
#include "sluice/detail/tool_arguments.hpp"
#include "sluice/detail/type.hpp"
#include "sluice/json.hpp"
#include "sluice/schema.hpp"

namespace sluice::detail {

template <class Out>
concept ContentOutput = std::same_as<Out, ToolResult> || std::same_as<Out, Content> ||
                        std::same_as<Out, std::vector<Content>>;
template <class Out>
concept JsonOutput = std::is_class_v<Out> && std::convertible_to<const Out&, json::value>;
/// Types whose values become structured content with a schema: all but text, content and raw JSON.
template <class Out>
concept StructuredOutput = !std::is_void_v<Out> && !ContentOutput<Out> &&
                           !std::convertible_to<const Out&, std::string> && !JsonOutput<Out>;

// Both read into `out`, which must be a `T{}`. They throw Error -32602 with the path of the value
// that does not fit.

void decode_arguments(const Type& type, const json::object& arguments, void* out);
void decode_variables(const Type& type, const Variables& variables, void* out);

ToolResult structured_result(json::value value);
ToolResult structured_result(const Type& type, const void* value);
ToolResult content_result(Content&& content);
/// `result` with `structured` moved to `value`, where the server looks for it.
ToolResult shared(ToolResult&& result);

/// False, but not before a template is instantiated.
template <class... T>
inline constexpr bool kNever = false;

/// Decodes what tools take and encodes what they return.
struct ToolAdapter {
  using Request = ToolArguments;
  using Result = ToolResult;
  static constexpr bool kDecodesAhead = true;

  template <class In>
  static In decode(const ToolArguments& arguments) {
    if constexpr (std::same_as<In, Nothing>) {
      return {};
    } else if (In* const decoded = arguments.decoded<In>()) {
      return std::move(*decoded);
    } else if constexpr (std::same_as<In, json::object>) {
      // A plain copy would use the memory of the message, which ends before the call.
      return json::object(arguments, json::storage_ptr());
    } else {
      In in{};
      decode_arguments(*readable_type_of<In>(), arguments, std::addressof(in));
      return in;
    }
  }

  static ToolResult encode() { return {}; }
  static ToolResult encode(ToolResult&& result) { return shared(std::move(result)); }
  static ToolResult encode(json::value&& value) { return structured_result(std::move(value)); }
  static ToolResult encode(std::string&& text) { return {.text = std::move(text)}; }
  static ToolResult encode(Content&& content) { return content_result(std::move(content)); }
  static ToolResult encode(std::vector<Content>&& content) {
    return {.content = std::move(content)};
  }
  template <class Out>
  static ToolResult encode(const Out& out) {
    if constexpr (std::same_as<Out, ToolResult>) {
      return shared(ToolResult(out));
    } else if constexpr (std::same_as<Out, Content>) {
      return content_result(Content(out));
    } else if constexpr (std::same_as<Out, std::vector<Content>>) {
      return {.content = out};
    } else if constexpr (std::convertible_to<const Out&, std::string>) {
      return {.text = out};
    } else if constexpr (JsonOutput<Out>) {
      return structured_result(out);
    } else {
      return structured_result(*type_of<Out>(), std::addressof(out));
    }
  }
};

/// Encodes what resources return. The server fills in a missing URI or MIME type.
struct ResourceEncoder {
  using Result = ResourceResult;
  static constexpr bool kDecodesAhead = false;

  static ResourceResult encode(ResourceResult result) { return result; }
  static ResourceResult encode(std::vector<ResourceContents> contents);
  static ResourceResult encode(ResourceContents contents);
  static ResourceResult encode(std::string text);
  template <class... Out>
    requires(!(std::convertible_to<Out, ResourceResult> ||
               std::convertible_to<Out, std::vector<ResourceContents>> ||
               std::convertible_to<Out, ResourceContents> ||
               std::convertible_to<Out, std::string>) &&
             ...)
  static ResourceResult encode(const Out&... /*out*/) {
    static_assert(
        kNever<Out...>,
        "a resource returns text, ResourceContents, a vector of them, or a ResourceResult");
    return {};
  }
};

/// Decodes what a resource at a fixed URI takes.
struct ResourceAdapter : ResourceEncoder {
  using Request = std::string;

  template <class In>
  static In decode(const std::string& uri) {
    if constexpr (std::same_as<In, Nothing>) {
      return {};
    } else {
      static_assert(std::constructible_from<In, const std::string&>,
                    "a resource takes its URI as a std::string, or nothing");
      return In(uri);
    }
  }
};

/// Makes what a handler takes from named texts.
template <class In>
In variables_as(const Variables& variables) {
  if constexpr (std::same_as<In, Nothing>) {
    return {};
  } else if constexpr (std::same_as<In, Variables>) {
    return variables;
  } else {
    In in{};
    decode_variables(*readable_type_of<In>(), variables, std::addressof(in));
    return in;
  }
}

/// Decodes what a resource template takes.
struct TemplateAdapter : ResourceEncoder {
  using Request = ResourceMatch;

  template <class In>
  static In decode(const ResourceMatch& match) {
    if constexpr (std::same_as<In, ResourceMatch>) {
      return match;
    } else {
      return variables_as<In>(match.variables);
    }
  }
};

/// Decodes what prompts take and encodes what they return.
struct PromptAdapter {
  using Request = Variables;
  using Result = PromptResult;
  static constexpr bool kDecodesAhead = false;

  template <class In>
  static In decode(const Variables& variables) {
    return variables_as<In>(variables);
  }
  static PromptResult encode(PromptResult result) { return result; }
  static PromptResult encode(std::vector<PromptMessage> messages);
  static PromptResult encode(const std::string& text);
  template <class... Out>
    requires(!(std::convertible_to<Out, PromptResult> ||
               std::convertible_to<Out, std::vector<PromptMessage>> ||
               std::convertible_to<Out, std::string>) &&
             ...)
  static PromptResult encode(const Out&... /*out*/) {
    static_assert(kNever<Out...>,
                  "a prompt returns text, a vector of PromptMessages, or a PromptResult");
    return {};
  }
};

/// Decodes what completions take and encodes what they return.
struct CompletionAdapter {
  using Request = TypedArgument;
  using Result = ArgumentCompletion;
  static constexpr bool kDecodesAhead = false;

  template <class In>
  static In decode(const TypedArgument& typed) {
    if constexpr (std::same_as<In, TypedArgument>) {
      return typed;
    } else if constexpr (std::same_as<In, Nothing>) {
      return {};
    } else {
      static_assert(std::constructible_from<In, const std::string&>,
                    "a completion takes a TypedArgument, or what is typed as a std::string");
      return In(typed.value);
    }
  }
  static ArgumentCompletion encode(ArgumentCompletion completion) { return completion; }
  static ArgumentCompletion encode(std::vector<std::string> values);
  template <class... Out>
    requires(!(std::convertible_to<Out, ArgumentCompletion> ||
               std::convertible_to<Out, std::vector<std::string>>) &&
             ...)
  static ArgumentCompletion encode(const Out&... /*out*/) {
    static_assert(kNever<Out...>,
                  "a completion returns a vector of texts, or an ArgumentCompletion");
    return {};
  }
};

using ToolTable = HandlerTable<ToolArguments, ToolResult>;
using ResourceTable = HandlerTable<std::string, ResourceResult>;
using TemplateTable = HandlerTable<ResourceMatch, ResourceResult>;
using PromptTable = HandlerTable<Variables, PromptResult>;
using CompletionTable = HandlerTable<TypedArgument, ArgumentCompletion>;

/// The type that makes a tool's input schema. Null: the schema is in the options.
template <class F>
constexpr const Type* tool_input() {
  using In = InOf<F>;
  if constexpr (Struct<In>) {
    return type_of<In>();
  } else {
    static_assert(std::same_as<In, json::object>, "a tool takes a struct, or json::object");
    return nullptr;
  }
}
/// The type that makes a tool's output schema. Null: the schema, if any, is in the options.
template <class F>
constexpr const Type* tool_output() {
  if constexpr (StructuredOutput<OutOf<F>>) {
    return type_of<OutOf<F>>();
  } else {
    return nullptr;
  }
}
/// The type whose members are a prompt's arguments, or the variables of a resource template. Null:
/// the handler takes them by name, or not at all.
template <class F>
constexpr const Type* variables_input() {
  using In = InOf<F>;
  if constexpr (std::same_as<In, Nothing> || std::same_as<In, Variables> ||
                std::same_as<In, ResourceMatch>) {
    return nullptr;
  } else {
    static_assert(std::is_class_v<In> && std::is_aggregate_v<In>,
                  "a prompt or a resource template takes a struct of texts, sluice::Variables, or "
                  "nothing; a template may take a sluice::ResourceMatch");
    return type_of<In>();
  }
}

}  // namespace sluice::detail
