#include "cli/doctor/doctor_checks.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "auth/access_policy.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/unix_socket.hpp"

namespace sluice {
namespace {

using Status = Check::Status;

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::string gibibytes(std::uint64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f GiB", static_cast<double>(bytes) / kGiB);
  return text.data();
}

}  // namespace

void check_machine(Checks& out, const MachineFacts& machine, const ServeConfig& config) {
  std::string cpu = std::to_string(machine.cores) + (machine.cores == 1 ? " core" : " cores");
  if (!machine.cpu.empty()) cpu += ", " + machine.cpu;
  for (const std::string& feature : machine.features) cpu += ", " + feature;
  if (machine.features.empty()) {
    out.push_back(
        {Status::warn, "cpu", cpu + ", without the vector instructions that make a model fast",
         "Expect few tokens per second; a machine with AVX2 or NEON is many times faster"});
  } else {
    out.push_back({Status::ok, "cpu", cpu, ""});
  }

  const std::string memory =
      gibibytes(machine.memory_available) + " of " + gibibytes(machine.memory_total) + " available";
  if (config.streams.max_total_bytes > machine.memory_available / 2) {
    out.push_back({Status::warn, "memory",
                   memory + "; streams alone may use " + gibibytes(config.streams.max_total_bytes),
                   "Lower --max-total-bytes, or free some memory"});
  } else {
    out.push_back({Status::ok, "memory", memory, ""});
  }
}

void check_limits(Checks& out, const MachineFacts& machine, const ServeConfig& config) {
  const std::uint64_t needed = files_for_connections(config.http.max_connections);
  const std::string files = std::to_string(machine.open_files_soft) + " (up to " +
                            std::to_string(machine.open_files_hard) + ")";
  if (machine.open_files_hard < needed) {
    out.push_back({Status::fail, "open files",
                   files + ", but --max-connections " +
                       std::to_string(config.http.max_connections) + " needs " +
                       std::to_string(needed),
                   "Lower --max-connections, or raise the limit: `ulimit -Hn " +
                       std::to_string(needed) + "` as root, LimitNOFILE= in a systemd unit"});
  } else {
    out.push_back({Status::ok, "open files",
                   files + (machine.open_files_soft < needed
                                ? "; the server raises it to " + std::to_string(needed)
                                : ""),
                   ""});
  }

  constexpr std::uint64_t kGoodBacklog = 1024;
  const std::string backlog =
      std::to_string(machine.somaxconn) + " connections may wait to be accepted";
  if (machine.somaxconn != 0 && machine.somaxconn < kGoodBacklog) {
    out.push_back({Status::warn, "backlog", backlog,
                   "Bursts of connections may be refused: sysctl -w net.core.somaxconn=4096"});
  } else {
    out.push_back({Status::ok, "backlog", backlog, ""});
  }
}

namespace {

/// Returns the socket that listens, so that another place cannot have its port.
/// `host_flag` and `port_flag` change the place.
Descriptor check_place(Checks& out, const HostPort& place, const std::string& host_flag,
                       const std::string& port_flag) {
  const std::string port = std::to_string(place.port);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(place.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    out.push_back({Status::fail, "address", place.host + ": " + ::gai_strerror(error),
                   "Give an address of this machine with " + host_flag + ", such as 127.0.0.1"});
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  Descriptor listener(
      ::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol));
  const int fd = listener.get();
  const int yes = 1;
  int failed = fd < 0 ? errno : 0;
  if (failed == 0) {
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(fd, found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd, 1) != 0) failed = errno;
  }
  const std::string subject = "port";
  const std::string where = place.host + " port " + port;
  if (failed == 0) {
    out.push_back({Status::ok, subject, where + " is free", ""});
  } else if (failed == EADDRINUSE) {
    out.push_back({Status::fail, subject, where + " is already in use",
                   "Give another " + port_flag +
                       " (port 0 takes any free one), or stop what listens there: ss -ltnp "
                       "'sport = :" +
                       port + "'"});
  } else if (failed == EACCES) {
    out.push_back({Status::fail, subject, where + " is reserved for root",
                   "Give a " + port_flag +
                       " above 1023, or allow it: setcap cap_net_bind_service=+ep on the "
                       "program"});
  } else {
    out.push_back({Status::fail, subject, where + ": " + std::strerror(failed),
                   "Give an address of this machine with " + host_flag + ", such as 127.0.0.1"});
  }
  return listener;
}

/// open(2) gives up sooner.
constexpr int kMostLinks = 64;

}  // namespace

void check_unix_socket(Checks& out, const ServeConfig& config) {
  if (config.unix_path.empty()) return;
  const auto listener = UnixListener::listen(config.unix_path, config.unix_mode);
  if (listener) {
    out.push_back({Status::ok, "socket", config.unix_path + " can be listened on", ""});
  } else {
    out.push_back({Status::fail, "socket", listener.error().message,
                   "Give another --unix, in a directory where this user may create files"});
  }
}

void check_ports(Checks& out, const ServeConfig& config) {
  std::vector<Descriptor> listeners;
  for (const HostPort& place : listening_places(config)) {
    listeners.push_back(check_place(out, place, "--host", "--port"));
  }
  if (config.legacy_ports) {
    check_place(out, config.legacy_listen, "--legacy-listen", "--legacy-listen");
  }
}

void check_log(Checks& out, const ServeConfig& config) {
  const std::string& path = config.log.file;
  if (path.empty()) return;
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  int failed = file.get() < 0 ? errno : 0;
  if (failed == ENOENT) {
    // It is created when the server starts, or what it links to is.
    std::filesystem::path created = path;
    for (int links = 0; links < kMostLinks; ++links) {
      std::error_code error;
      const auto target = std::filesystem::read_symlink(created, error);
      if (error) break;
      created = created.parent_path() / target;
    }
    const std::string folder = created.parent_path();
    failed = ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  }
  if (failed == 0) {
    out.push_back({Status::ok, "log", path + " can be written", ""});
  } else {
    out.push_back({Status::fail, "log", path + ": " + std::strerror(failed),
                   "Give another --log-file, in a directory where this user may create files"});
  }
}

void check_access(Checks& out, const ServeConfig& config) {
  const auto keys = config.access.api_keys.size();
  const std::string who = keys == 0 ? "no API keys" : std::to_string(keys) + " API keys";
  struct stat info{};
  if (!config.access.api_key_file.empty() &&
      ::stat(config.access.api_key_file.c_str(), &info) == 0 && (info.st_mode & 077U) != 0) {
    out.push_back({Status::warn, "access", config.access.api_key_file + " can be read by others",
                   "chmod 600 " + config.access.api_key_file});
    return;
  }
  const std::vector<HostPort> places = listening_places(config);
  const auto open = std::ranges::find_if(
      places, [](const HostPort& place) { return !is_loopback_host(place.host); });
  if (open != places.end() && keys == 0) {
    out.push_back({Status::warn, "access",
                   who + ", and " + open->host + " can be reached from other machines",
                   "Give --api-key-file, or listen on 127.0.0.1"});
    return;
  }
  if (open != places.end() && config.tls_certificate.empty()) {
    out.push_back({Status::warn, "access", who + ", which are sent unencrypted because TLS is off",
                   "Give --tls-cert and --tls-key, or put a TLS proxy in front"});
    return;
  }
  out.push_back({Status::ok, "access",
                 who + (open == places.end() ? ", reachable from this machine only" : ""), ""});
}

}  // namespace sluice
