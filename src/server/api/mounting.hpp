#pragma once

#include <string_view>

#include "server/catalog/definition.hpp"

namespace sluice {

/// Adds the entries of `other` to `definition`, as Server::mount(). Throws std::invalid_argument if
/// that is not possible; `definition` may then have some of them.
void mount(ServerDefinition& definition, ServerDefinition other, std::string_view prefix);

}  // namespace sluice
