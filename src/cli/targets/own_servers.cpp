#include "cli/targets/own_servers.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/options/suggestion.hpp"
#include "cli/targets/config_reader.hpp"
#include "cli/targets/lenient_json.hpp"
#include "json/members.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice {
namespace {

constexpr std::string_view kServers = "mcpServers";

std::unexpected<Error> cannot_write(const std::string& path) {
  return fail(kExitFailure, "cannot write " + path + ": " + std::strerror(errno));
}

void append_indented(std::string& out, const json::value& value, std::size_t indent) {
  const auto new_line = [&](std::size_t spaces) { out.append("\n").append(spaces, ' '); };
  constexpr std::size_t kStep = 2;
  if (const auto* object = value.if_object(); object != nullptr && !object->empty()) {
    out.push_back('{');
    bool first = true;
    for (const auto& [key, member] : *object) {
      if (!std::exchange(first, false)) out.push_back(',');
      new_line(indent + kStep);
      append_json_string(out, key);
      out.append(": ");
      append_indented(out, member, indent + kStep);
    }
    new_line(indent);
    out.push_back('}');
  } else if (const auto* array = value.if_array(); array != nullptr && !array->empty()) {
    out.push_back('[');
    bool first = true;
    for (const json::value& element : *array) {
      if (!std::exchange(first, false)) out.push_back(',');
      new_line(indent + kStep);
      append_indented(out, element, indent + kStep);
    }
    new_line(indent);
    out.push_back(']');
  } else {
    append_json(out, value);
  }
}

json::object object_of(const NamedValues& values) {
  json::object out;
  for (const auto& [name, value] : values) out.insert_or_assign(name, value);
  return out;
}

json::object entry_of(const ConfiguredPlace& place) {
  json::object out;
  if (const auto* command = std::get_if<ConfiguredCommand>(&place)) {
    out["command"] = command->program;
    out["args"] = json::array(command->arguments.begin(), command->arguments.end());
    if (!command->environment.empty()) out["env"] = object_of(command->environment);
    if (!command->directory.empty()) out["cwd"] = command->directory;
    return out;
  }
  const auto& remote = std::get<ConfiguredUrl>(place);
  if (remote.transport != TransportHint::any) out["type"] = to_string(remote.transport);
  out["url"] = remote.url;
  if (!remote.headers.empty()) out["headers"] = object_of(remote.headers);
  return out;
}

/// Locks the folder, so that one program at a time changes the file. Waits a few seconds at most.
Result<Descriptor> lock_folder(const std::string& folder) {
  Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return cannot_write(folder);
  constexpr auto kPause = std::chrono::milliseconds(20);
  constexpr int kAttempts = 250;
  for (int attempt = 0; ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno != EINTR && errno != EWOULDBLOCK) return cannot_write(folder);
    if (attempt == kAttempts) {
      return fail(kExitFailure, folder + " is locked by another program; try again");
    }
    std::this_thread::sleep_for(kPause);
  }
  return lock;
}

/// Replaces the file by one with that text, which is on the disk before the name is. The folder is
/// locked, so what lies in the place of the new file is of a writer that was killed.
Result<void> replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  const Descriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return cannot_write(temporary);
  const auto give_up = [&]() -> Result<void> {
    auto failed = cannot_write(path);
    ::unlink(temporary.c_str());
    return failed;
  };
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return give_up();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file.get()) != 0) return give_up();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up();
  return {};
}

/// The file's value; an empty object if there is no file.
Result<json::object> read_own(const std::string& path) {
  const auto content = read_config(path, kMaxOwnFile);
  if (!content) return std::unexpected(content.error());
  if (!*content || (*content)->text.empty()) return json::object();
  if (!(*content)->distrust.empty()) {
    return fail(kExitUsage, path + " is not changed: " + (*content)->distrust);
  }
  auto value = parse_config_json((*content)->text, JsonDialect::strict, path);
  if (!value) return std::unexpected(std::move(value.error()));
  if (!value->is_object()) return fail(kExitUsage, path + ": must be an object");
  if (value->get_object().contains(kServers) &&
      object_at(value->get_object(), kServers) == nullptr) {
    return fail(kExitUsage, path + ": " + std::string(kServers) + ": must be an object");
  }
  return std::move(value->get_object());
}

/// Changes the object `mcpServers` of the file.
Result<void> change_servers(const std::string& given,
                            const std::function<Result<void>(json::object&)>& change) {
  std::error_code ignored;
  auto target = std::filesystem::weakly_canonical(given, ignored);
  const std::string path = ignored ? given : target.string();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const auto old_mask = ::umask(077);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  ::umask(old_mask);
  if (failed) return fail(kExitFailure, "cannot make " + folder + ": " + failed.message());
  const auto lock = lock_folder(folder);
  if (!lock) return std::unexpected(lock.error());
  auto root = read_own(path);
  if (!root) return std::unexpected(std::move(root.error()));
  if (!root->contains(kServers)) (*root)[kServers] = json::object();
  if (auto changed = change((*root)[kServers].get_object()); !changed) return changed;
  std::string text;
  append_indented(text, *root, 0);
  text.push_back('\n');
  if (text.size() > kMaxOwnFile) {
    return fail(kExitUsage,
                path + " would be larger than " + std::to_string(kMaxOwnFile) + " bytes");
  }
  return replace_file(path, text);
}

}  // namespace

Result<void> add_own_server(const std::string& path, const std::string& name,
                            const ConfiguredPlace& place) {
  return change_servers(path, [&](json::object& servers) -> Result<void> {
    if (servers.contains(name)) {
      return fail(kExitUsage, path + " has a server " + name + "; remove it first: sluice mcp " +
                                  "remove " + name);
    }
    servers[name] = entry_of(place);
    return {};
  });
}

Result<void> remove_own_server(const std::string& path, const std::string& name) {
  return change_servers(path, [&](json::object& servers) -> Result<void> {
    if (const auto found = servers.find(name); found != servers.end()) {
      servers.stable_erase(found);
      return {};
    }
    std::vector<std::string> names;
    for (const auto& [known, entry] : servers) names.emplace_back(known);
    std::string message = path + " has no server " + name;
    if (const auto meant = suggestion(name, names); !meant.empty()) {
      message.append("; did you mean ").append(meant).append("?");
    } else {
      message.append("; `sluice servers` lists all");
    }
    return fail(kExitUsage, std::move(message));
  });
}

}  // namespace sluice
