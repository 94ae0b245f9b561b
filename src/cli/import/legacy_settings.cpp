#include "cli/import/legacy_settings.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "cli/options/config_value.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/serve_settings.hpp"
#include "cli/options/suggestion.hpp"
#include "cli/targets/lenient_json.hpp"
#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "json/path.hpp"
#include "net/loop/address_kind.hpp"

namespace sluice {
namespace {

enum class ValueType : std::uint8_t { text, flag, integer, number };

/// What a setting becomes.
enum class Meaning : std::uint8_t {
  none,      // nothing, for a reason
  value,     // a setting of ours with the same value
  millis,    // a time of ours
  twice,     // a time of ours that is half as long
  places,    // a part of where the server listens
  logs,      // whether there is a log
  fixed_at,  // nothing; it is noted only if it is not what we have
};

struct LegacySetting {
  std::string_view path;
  ValueType type;
  Meaning meaning = Meaning::none;
  /// The key of our setting, what we have instead of it, or why there is none.
  std::string_view text;
};

constexpr std::string_view kNoUdp =
    "UDP is not served: it loses and reorders what a stream is made of";
constexpr std::string_view kNoRetries = "TCP itself delivers what is sent, in its order";
constexpr std::string_view kGrows =
    "buffers grow with what they hold; http.max_total_buffers limits all of them together";
constexpr std::string_view kByClients =
    "clients say it, with rkllm_init for their session or with each run";
constexpr std::string_view kByRuntime = "the runtime's own value is used";
constexpr std::string_view kOneTimeout = "http.request_timeout holds for all transports";
constexpr std::string_view kNotCut =
    "messages are not cut; http.max_body limits what a client may send";

constexpr std::array<LegacySetting, 72> kLegacySettings = {{
    {"server.name", ValueType::text, Meaning::none, "the server's name is sluice"},
    {"server.version", ValueType::text, Meaning::none, "the server tells its own version"},
    {"server.enable_logging", ValueType::flag, Meaning::logs, "log.level"},
    {"server.log_file", ValueType::text, Meaning::value, "log.file"},
    {"server.pid_file", ValueType::text, Meaning::none,
     "no file with the number of the process is written; a service manager knows it"},
    {"server.force_kill_existing", ValueType::flag, Meaning::none,
     "no other process is ended; a port that is taken is an error"},
    {"transports.enable_stdio", ValueType::flag, Meaning::places, ""},
    {"transports.enable_tcp", ValueType::flag, Meaning::places, ""},
    {"transports.enable_udp", ValueType::flag, Meaning::fixed_at, "false"},
    {"transports.enable_http", ValueType::flag, Meaning::places, ""},
    {"transports.enable_websocket", ValueType::flag, Meaning::places, ""},
    {"transports.stdio.line_buffered", ValueType::flag, Meaning::none,
     "each message is sent as a whole"},
    {"transports.stdio.log_to_stderr", ValueType::flag, Meaning::none,
     "the log goes to standard error, unless log.file is set"},
    {"transports.tcp.host", ValueType::text, Meaning::places, ""},
    {"transports.tcp.port", ValueType::integer, Meaning::places, ""},
    {"transports.tcp.timeout_ms", ValueType::integer, Meaning::none, kOneTimeout},
    {"transports.tcp.max_retries", ValueType::integer, Meaning::none, kNoRetries},
    {"transports.udp.host", ValueType::text, Meaning::none, kNoUdp},
    {"transports.udp.port", ValueType::integer, Meaning::none, kNoUdp},
    {"transports.udp.timeout_ms", ValueType::integer, Meaning::none, kNoUdp},
    {"transports.udp.max_retries", ValueType::integer, Meaning::none, kNoUdp},
    {"transports.http.host", ValueType::text, Meaning::places, ""},
    {"transports.http.port", ValueType::integer, Meaning::places, ""},
    {"transports.http.path", ValueType::text, Meaning::fixed_at, "/mcp"},
    {"transports.http.timeout_ms", ValueType::integer, Meaning::millis, "http.request_timeout"},
    {"transports.http.keep_alive", ValueType::flag, Meaning::none,
     "connections are kept as the client asks; http.keep_alive says for how long"},
    {"transports.http.max_header_size", ValueType::integer, Meaning::value, "http.max_header"},
    {"transports.http.max_body_size", ValueType::integer, Meaning::value, "http.max_body"},
    {"transports.websocket.host", ValueType::text, Meaning::places, ""},
    {"transports.websocket.port", ValueType::integer, Meaning::places, ""},
    {"transports.websocket.path", ValueType::text, Meaning::fixed_at, "/ws"},
    {"transports.websocket.max_frame_length", ValueType::integer, Meaning::none,
     "http.max_body limits messages over a WebSocket too"},
    {"transports.websocket.ping_interval_ms", ValueType::integer, Meaning::twice,
     "http.event_keep_alive"},
    {"transports.common.buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"transports.common.default_timeout_ms", ValueType::integer, Meaning::none, kOneTimeout},
    {"transports.common.max_retries", ValueType::integer, Meaning::none, kNoRetries},
    {"rkllm.default_model_path", ValueType::text, Meaning::value, "engine.model"},
    {"rkllm.max_context_len", ValueType::integer, Meaning::value, "engine.context"},
    {"rkllm.max_new_tokens", ValueType::integer, Meaning::none, kByClients},
    {"rkllm.top_k", ValueType::integer, Meaning::none, kByClients},
    {"rkllm.n_keep", ValueType::integer, Meaning::none, kByRuntime},
    {"rkllm.top_p", ValueType::number, Meaning::none, kByClients},
    {"rkllm.temperature", ValueType::number, Meaning::none, kByClients},
    {"rkllm.repeat_penalty", ValueType::number, Meaning::none, kByClients},
    {"rkllm.frequency_penalty", ValueType::number, Meaning::none, kByClients},
    {"rkllm.presence_penalty", ValueType::number, Meaning::none, kByClients},
    {"rkllm.mirostat", ValueType::integer, Meaning::none, kByRuntime},
    {"rkllm.mirostat_tau", ValueType::number, Meaning::none, kByRuntime},
    {"rkllm.mirostat_eta", ValueType::number, Meaning::none, kByRuntime},
    {"rkllm.skip_special_token", ValueType::flag, Meaning::none,
     "special tokens are left out of answers anyway"},
    {"rkllm.is_async", ValueType::flag, Meaning::none, "each run says whether it streams"},
    {"rkllm.extend.base_domain_id", ValueType::integer, Meaning::none,
     "each of engine.slots has a number of its own"},
    {"rkllm.extend.embed_flash", ValueType::integer, Meaning::none, kByRuntime},
    {"rkllm.extend.enabled_cpus_num", ValueType::integer, Meaning::none, kByRuntime},
    {"rkllm.extend.enabled_cpus_mask", ValueType::integer, Meaning::none, kByRuntime},
    {"rkllm.extend.n_batch", ValueType::integer, Meaning::none,
     "engine.slots says how many answers are generated at a time"},
    {"rkllm.extend.use_cross_attn", ValueType::integer, Meaning::none, kByRuntime},
    {"buffers.request_buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"buffers.response_buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"buffers.max_json_size", ValueType::integer, Meaning::none, kNotCut},
    {"buffers.proxy_response_buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"buffers.proxy_arg_buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"buffers.transport_buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"buffers.http_request_buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"buffers.http_response_buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"buffers.websocket_message_buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"buffers.log_message_buffer_size", ValueType::integer, Meaning::none, kGrows},
    {"limits.max_request_size", ValueType::integer, Meaning::none, kNotCut},
    {"limits.max_response_size", ValueType::integer, Meaning::none, kNotCut},
    {"limits.max_settings_file_size", ValueType::integer, Meaning::none,
     "a configuration file may have 1 MiB"},
    {"limits.max_concurrent_connections", ValueType::integer, Meaning::value,
     "http.max_connections"},
    {"limits.max_pending_requests", ValueType::integer, Meaning::value, "engine.queue"},
}};

std::string_view type_name(ValueType type) {
  switch (type) {
    case ValueType::text:
      return "a string";
    case ValueType::flag:
      return "true or false";
    case ValueType::integer:
      return "an integer";
    case ValueType::number:
      return "a number";
  }
  return "";
}

/// The value as text for our settings; nothing if it is of another type.
std::optional<std::string> text_as(const json::value& value, ValueType type) {
  switch (type) {
    case ValueType::text:
      if (const auto* const text = value.if_string()) return std::string(*text);
      return std::nullopt;
    case ValueType::flag:
      if (const bool* const flag = value.if_bool()) return *flag ? "true" : "false";
      return std::nullopt;
    case ValueType::integer: {
      std::optional<std::int64_t> number;
      if (const auto* const whole = value.if_int64()) number = *whole;
      if (const auto* const real = value.if_double()) number = exact_integer(*real);
      if (!number) return std::nullopt;
      return std::to_string(*number);
    }
    case ValueType::number:
      if (!value.is_number()) return std::nullopt;
      return to_json(value);
  }
  return std::nullopt;
}

/// One of NANO's transports that listen on a port.
struct LegacyTransport {
  std::string_view name;
  HostPort at;
  bool is_on = false;
};

constexpr std::uint16_t kHttpPort = 8082;
constexpr std::uint16_t kWebsocketPort = 8083;

/// Whether who listens at `wide` is reached at the addresses of `other`, too.
bool covers(const HostPort& wide, const HostPort& other) {
  if (wide.port != other.port) return false;
  if (wide.host == other.host || wide.host == "::") return true;
  if (wide.host == "0.0.0.0") return !other.host.contains(':');
  return wide.host == "localhost" && is_this_machine(other.host);
}

bool overlap(const HostPort& one, const HostPort& other) {
  return covers(one, other) || covers(other, one);
}

class LegacyImport {
 public:
  explicit LegacyImport(std::string_view name) : name_(name) {}

  Result<ImportedSettings> read(const json::value& root) {
    const json::object* const all = root.if_object();
    if (all == nullptr) return fail(kExitUsage, name_ + ": give a JSON object");
    if (Result<void> done = read_section(*all, ""); !done) return std::unexpected(done.error());
    if (Result<void> done = listen(); !done) return std::unexpected(done.error());
    if (Result<void> fits = check_together(out_.loaded.config); !fits) {
      return fail(kExitUsage, name_ + ": " + place_of(fits.error().message) + fits.error().message);
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::unexpected<Error> wrong(const std::string& path, std::string_view what) const {
    return fail(kExitUsage, name_ + ": " + path + ": " + std::string(what));
  }
  /// Where the setting is from whose flag begins this message, such as "rkllm.max_context_len: ";
  /// empty: it is none of the file.
  [[nodiscard]] std::string place_of(std::string_view message) const {
    const std::string_view flag = message.substr(0, message.find(':'));
    const auto all = serve_settings();
    const auto found = std::ranges::find(all, flag, &Setting::flag);
    if (found == all.end()) return "";
    const auto origin = out_.loaded.origins.find(found->key);
    return origin == out_.loaded.origins.end() ? "" : origin->second + ": ";
  }
  void note(const std::string& path, std::string_view why) {
    out_.notes.push_back(name_ + ": " + path + " is left out: " + std::string(why));
  }

  /// `prefix`: the path of the section, with a dot at its end.
  Result<void> read_section(const json::object& section, const std::string& prefix) {
    for (const auto& [key, value] : section) {
      if (key == "_comment") continue;
      const std::string path = prefix + std::string(key);
      const auto* const known =
          std::ranges::find(kLegacySettings, std::string_view(path), &LegacySetting::path);
      Result<void> done;
      // A dot in a key is no way into a section.
      if (std::string_view(key).contains('.')) return unknown(key, prefix);
      if (known != kLegacySettings.end()) {
        if (!value.is_null()) done = take(*known, path, value);
      } else if (has_settings(path + ".")) {
        if (value.is_null()) continue;
        const json::object* const inner = value.if_object();
        if (inner == nullptr) return wrong(path, "give an object");
        if (LegacyTransport* const transport = find(path)) transport->is_on = true;
        done = read_section(*inner, path + ".");
      } else {
        return unknown(key, prefix);
      }
      if (!done) return done;
    }
    return {};
  }

  static bool has_settings(std::string_view prefix) {
    return std::ranges::any_of(kLegacySettings, [&](const LegacySetting& known) {
      return known.path.starts_with(prefix);
    });
  }

  [[nodiscard]] std::unexpected<Error> unknown(std::string_view key,
                                               const std::string& prefix) const {
    std::vector<std::string> names;
    for (const LegacySetting& known : kLegacySettings) {
      if (!known.path.starts_with(prefix)) continue;
      const std::string_view rest = known.path.substr(prefix.size());
      const std::string_view own = rest.substr(0, rest.find('.'));
      if (names.empty() || names.back() != own) names.emplace_back(own);
    }
    std::string path = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1);
    const std::string_view shown = key.substr(0, complete_utf8_prefix(key.substr(0, kMostShown)));
    append_json_path(path, shown);
    std::string what = "there is no such setting";
    if (const std::string_view meant = suggestion(shown, names); !meant.empty()) {
      what.append("; did you mean ").append(meant).append("?");
    }
    return wrong(path, what);
  }

  Result<void> take(const LegacySetting& known, const std::string& path, const json::value& value) {
    const std::optional<std::string> text = text_as(value, known.type);
    if (!text) {
      return wrong(path,
                   "give " + std::string(type_name(known.type)) + ", or null to leave it out");
    }
    switch (known.meaning) {
      case Meaning::none:
        note(path, known.text);
        return {};
      case Meaning::value:
        return store(known.text, path, *text);
      case Meaning::millis:
        return store(known.text, path, *text + "ms");
      case Meaning::twice: {
        const std::optional<Duration> time = parse_duration(*text + "ms");
        return store(known.text, path, time ? format_duration(*time / 2) : *text);
      }
      case Meaning::places:
        return take_place(path, *text);
      case Meaning::logs:
        return *text == "true" ? Result<void>() : store(known.text, path, "off");
      case Meaning::fixed_at:
        if (*text == known.text) return {};
        note(path, known.type == ValueType::flag ? std::string(kNoUdp)
                                                 : "the path is " + std::string(known.text));
        return {};
    }
    return {};
  }

  Result<void> store(std::string_view key, const std::string& path, const std::string& text) {
    // An empty text is not set.
    if (text.empty()) return {};
    const Setting& setting = *find_setting(key);
    if (!setting.store(out_.loaded.config, {text})) {
      return wrong(path, describe_text(text) + " is not allowed here; give " + setting.allowed);
    }
    out_.loaded.origins.insert_or_assign(std::string(key), path);
    return {};
  }

  LegacyTransport* find(std::string_view path) {
    constexpr std::string_view kPrefix = "transports.";
    const auto found = std::ranges::find_if(transports_, [&](const LegacyTransport& each) {
      return path.starts_with(kPrefix) && path.substr(kPrefix.size()) == each.name;
    });
    return found == transports_.end() ? nullptr : &*found;
  }

  /// `path` is that of a host, a port or a switch.
  Result<void> take_place(const std::string& path, const std::string& text) {
    constexpr std::string_view kSwitch = "transports.enable_";
    if (path.starts_with(kSwitch)) {
      switches_.emplace_back(path.substr(kSwitch.size()), text == "true");
      return {};
    }
    const std::size_t dot = path.rfind('.');
    HostPort& at = find(path.substr(0, dot))->at;
    if (path.substr(dot + 1) == "host") {
      if (text.empty()) return {};
      at.host = text;
    } else {
      const std::int64_t port = parse_integer(text).value_or(0);
      if (port < 1 || port > std::numeric_limits<std::uint16_t>::max()) {
        return wrong(path, text + " is not allowed here; give a number from 1 to 65535");
      }
      at.port = static_cast<std::uint16_t>(port);
    }
    if (!parse_host_port(to_text(at))) {
      return wrong(path, describe_text(text) + " is not allowed here; give an address or a name");
    }
    return {};
  }

  /// Decides where our server listens.
  Result<void> listen() {
    bool is_over_stdio = false;
    for (const auto& [name, is_on] : switches_) {
      if (LegacyTransport* const transport = find("transports." + name)) {
        transport->is_on = is_on;
      } else {
        is_over_stdio = is_on;
      }
    }
    const auto& [tcp, http, websocket] = transports_;
    std::vector<HostPort> places;
    for (const LegacyTransport* const each : {&http, &websocket}) {
      if (!each->is_on) continue;
      const auto same = std::ranges::find_if(
          places, [each](const HostPort& other) { return overlap(each->at, other); });
      if (same == places.end()) {
        places.push_back(each->at);
      } else if (covers(each->at, *same)) {
        *same = each->at;
      }
    }
    const auto is_of_tcp = [&tcp](const HostPort& place) { return overlap(tcp.at, place); };
    if (tcp.is_on && std::ranges::any_of(places, is_of_tcp)) {
      return wrong("transports.tcp", to_text(tcp.at) + " is where HTTP or WebSockets are served");
    }
    if (is_over_stdio && (tcp.is_on || !places.empty())) {
      note("transports.enable_stdio",
           "such a server ends with its standard input; a program that starts one adds --stdio");
      is_over_stdio = false;
    }
    return place(tcp, places, is_over_stdio);
  }

  Result<void> place(const LegacyTransport& tcp, const std::vector<HostPort>& places,
                     bool is_over_stdio) {
    Result<void> done;
    if (is_over_stdio) done = store("stdio", "transports.enable_stdio", "true");
    if (tcp.is_on) {
      done = store("legacy_ports", "transports.tcp", "true");
      if (done) done = store("legacy_listen", "transports.tcp", to_text(tcp.at));
    }
    if (done && places.empty() && !is_over_stdio && (tcp.is_on || !switches_.empty())) {
      note("transports.enable_http", "HTTP is always served, here for this machine alone");
      // Our default may be the port of TCP, as may be the first of these.
      const std::array ports = {transports_[1].at.port, kHttpPort, kWebsocketPort};
      const auto port = std::ranges::find_if(
          ports, [&tcp](std::uint16_t each) { return !tcp.is_on || each != tcp.at.port; });
      done = store("port", "transports.http.port", std::to_string(*port));
    }
    if (done && places.size() == 1) {
      done = store("host", "transports", places.front().host);
      if (done) done = store("port", "transports", std::to_string(places.front().port));
    }
    if (!done || places.size() <= 1) return done;
    std::vector<std::string> texts;
    for (const HostPort& each : places) texts.push_back(to_text(each));
    find_setting("listen")->store(out_.loaded.config, texts);
    out_.loaded.origins.insert_or_assign("listen", "transports");
    return {};
  }

  static constexpr std::size_t kMostShown = 64;  // of an unknown key

  std::string name_;
  ImportedSettings out_;
  /// With NANO's ports, and our address: NANO's is every address.
  std::array<LegacyTransport, 3> transports_ = {
      {{.name = "tcp", .at = {.host = "127.0.0.1", .port = 8080}},
       {.name = "http", .at = {.host = "127.0.0.1", .port = kHttpPort}},
       {.name = "websocket", .at = {.host = "127.0.0.1", .port = kWebsocketPort}}}};
  std::vector<std::pair<std::string, bool>> switches_;
};

}  // namespace

Result<ImportedSettings> import_legacy_settings(std::string_view text, std::string_view name) {
  if (text.size() > kMaxLegacySettings) {
    return fail(kExitUsage, std::string(name) + ": is larger than " +
                                std::to_string(kMaxLegacySettings) + " bytes");
  }
  const Result<json::value> root = parse_config_json(text, JsonDialect::comments_and_commas, name);
  if (!root) return std::unexpected(root.error());
  return LegacyImport(name).read(*root);
}

}  // namespace sluice
