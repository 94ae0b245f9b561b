#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/syntax/uri_template.hpp"
#include "server/catalog/definition.hpp"
#include "sluice/detail/type.hpp"

namespace sluice {

// Checks of what a program adds to its Server. They throw std::invalid_argument, which names the
// entry and says what is wrong and how to fix it. `kind` is a word such as "tool".

/// A name is not empty, and is UTF-8 without control characters.
void check_name(std::string_view kind, std::string_view name);
/// The same for a tool. Logs a warning about a name that clients may refuse (2026-07-28, Tools,
/// Tool Names).
void check_tool_name(std::string_view name);
/// The name of a header field is a token (RFC 9110, section 5.1).
void check_header_name(std::string_view name);
/// The URI of a resource has a scheme (RFC 3986).
void check_uri(std::string_view uri);
/// The same for the URIs of a template (RFC 6570), which is returned.
UriTemplate checked_template(std::string_view text);

/// The members of a struct as the arguments of a prompt or the variables of a template. All of them
/// must be texts.
std::vector<PromptArgument> text_members(std::string_view kind, std::string_view name,
                                         const detail::Type& type);
/// Each variable of the template has a member in the struct of its handler, and each member that is
/// required has a variable.
void check_variables(std::string_view text, const UriTemplate& uri, const detail::Type& type);
/// Arguments of one prompt have names, and different ones.
void check_arguments(std::string_view prompt, const std::vector<PromptArgument>& arguments);

}  // namespace sluice
