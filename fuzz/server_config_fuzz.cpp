// A configuration file that names MCP servers. The first byte chooses the application, the rest is
// the file's text. What is accepted keeps to the limits, and its variables can be expanded without
// leaving a secret in a message.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/targets/server_forms.hpp"
#include "cli/targets/server_report.hpp"
#include "cli/targets/target.hpp"
#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "require.hpp"

using namespace sluice;

namespace {

constexpr std::string_view kSecret = "QqSecretQq";

const VariableSources& sources() {
  static const VariableSources all{
      .environment = [](const std::string& name) -> std::optional<std::string> {
        if (name.starts_with('N')) return std::nullopt;
        return std::string(kSecret);
      },
      .read_file = [](const std::string& path) -> Result<std::string> {
        if (path.ends_with('x')) return fail(2, path + ": there is no such file");
        return "A=" + std::string(kSecret) + "\n" + std::string(kSecret);
      },
      .home = "/home/ada",
      .directory = "/home/ada/shop"};
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ServersFile file{
      .application = kApplications.at(data[0] % kApplications.size()).application,
      .scope = (data[0] & 0x80) != 0 ? ConfigScope::project : ConfigScope::user,
      .path = "/home/ada/file",
      .workspace = "/home/ada",
      .directory = "/home/ada/shop"};
  // The text itself may have the secret.
  const bool knows_secret = text.contains("Secret");
  const auto parsed = parse_servers(text, file);
  if (!parsed) {
    require(parsed.error().message.starts_with(file.path));
    return 0;
  }
  FoundServers found{.servers = parsed->servers, .warnings = parsed->warnings};
  require(is_valid_utf8(json_of_servers(found)));
  require(parse_json(json_of_servers(found)).has_value());
  for (const ServerConfig& server : parsed->servers) {
    require(!server.name.empty() && server.name.size() <= kMaxServerName);
    has_variables(server);
    const std::string name = std::string(name_of(file.application).id) + "/" + server.name;
    const auto target = parse_target({.word = name, .command = {}}, found, sources());
    if (target) continue;
    require(!target.error().message.empty());
    require(knows_secret || !target.error().message.contains(kSecret));
  }
  return 0;
}
