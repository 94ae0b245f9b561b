#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

/// One line in a report of `sluice doctor`.
struct Check {
  enum class Status : std::uint8_t {
    ok,
    note,  // worth knowing; nothing is wrong
    warn,
    fail,
  };
  Status status = Status::ok;
  std::string subject;      // "memory"
  std::string finding;      // what was found
  std::string fix;          // what to do about it; empty when ok
  std::string clause = {};  // of a specification, which says how it should be; may be empty
};

using Checks = std::vector<Check>;

}  // namespace sluice
