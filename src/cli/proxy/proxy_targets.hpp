#pragma once

#include <string>
#include <vector>

#include "cli/remote/server_place.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "proxy/upstream/upstream.hpp"

namespace sluice {

/// What the command line says of the servers behind a proxy.
struct ProxyTargets {
  std::vector<std::string> words;    // [NAME=]TARGET, or NAME= for the command
  std::vector<std::string> command;  // what stands after "--"; empty: there is none
  std::vector<std::string> headers;  // "Name: value", for the only server
  std::string revision;              // to speak with all of them; empty: what they speak
};

/// A word as a name and a target. The name is empty if there is none.
struct NamedTarget {
  std::string name;
  TargetArguments target;
};
/// Splits the words. Errors carry kExitUsage.
Result<std::vector<NamedTarget>> named_targets(const ProxyTargets& targets);

/// What `target` is to a proxy, without a prefix. `headers` are those of the command line. Warnings
/// go to standard error. Errors carry kExitUsage.
Result<UpstreamOptions> upstream_of(Target target, const NamedValues& headers);

/// The servers, each with a prefix if there are several (proxy/translation/names.hpp): its name on
/// the command line, or else in the configuration file. Warnings go to standard error. Errors carry
/// kExitUsage.
Result<std::vector<UpstreamOptions>> upstreams_of(const ProxyTargets& targets,
                                                  Duration idle_timeout);

}  // namespace sluice
