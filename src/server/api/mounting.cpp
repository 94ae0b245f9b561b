#include "server/api/mounting.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "server/api/entry_checks.hpp"

namespace sluice {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("the server cannot be mounted: " + why);
}

/// Moves the entries of `from` to the end of `to`. Their names must be new.
template <class T>
void append(std::vector<T>& to, std::vector<T> from, std::string T::* name) {
  for (const T& each : from) {
    if (std::ranges::find(to, each.*name, name) != to.end()) {
      refuse("there is a '" + each.*name + "' already");
    }
  }
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void mount(ServerDefinition& definition, ServerDefinition other, std::string_view prefix) {
  if (!other.middleware.empty()) {
    refuse("it has middleware, which would not run here: add it to this server");
  }
  for (const std::string& field : other.request_headers) {
    const auto is_field = [&](const std::string& known) {
      return to_lower(known) == to_lower(field);
    };
    if (std::ranges::none_of(definition.request_headers, is_field)) {
      refuse("its handlers may read " + field + ": name it in request_headers of this server");
    }
  }
  const std::string before = prefix.empty() ? std::string() : std::string(prefix) + "_";
  for (Tool& tool : other.tools) {
    tool.name.insert(0, before);
    check_tool_name(tool.name);
  }
  for (Prompt& prompt : other.prompts) {
    prompt.name.insert(0, before);
    check_name("prompt", prompt.name);
  }
  append(definition.tools, std::move(other.tools), &Tool::name);
  append(definition.prompts, std::move(other.prompts), &Prompt::name);
  append(definition.resources, std::move(other.resources), &Resource::uri);
  append(definition.resource_templates, std::move(other.resource_templates),
         &ResourceTemplate::uri_template);
  definition.skills.insert(definition.skills.end(), other.skills.begin(), other.skills.end());
  definition.mounted_workers.push_back(std::move(other.workers));
  std::ranges::move(other.mounted_workers, std::back_inserter(definition.mounted_workers));
}

}  // namespace sluice
