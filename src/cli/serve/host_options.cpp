#include "cli/serve/host_options.hpp"

#include <chrono>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "auth/api_keys.hpp"
#include "auth/trusted_proxies.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/serve/npu_engine.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {

std::shared_ptr<Authenticator> authenticator(const ServeConfig::Access& access) {
  std::vector<std::pair<std::string, std::string>> keys;
  for (const ApiKey& key : access.api_keys) keys.emplace_back(key.name, key.key);
  return std::make_shared<ApiKeys>(keys);
}

Result<std::shared_ptr<TlsContext>> tls_context(const ServeConfig& config) {
  if (config.tls_certificate.empty()) return nullptr;
  return TlsContext::server(config.tls_certificate, config.tls_key);
}

Result<ServerHostOptions> host_options(const ServeConfig& config) {
  const Result<std::shared_ptr<TlsContext>> tls = tls_context(config);
  if (!tls) return fail(kExitUsage, tls.error().message);
  Result<TrustedProxies> proxies =
      TrustedProxies::make(config.access.trusted_proxies, config.access.forwarded_field);
  if (!proxies) return fail(kExitUsage, "access.trusted_proxies: " + proxies.error().message);
  ServerHostOptions options;
  options.access.proxies = *std::move(proxies);
  for (const HostPort& place : listening_places(config)) {
    options.tcp.push_back({.at = place, .tls = *tls});
  }
  options.unix_path = config.unix_path;
  options.unix_mode = config.unix_mode;
  options.end_timeout = config.shutdown_deadline;
  // An NPU gives few tokens, and the board's other cores feed it. With one loop, which the engine
  // shares, each token goes straight to its readers.
  const bool takes_one = config.threads == 0 && is_npu_model(config.engine.model);
  options.threads = takes_one ? 1 : config.threads;
  options.limits.max_chunks = config.streams.max_chunks;
  options.limits.max_bytes = config.streams.max_bytes;
  options.limits.expiry = config.streams.expiry;
  options.limits.tombstone = config.streams.tombstone;
  options.limits.retained_bytes = config.streams.retained_bytes;
  options.limits.stall = config.streams.stall_limit;
  options.stream_memory = config.streams.max_total_bytes;
  options.streams_per_client = config.streams.per_client;
  options.calls_per_client = config.calls.per_client;
  options.sessions.max_sessions = config.sessions.max;
  options.sessions.per_client = config.sessions.per_client;
  options.sessions.expiry = config.sessions.expiry;
  options.sessions.resume_window = config.sessions.resume_window;
  const auto milliseconds = [](Duration duration) {
    return std::chrono::ceil<std::chrono::milliseconds>(duration);
  };
  options.tasks = {.max_tasks = config.tasks.max,
                   .per_client = config.tasks.per_client,
                   .ttl = milliseconds(config.tasks.ttl),
                   .max_ttl = milliseconds(config.tasks.max_ttl),
                   .poll_interval = milliseconds(config.tasks.poll_interval),
                   .max_result = config.tasks.max_result,
                   .result_memory = config.tasks.max_total_results};
  options.max_message = config.http.max_body;
  options.http.max_header_bytes = config.http.max_header;
  options.connection_memory = config.http.max_total_buffers;
  options.http.max_connections = config.http.max_connections;
  options.http.max_connections_per_client = config.http.max_connections_per_client;
  options.http.gzip_threshold = config.compression_threshold;
  options.http.request_timeout = config.http.request_timeout;
  options.http.idle_timeout = config.http.keep_alive;
  options.http.output.stall_timeout = config.http.write_stall;
  options.http.event_keep_alive = config.http.event_keep_alive;
  if (config.http.event_keep_alive != Duration{}) {
    options.http.ping_interval = 2 * config.http.event_keep_alive;
  }
  if (!config.access.api_keys.empty()) options.access.authenticator = authenticator(config.access);
  options.access.allowed_origins = config.access.allowed_origins;
  options.access.allowed_hosts = config.access.allowed_hosts;
  return options;
}

Result<void> use_log(const ServeConfig::Log& log) {
  if (!log.file.empty()) {
    if (Result<void> opened = log_to_file(log.file); !opened) return opened;
  }
  set_logging(log.level, log.format, log.file.empty() && Style::of(STDERR_FILENO).coloured());
  return {};
}

}  // namespace sluice
