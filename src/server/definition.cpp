#include "server/definition.hpp"

#include <algorithm>

namespace sluice {

const Tool* ServerDefinition::find_tool(std::string_view tool) const {
  const auto found = std::ranges::find(tools, tool, &Tool::name);
  return found == tools.end() ? nullptr : &*found;
}

const StreamMethod* ServerDefinition::find_stream_method(std::string_view method) const {
  const auto found = std::ranges::find(stream_methods, method, &StreamMethod::name);
  return found == stream_methods.end() ? nullptr : &*found;
}

}  // namespace sluice
