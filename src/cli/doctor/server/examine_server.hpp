#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/report/check.hpp"
#include "cli/targets/target.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"

namespace sluice {

struct ServerExaminationOptions {
  std::vector<std::string> headers = {};  // "Name: value", for each request
  Duration timeout = std::chrono::seconds(30);

  /// The most requests of one examination.
  static constexpr std::size_t kMaxRequests = 100;
};

struct ServerExamination {
  Checks checks = {};
  int exit_code = 0;
  /// How the report ends, if no check has failed.
  std::string_view all_is_well = "No violation found";
};

/// Examines anybody's MCP server. Only reads: lists, and what must be refused. Calls no tools; ends
/// the sessions that it opens. At a URL, what HTTP servers must do is examined too; over other
/// transports, the revision and what the server offers. Blocks for `timeout` and some seconds at
/// most. An interrupt ends it, with what it has opened and started. Errors: kExitUsage;
/// kExitInterrupted, without a message.
Result<ServerExamination> examine_server(const Target& target,
                                         const ServerExaminationOptions& options);

}  // namespace sluice
