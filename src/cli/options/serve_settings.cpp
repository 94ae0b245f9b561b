#include "cli/options/serve_settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <utility>

#include "auth/api_keys.hpp"
#include "cli/options/config_value.hpp"
#include "json/json.hpp"
#include "net/loop/host_port.hpp"

namespace sluice {
namespace {

using Values = std::vector<std::string>;

/// A function that returns the member of a ServeConfig& or const ServeConfig& that holds a setting.
#define SLUICE_AT(path) [](auto& config) -> auto& { return config.path; }

Setting base(std::string_view key, std::string_view flag, std::string_view operand,
             std::string_view help, std::string allowed, Setting::Kind kind) {
  return {.key = key,
          .flag = flag,
          .operand = std::string(operand),
          .help = help,
          .allowed = std::move(allowed),
          .kind = kind,
          .secret = false,
          .is_used = {},
          .store = {},
          .show = {}};
}

template <class At>
Setting number(std::string_view key, std::string_view flag, std::int64_t min, std::int64_t max,
               std::string_view help, At at) {
  Setting setting = base(key, flag, "N", help,
                         "a number from " + std::to_string(min) + " to " + std::to_string(max),
                         Setting::Kind::number);
  setting.store = [=](ServeConfig& config, const Values& values) {
    const auto value = parse_integer(values.front());
    if (!value || *value < min || *value > max) return false;
    at(config) = static_cast<std::remove_cvref_t<decltype(at(config))>>(*value);
    return true;
  };
  setting.show = [=](const ServeConfig& config) -> Values { return {std::to_string(at(config))}; };
  return setting;
}

template <class At>
Setting size(std::string_view key, std::string_view flag, std::size_t min, std::string_view help,
             At at, std::size_t max = std::size_t{1} << 40U) {
  Setting setting =
      base(key, flag, "SIZE", help,
           "a size from " + format_size(min) + " to " + format_size(max) + ", such as 64KiB",
           Setting::Kind::text);
  setting.store = [=](ServeConfig& config, const Values& values) {
    const auto value = parse_size(values.front());
    if (!value || *value < min || *value > max) return false;
    at(config) = *value;
    return true;
  };
  setting.show = [=](const ServeConfig& config) -> Values { return {format_size(at(config))}; };
  return setting;
}

template <class At>
Setting duration(std::string_view key, std::string_view flag, std::string_view help, At at) {
  Setting setting = base(key, flag, "TIME", help, std::string(kTimes), Setting::Kind::text);
  setting.store = [=](ServeConfig& config, const Values& values) {
    const auto value = parse_time(values.front());
    if (!value) return false;
    at(config) = *value;
    return true;
  };
  setting.show = [=](const ServeConfig& config) -> Values { return {format_duration(at(config))}; };
  return setting;
}

template <class At>
Setting text(std::string_view key, std::string_view flag, std::string_view operand,
             std::string_view help, std::string_view allowed, At at) {
  Setting setting = base(key, flag, operand, help, std::string(allowed), Setting::Kind::text);
  setting.store = [=](ServeConfig& config, const Values& values) {
    constexpr std::size_t kMaxLength = 4096;
    const std::string& value = values.front();
    if (value.empty() || value.size() > kMaxLength || value.contains('\0')) return false;
    at(config) = value;
    return true;
  };
  setting.show = [=](const ServeConfig& config) -> Values {
    return at(config).empty() ? Values{} : Values{at(config)};
  };
  return setting;
}

template <class At>
Setting yes_or_no(std::string_view key, std::string_view flag, std::string_view help, At at) {
  Setting setting = base(key, flag, "", help, "true or false", Setting::Kind::flag);
  setting.store = [=](ServeConfig& config, const Values& values) {
    if (values.front() != "true" && values.front() != "false") return false;
    at(config) = values.front() == "true";
    return true;
  };
  setting.show = [=](const ServeConfig& config) -> Values {
    return {at(config) ? "true" : "false"};
  };
  return setting;
}

/// A file's permissions, in octal digits as for chmod.
template <class At>
Setting mode(std::string_view key, std::string_view flag, std::string_view help, At at) {
  static constexpr std::size_t kDigits = 4;
  Setting setting = base(key, flag, "MODE", help, "three or four octal digits, such as 0660",
                         Setting::Kind::text);
  setting.store = [=](ServeConfig& config, const Values& values) {
    const std::string& text = values.front();
    if ((text.size() != kDigits || text.front() != '0') && text.size() != kDigits - 1) return false;
    std::uint32_t value = 0;
    for (const char digit : text) {
      if (digit < '0' || digit > '7') return false;
      value = value * 8 + static_cast<std::uint32_t>(digit - '0');
    }
    at(config) = value;
    return true;
  };
  setting.show = [=](const ServeConfig& config) -> Values {
    std::string text(kDigits, '0');
    std::uint32_t value = at(config);
    for (std::size_t i = kDigits; i-- > 0; value /= 8) text[i] = static_cast<char>('0' + value % 8);
    return {text};
  };
  return setting;
}

template <class Enum, std::size_t N, class At>
Setting choice(std::string_view key, std::string_view flag, std::string_view help,
               const std::array<std::pair<std::string_view, Enum>, N>& names, At at) {
  std::string allowed;
  std::string operand;
  for (std::size_t i = 0; i < N; ++i) {
    if (i > 0) allowed.append(i + 1 == N ? " or " : ", ");
    allowed.append(names[i].first);
    operand.append(i > 0 ? "|" : "").append(names[i].first);
  }
  Setting setting = base(key, flag, operand, help, std::move(allowed), Setting::Kind::text);
  setting.store = [=](ServeConfig& config, const Values& values) {
    for (const auto& [name, value] : names) {
      if (name != values.front()) continue;
      at(config) = value;
      return true;
    }
    return false;
  };
  setting.show = [=](const ServeConfig& config) -> Values {
    for (const auto& [name, value] : names) {
      if (value == at(config)) return {std::string(name)};
    }
    return {};
  };
  return setting;
}

template <class At>
Setting names(std::string_view key, std::string_view flag, std::string_view operand,
              std::string_view help, std::string_view allowed, At at) {
  Setting setting = base(key, flag, operand, help, std::string(allowed), Setting::Kind::list);
  setting.store = [=](ServeConfig& config, const Values& values) {
    constexpr std::size_t kMaxEntries = 256;
    const auto bad = [](const std::string& value) {
      return value.empty() || value.size() > 256 ||
             value.find_first_of(" \t\r\n,") != std::string::npos;
    };
    if (values.size() > kMaxEntries || std::ranges::any_of(values, bad)) return false;
    at(config) = values;
    return true;
  };
  setting.show = [=](const ServeConfig& config) -> Values { return at(config); };
  return setting;
}

Setting trusted_proxies() {
  Setting setting = names("access.trusted_proxies", "--trusted-proxy", "ADDRESS",
                          "Addresses of proxies that are trusted to name the client they forward "
                          "for, or prefixes such as 10.0.0.0/8. Without API keys, each client of "
                          "such a proxy then counts separately",
                          "addresses such as 192.0.2.1, or prefixes such as 10.0.0.0/8",
                          SLUICE_AT(access.trusted_proxies));
  setting.store = [store = setting.store](ServeConfig& config, const Values& values) {
    return TrustedProxies::make(values, config.access.forwarded_field) && store(config, values);
  };
  return setting;
}

Setting api_keys() {
  Setting setting =
      base("access.api_keys", "--api-key", "NAME=KEY",
           "Name and key of a client that may call; repeat for more clients. Other users of this "
           "machine can see flags: prefer --api-key-file",
           "NAME=KEY with a name of [A-Za-z0-9_.-], used once, and a key of 16 to 256 visible "
           "ASCII characters without a comma",
           Setting::Kind::list);
  setting.secret = true;
  setting.store = [](ServeConfig& config, const Values& values) {
    constexpr std::size_t kMaxKeys = 10000;
    std::vector<ApiKey> keys;
    for (const std::string& value : values) {
      auto key = parse_api_key(value);
      const auto same_name = [&](const ApiKey& other) { return other.name == key->name; };
      if (!key || keys.size() == kMaxKeys || std::ranges::any_of(keys, same_name)) return false;
      keys.push_back(*std::move(key));
    }
    config.access.api_keys = std::move(keys);
    return true;
  };
  setting.show = [](const ServeConfig& config) {
    Values shown;
    for (const ApiKey& key : config.access.api_keys) shown.push_back(key.name + "=<redacted>");
    return shown;
  };
  return setting;
}

bool is_one_place(const ServeConfig& config) {
  return config.listen.size() <= 1;
}

Setting used_for_one_place(Setting setting) {
  setting.is_used = is_one_place;
  return setting;
}

Setting listen() {
  static constexpr std::size_t kMaxPlaces = 64;
  Setting setting = base("listen", "--listen", "HOST:PORT",
                         "Address and port to listen on, instead of --host and --port; repeat for "
                         "more places. An IPv6 address is in brackets: [::1]:8080",
                         "at most 64 HOST:PORT, each once, such as 127.0.0.1:8080 or [::1]:8080",
                         Setting::Kind::list);
  setting.is_used = [](const ServeConfig& config) { return !is_one_place(config); };
  setting.store = [](ServeConfig& config, const Values& values) {
    if (values.size() > kMaxPlaces) return false;
    std::vector<HostPort> places;
    for (const std::string& value : values) {
      auto place = parse_host_port(value);
      if (!place || std::ranges::find(places, *place) != places.end()) return false;
      places.push_back(*std::move(place));
    }
    config.listen = std::move(places);
    if (config.listen.empty()) return true;
    config.host = config.listen.front().host;
    config.port = config.listen.front().port;
    return true;
  };
  setting.show = [](const ServeConfig& config) {
    Values shown;
    for (const HostPort& place : config.listen) shown.push_back(to_text(place));
    return shown;
  };
  return setting;
}

Setting legacy_listen() {
  Setting setting = base("legacy_listen", "--legacy-listen", "HOST:PORT",
                         "Address and port for --legacy-ports; port 0 takes any free port",
                         "HOST:PORT, such as 127.0.0.1:8081 or [::1]:8081", Setting::Kind::text);
  setting.store = [](ServeConfig& config, const Values& values) {
    auto place = parse_host_port(values.front());
    if (!place) return false;
    config.legacy_listen = *std::move(place);
    return true;
  };
  setting.show = [](const ServeConfig& config) -> Values {
    return {to_text(config.legacy_listen)};
  };
  return setting;
}

constexpr std::array<std::pair<std::string_view, EngineKind>, 2> kEngines = {
    {{"llama", EngineKind::llama}, {"synthetic", EngineKind::synthetic}}};
constexpr std::array<std::pair<std::string_view, ModelApi>, 3> kModelApis = {
    {{"chat", ModelApi::chat},
     {"responses", ModelApi::responses},
     {"websocket", ModelApi::websocket}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNpuAbis = {
    {{"auto", "auto"}, {"1.1", "1.1"}, {"1.2.0", "1.2.0"}, {"1.2.1", "1.2.1"}, {"1.3.0", "1.3.0"}}};
constexpr std::array<std::pair<std::string_view, LogLevel>, 6> kLevels = {
    {{"trace", LogLevel::trace},
     {"debug", LogLevel::debug},
     {"info", LogLevel::info},
     {"warning", LogLevel::warning},
     {"error", LogLevel::error},
     {"off", LogLevel::off}}};
constexpr std::array<std::pair<std::string_view, TrustedProxies::Field>, 2> kForwardedFields = {
    {{"X-Forwarded-For", TrustedProxies::Field::x_forwarded_for},
     {"Forwarded", TrustedProxies::Field::forwarded}}};
constexpr std::array<std::pair<std::string_view, LogFormat>, 2> kFormats = {
    {{"text", LogFormat::text}, {"json", LogFormat::json}}};

std::vector<Setting> make_settings() {
  constexpr std::int64_t kMany = 1'000'000'000;
  std::vector<Setting> all;
  const auto add = [&](Setting setting) { all.push_back(std::move(setting)); };

  add(used_for_one_place(text("host", "--host", "ADDRESS", "Address to listen on",
                              "an IP address or a host name", SLUICE_AT(host))));
  add(used_for_one_place(number("port", "--port", 0, 65535,
                                "Port to listen on; 0 takes any free port", SLUICE_AT(port))));
  add(listen());
  add(yes_or_no(
      "stdio", "--stdio",
      "Serve the program that started this one, over standard input and output; no port is "
      "opened unless --host, --port or --listen is given too",
      SLUICE_AT(stdio)));
  add(text("unix", "--unix", "PATH",
           "Listen on a Unix domain socket; no port is opened unless --host, --port or --listen is "
           "given too",
           "a path of at most 107 bytes", SLUICE_AT(unix_path)));
  add(mode("unix_mode", "--unix-mode", "Permissions of the socket, as for chmod",
           SLUICE_AT(unix_mode)));
  add(yes_or_no("legacy_ports", "--legacy-ports",
                "Also take messages as lines over TCP, as an earlier server did; there are no keys "
                "and no TLS",
                SLUICE_AT(legacy_ports)));
  add(legacy_listen());
  add(number("threads", "--threads", 0, 1024,
             "Number of event loops; 0 starts one per core, or a single one for a model of an NPU",
             SLUICE_AT(threads)));
  add(text("tls_certificate", "--tls-cert", "FILE", "Serve TLS with this certificate chain (PEM)",
           "a file", SLUICE_AT(tls_certificate)));
  add(text("tls_key", "--tls-key", "FILE", "The certificate's private key (PEM)", "a file",
           SLUICE_AT(tls_key)));
  add(duration("shutdown_deadline", "--shutdown-deadline",
               "How long streams may continue after the first SIGTERM or Ctrl-C",
               SLUICE_AT(shutdown_deadline)));
  add(size("compression_threshold", "--compression-threshold", 0,
           "Compress replies of at least this size for clients that accept it; 0 never compresses",
           SLUICE_AT(compression_threshold)));

  add(choice(
      "engine.kind", "--engine",
      "What generates answers: llama runs a GGUF model, synthetic emits numbered chunks for load "
      "tests",
      kEngines, SLUICE_AT(engine.kind)));
  add(text("engine.model", "--model", "FILE|URL",
           "GGUF file of the model, .rkllm file for a Rockchip NPU, or the URL of an API like "
           "OpenAI's, with #NAME if it has several models; without it, a tiny built-in model runs",
           "a file or a URL", SLUICE_AT(engine.model)));
  add(choice(
      "engine.model_api", "--model-api",
      "Which API of the model's server is asked: chat completions, Responses, or Responses over "
      "a WebSocket",
      kModelApis, SLUICE_AT(engine.model_api)));
  add(number("engine.slots", "--slots", 0, 256,
             "How many answers are generated at the same time; 0: 4, or 1 on an NPU, where each "
             "slot has a process with the whole model",
             SLUICE_AT(engine.slots)));
  add(number(
      "engine.context", "--context", 0, kMany,
      "Maximum number of tokens in one conversation; 0 takes what the model was trained for, or "
      "what fits into memory",
      SLUICE_AT(engine.context)));
  add(number("engine.threads", "--model-threads", 0, 1024,
             "Threads that run the model; 0 starts one per core, or a single one for a tiny model",
             SLUICE_AT(engine.threads)));
  add(text("engine.backend", "--backend", "NAME",
           "Where the model runs: auto, cpu, or the name of a device",
           "auto, cpu, or the name of a device", SLUICE_AT(engine.backend)));
  add(number("engine.gpu_layers", "--gpu-layers", -1, 10000,
             "How many layers of the model run on the GPU; -1: as many as fit",
             SLUICE_AT(engine.gpu_layers)));
  add(number(
      "engine.queue", "--queue", 1, 1'000'000,
      "Requests that may wait for a slot; one client may take half of the places that are free",
      SLUICE_AT(engine.queue)));
  add(yes_or_no("engine.share_prefixes", "--share-prefixes",
                "Reuse the cached beginning of one client's prompt for other clients; they can "
                "then find out what others asked",
                SLUICE_AT(engine.share_prefixes)));
  add(text("engine.chat_template", "--chat-template", "FILE",
           "The model's chat template, in Jinja or in a tokenizer_config.json; without it, that of "
           "the GGUF file, or the one beside an .rkllm file",
           "a file", SLUICE_AT(engine.chat_template)));
  add(text("engine.rkllm_library", "--rkllm-library", "FILE",
           "The NPU's runtime, librkllmrt.so; without it, the places of libraries are searched",
           "a file", SLUICE_AT(engine.rkllm_library)));
  add(choice("engine.rkllm_abi", "--rkllm-abi",
             "The binary interface of the NPU's runtime; auto: that of the version it names. A "
             "wrong one crashes its process",
             kNpuAbis, SLUICE_AT(engine.rkllm_abi)));
  add(yes_or_no("engine.cross_attention", "--cross-attention",
                "Load the NPU's model so that set_cross_attn_params tells what it attends to; the "
                "model must be one that does",
                SLUICE_AT(engine.cross_attention)));
  add(text("engine.model_dir", "--model-dir", "DIR",
           "Folder of the files that operators name, such as LoRA adapters and prompt caches; "
           "their paths do not leave it",
           "a folder", SLUICE_AT(engine.model_dir)));
  add(text("engine.prompt_cache_dir", "--prompt-cache-dir", "DIR",
           "Folder in which an NPU's runtime keeps what it has computed of long prompts, for each "
           "client alone; without it, nothing is kept",
           "a folder", SLUICE_AT(engine.prompt_cache_dir)));
  add(size("engine.prompt_cache_size", "--prompt-cache-size", std::size_t{1} << 20U,
           "Size of that folder; what was used least recently is removed",
           SLUICE_AT(engine.prompt_cache_size)));

  add(number("streams.max_chunks", "--max-chunks", 1, kMany,
             "Chunks that one stream keeps until its readers have them",
             SLUICE_AT(streams.max_chunks)));
  add(size("streams.max_bytes", "--max-stream-bytes", 1024,
           "Text that one stream keeps until its readers have it", SLUICE_AT(streams.max_bytes)));
  add(size("streams.max_total_bytes", "--max-total-bytes", std::size_t{64} << 10U,
           "Memory for all streams together", SLUICE_AT(streams.max_total_bytes)));
  add(size("streams.retained_bytes", "--retained-bytes", 0,
           "Text that one stream keeps after its readers had it, for a reader that resumes",
           SLUICE_AT(streams.retained_bytes)));
  add(number("streams.per_client", "--streams-per-client", 1, 1'000'000,
             "Streams that one client may have open", SLUICE_AT(streams.per_client)));
  add(duration("streams.expiry", "--stream-expiry",
               "A stream that nobody accesses for this long is removed",
               SLUICE_AT(streams.expiry)));
  add(duration("streams.tombstone", "--stream-tombstone",
               "How long a removed stream answers \"expired\" instead of \"not found\"",
               SLUICE_AT(streams.tombstone)));
  add(duration("streams.stall_limit", "--stall-limit",
               "A reader that blocks a full stream for this long is disconnected from it",
               SLUICE_AT(streams.stall_limit)));

  add(number("calls.per_client", "--calls-per-client", 1, 1'000'000,
             "Tool calls and other requests answered later that one client may have open",
             SLUICE_AT(calls.per_client)));

  add(number(
      "sessions.max", "--max-sessions", 0, 10'000'000,
      "Sessions, which MCP revisions before 2026-07-28 have; 0 serves each request on its own",
      SLUICE_AT(sessions.max)));
  add(number("sessions.per_client", "--sessions-per-client", 1, 10'000'000,
             "Sessions that one client may have", SLUICE_AT(sessions.per_client)));
  add(duration("sessions.expiry", "--session-expiry",
               "A session that nobody uses for this long ends", SLUICE_AT(sessions.expiry)));
  add(duration(
      "sessions.resume_window", "--resume-window",
      "How long a call in a session continues after its client has disconnected, so that the "
      "client can come back",
      SLUICE_AT(sessions.resume_window)));

  add(number("tasks.max", "--max-tasks", 1, 10'000'000,
             "Tasks of all clients, including ended ones", SLUICE_AT(tasks.max)));
  add(number("tasks.per_client", "--tasks-per-client", 1, 10'000'000,
             "Tasks that one client may have, including ended ones", SLUICE_AT(tasks.per_client)));
  add(duration("tasks.ttl", "--task-ttl",
               "How long a task and its result are kept if the client asks for no time",
               SLUICE_AT(tasks.ttl)));
  add(duration("tasks.max_ttl", "--max-task-ttl",
               "The longest time for which a client may have a task kept",
               SLUICE_AT(tasks.max_ttl)));
  add(duration("tasks.poll_interval", "--task-poll-interval",
               "How often clients are told to poll a task", SLUICE_AT(tasks.poll_interval)));
  add(size("tasks.max_result", "--max-task-result", 1024, "Largest result of one task",
           SLUICE_AT(tasks.max_result)));
  add(size("tasks.max_total_results", "--max-task-results", 1024,
           "Memory for the results of all tasks", SLUICE_AT(tasks.max_total_results)));

  add(number("http.max_connections", "--max-connections", 1, 10'000'000,
             "Connections that may be open at the same time", SLUICE_AT(http.max_connections)));
  add(number(
      "http.max_connections_per_client", "--max-connections-per-client", 0, 10'000'000,
      "Connections that one address may have open, unless it is a loopback address or a trusted "
      "proxy; 0: a quarter of --max-connections",
      SLUICE_AT(http.max_connections_per_client)));
  add(size("http.max_body", "--max-body", 1024,
           "Largest request body, before and after decompression; at most 1GiB",
           SLUICE_AT(http.max_body), std::size_t{1} << 30U));
  add(size("http.max_header", "--max-header", 1024, "Largest request line and headers",
           SLUICE_AT(http.max_header)));
  add(size("http.max_total_buffers", "--max-total-buffers", 1024,
           "Memory for partly received and unsent data of all connections; one client may hold as "
           "much as is free",
           SLUICE_AT(http.max_total_buffers)));
  add(duration("http.request_timeout", "--request-timeout",
               "Time in which a request must arrive, from its first byte to its last",
               SLUICE_AT(http.request_timeout)));
  add(duration("http.keep_alive", "--keep-alive",
               "Connections that are idle for this long are closed", SLUICE_AT(http.keep_alive)));
  add(duration("http.write_stall", "--write-stall",
               "Connections that accept no data for this long are closed",
               SLUICE_AT(http.write_stall)));
  add(duration(
      "http.event_keep_alive", "--event-keep-alive",
      "How often a silent event stream is sent a comment; a WebSocket is sent a ping half as "
      "often",
      SLUICE_AT(http.event_keep_alive)));

  add(api_keys());
  add(text("access.api_key_file", "--api-key-file", "FILE",
           "File with more keys, one NAME=KEY per line; # starts a comment", "a file",
           SLUICE_AT(access.api_key_file)));
  add(names("access.operators", "--operator", "NAME",
            "Name of an API key whose client may call what changes the model for all, such as "
            "load_lora; repeat for more",
            "names of API keys", SLUICE_AT(access.operators)));
  add(names("access.allowed_origins", "--allow-origin", "ORIGIN",
            "Origins whose web pages may call, such as https://example.org; * allows all. Pages of "
            "this machine are always allowed",
            "origins such as https://example.org, or *", SLUICE_AT(access.allowed_origins)));
  add(names(
      "access.allowed_hosts", "--allow-host", "HOST",
      "Host names and addresses that requests may use for this server; * allows all. Loopback "
      "names and the machine's own addresses are always allowed",
      "host names, or *", SLUICE_AT(access.allowed_hosts)));
  add(trusted_proxies());
  add(choice("access.forwarded_field", "--forwarded-field",
             "Header field in which trusted proxies name the client", kForwardedFields,
             SLUICE_AT(access.forwarded_field)));

  add(choice(
      "log.level", "--log-level",
      "The least severe messages that are logged; debug includes each request, trace also what "
      "llama.cpp says",
      kLevels, SLUICE_AT(log.level)));
  add(choice("log.format", "--log-format", "Log format: text for people, JSON for programs",
             kFormats, SLUICE_AT(log.format)));
  add(text("log.file", "--log-file", "FILE",
           "Append the log to this file instead of writing it to standard error", "a file",
           SLUICE_AT(log.file)));
  return all;
}

#undef SLUICE_AT

}  // namespace

std::span<const Setting> serve_settings() {
  static const std::vector<Setting> all = make_settings();
  return all;
}

const Setting* find_setting(std::string_view key) {
  const auto all = serve_settings();
  const auto found = std::ranges::find(all, key, &Setting::key);
  return found == all.end() ? nullptr : &*found;
}

std::string environment_name(const Setting& setting) {
  std::string name = "SLUICE_";
  for (const char c : setting.flag.substr(2)) {
    name.push_back(c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  }
  return name;
}

std::string_view section_of(const Setting& setting) {
  const auto dot = setting.key.find('.');
  return dot == std::string_view::npos ? std::string_view() : setting.key.substr(0, dot);
}

std::optional<ApiKey> parse_api_key(std::string_view text) {
  constexpr std::string_view kNameCharacters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view name = text.substr(0, equals);
  const std::string_view key = text.substr(equals + 1);
  if (name.empty() || name.size() > 64 ||
      name.find_first_not_of(kNameCharacters) != std::string_view::npos) {
    return std::nullopt;
  }
  if (!ApiKeys::is_key(key)) return std::nullopt;
  return ApiKey{.name = std::string(name), .key = std::string(key)};
}

}  // namespace sluice
