#include "server/catalog/definition.hpp"

#include <algorithm>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"

namespace sluice {

bool Tool::is_visible_to(const Principal& caller) const {
  if (!visible_to) return true;
  try {
    return visible_to(caller);
  } catch (...) {
    static LogLimit limit;
    log_exception(limit, "The visible_to of a tool failed", LogField{"tool", name});
    return false;
  }
}

bool ServerDefinition::has_tasks() const {
  return forwarder != nullptr || std::ranges::any_of(tools, [](const Tool& tool) {
           return tool.task_support != TaskSupport::forbidden;
         });
}

const StreamMethod* ServerDefinition::find_stream_method(std::string_view method) const {
  const auto found = std::ranges::find(stream_methods, method, &StreamMethod::name);
  return found == stream_methods.end() ? nullptr : &*found;
}

std::string_view ServerDefinition::plain_name(std::string_view method) const {
  const auto found = stream_aliases.find(method);
  return found == stream_aliases.end() ? method : std::string_view(found->second);
}

}  // namespace sluice
