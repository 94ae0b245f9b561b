#pragma once

#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// The bytes of the file `uri` of a skill, if they are what the skill's entry in skills/list says
/// (SEP-2640, Integrity and verification). `contents` is that of resources/read. The length and
/// the digest must be the listed ones, and the frontmatter of SKILL.md that of the entry. Error:
/// -32602 if the entry does not list the file; -32603 says what differs, or that the entry has no
/// digest with which it could be verified.
Result<std::string> verified_skill_file(const json::object& entry, std::string_view uri,
                                        const json::array& contents);

}  // namespace sluice
