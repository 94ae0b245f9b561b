#include "cli/targets/server_entry.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

#include "cli/targets/server_forms.hpp"
#include "core/text/text.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using Keys = std::span<const std::string_view>;

constexpr std::array<std::string_view, 8> kCommonKeys = {
    {"type", "command", "args", "url", "cwd", "enabled", "disabled", "timeout"}};

// What each application has besides. Many keys are about its own use of a server, such as which
// tools need approval: they say nothing of how to reach it.
constexpr std::array<std::string_view, 2> kSluiceKeys = {{"env", "headers"}};
constexpr std::array<std::string_view, 6> kClaudeKeys = {
    {"env", "headers", "headersHelper", "oauth", "alwaysLoad", "description"}};
constexpr std::array<std::string_view, 5> kCursorKeys = {
    {"env", "envFile", "headers", "auth", "description"}};
constexpr std::array<std::string_view, 9> kVscodeKeys = {{"env", "envFile", "headers", "oauth",
                                                          "dev", "sandboxEnabled", "sandbox",
                                                          "gallery", "version"}};
constexpr std::array<std::string_view, 13> kGeminiKeys = {
    {"env", "headers", "httpUrl", "tcp", "trust", "description", "includeTools", "excludeTools",
     "oauth", "authProviderType", "targetAudience", "targetServiceAccount", "extension"}};
constexpr std::array<std::string_view, 19> kCodexKeys = {
    {"env", "env_vars", "bearer_token", "bearer_token_env_var", "http_headers", "env_http_headers",
     "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "required", "enabled_tools",
     "disabled_tools", "scopes", "oauth", "oauth_resource", "tools", "default_tools_approval_mode",
     "supports_parallel_tool_calls", "experimental_environment"}};
constexpr std::array<std::string_view, 3> kOpencodeKeys = {{"environment", "headers", "oauth"}};

Keys keys_of(Application application) {
  switch (application) {
    case Application::claude_code:
    case Application::claude_desktop:
      return kClaudeKeys;
    case Application::cursor:
      return kCursorKeys;
    case Application::vscode:
      return kVscodeKeys;
    case Application::gemini:
      return kGeminiKeys;
    case Application::codex:
      return kCodexKeys;
    case Application::opencode:
      return kOpencodeKeys;
    case Application::sluice:
      break;
  }
  return kSluiceKeys;
}

/// A string, or a number or a boolean as text, as they stand in variables; nothing otherwise.
std::optional<std::string> text_of(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_number() || value.is_bool()) return to_json(value);
  return std::nullopt;
}

}  // namespace

EntryReader::EntryReader(std::string_view name, const json::object& entry, const ServersFile& file)
    : name_(name), entry_(&entry), file_(&file) {}

void EntryReader::warn(std::string_view key, std::string message) {
  warnings_.push_back({.file = file_->path,
                       .server = name_,
                       .key = std::string(key),
                       .message = std::move(message)});
}

void EntryReader::warn_of_unknown_keys() {
  const Keys own = keys_of(file_->application);
  for (const auto& [key, value] : *entry_) {
    const std::string_view known = key;
    const bool is_common = std::ranges::count(kCommonKeys, known) > 0;
    if (is_common || std::ranges::count(own, known) > 0) continue;
    if (warnings_.size() >= kMaxListed) return;
    warn(known.substr(0, kMaxServerName), "is not known; it is ignored");
  }
}

/// The string at `key`; empty if there is none.
std::string EntryReader::text(std::string_view key) {
  const json::value* const value = entry_->if_contains(key);
  if (value == nullptr || value->is_null()) return {};
  if (!value->is_string() || value->get_string().size() > kMaxConfigText) {
    warn(key, "must be a string of at most " + std::to_string(kMaxConfigText) + " bytes");
    broken_ = true;
    return {};
  }
  return std::string(value->get_string());
}

std::vector<std::string> EntryReader::texts(std::string_view key) {
  std::vector<std::string> out;
  const json::value* const value = entry_->if_contains(key);
  if (value == nullptr || value->is_null()) return out;
  const auto refuse = [&] {
    warn(key, "must be an array of at most " + std::to_string(kMaxListed) + " strings");
    broken_ = true;
    return std::vector<std::string>();
  };
  if (!value->is_array() || value->get_array().size() > kMaxListed) return refuse();
  for (const json::value& element : value->get_array()) {
    auto one = text_of(element);
    if (!one || one->size() > kMaxConfigText) return refuse();
    out.push_back(*std::move(one));
  }
  return out;
}

NamedValues EntryReader::named(std::string_view key) {
  NamedValues out;
  const json::value* const value = entry_->if_contains(key);
  if (value == nullptr || value->is_null()) return out;
  if (!value->is_object() || value->get_object().size() > kMaxListed) {
    warn(key, "must be an object of at most " + std::to_string(kMaxListed) + " strings");
    broken_ = true;
    return out;
  }
  for (const auto& [name, element] : value->get_object()) {
    auto one = text_of(element);
    if (!one || one->size() > kMaxConfigText || name.size() > kMaxServerName || name.empty()) {
      warn(std::string(key) + "." + std::string(name.substr(0, kMaxServerName)),
           "must be a string");
      broken_ = true;
      continue;
    }
    out.emplace_back(name, *std::move(one));
  }
  return out;
}

std::optional<bool> EntryReader::flag(std::string_view key) {
  const json::value* const value = entry_->if_contains(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  warn(key, "must be true or false; it is ignored");
  return std::nullopt;
}

/// The time at `key` of `from`, a number of units of `unit` seconds.
std::optional<Duration> EntryReader::time(const json::object& from, std::string_view key,
                                          double unit) {
  const json::value* const value = from.if_contains(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  constexpr double kMaxSeconds = 7.0 * 24 * 3600;
  const double seconds = value->is_number() ? value->to_number<double>() * unit : -1;
  if (std::isfinite(seconds) && seconds > 0 && seconds <= kMaxSeconds) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  warn(key, "must be a positive number, of at most a week; it is ignored");
  return std::nullopt;
}

std::optional<ServerConfig> EntryReader::read() {
  const bool has_place = std::ranges::any_of(
      std::array<std::string_view, 5>{{"type", "command", "url", "httpUrl", "tcp"}},
      [&](std::string_view key) { return entry_->contains(key); });
  const bool enabled = is_enabled();
  if (!has_place && (entry_->contains("enabled") || entry_->contains("disabled"))) {
    switched_ = enabled;
    return std::nullopt;
  }
  warn_of_unknown_keys();
  auto found = place();
  if (!found || broken_) {
    warn({}, "is ignored");
    return std::nullopt;
  }
  ServerConfig server{
      .name = name_, .source = *file_, .enabled = enabled, .place = *std::move(found)};
  server.refusal = refusal();
  read_timeouts(server);
  return server;
}

bool EntryReader::is_enabled() {
  return flag("enabled").value_or(true) && !flag("disabled").value_or(false);
}

std::optional<ConfiguredPlace> EntryReader::place() {
  const bool is_gemini = file_->application == Application::gemini;
  const bool has_command = entry_->contains("command");
  const bool has_url = entry_->contains("url") ||
                       (is_gemini && (entry_->contains("httpUrl") || entry_->contains("tcp")));
  std::string type = to_lower(text("type"));
  std::erase_if(type, [](char c) { return c == '-' || c == '_'; });
  if (!type.empty()) return place_of_type(type, has_command, has_url);
  if (has_command == has_url) {
    warn({}, has_url ? "has a command and a URL; give one, or say which with \"type\""
                     : "has neither a command nor a URL");
    return std::nullopt;
  }
  if (has_command) return command();
  return url(TransportHint::any);
}

std::optional<ConfiguredPlace> EntryReader::place_of_type(std::string_view type, bool has_command,
                                                          bool has_url) {
  struct Type {
    std::string_view name;
    bool is_command;
    TransportHint hint;
  };
  constexpr std::array<Type, 9> kTypes = {{{"stdio", true, TransportHint::any},
                                           {"local", true, TransportHint::any},
                                           {"remote", false, TransportHint::any},
                                           {"http", false, TransportHint::http},
                                           {"streamablehttp", false, TransportHint::http},
                                           {"httpstream", false, TransportHint::http},
                                           {"sse", false, TransportHint::sse},
                                           {"ws", false, TransportHint::ws},
                                           {"websocket", false, TransportHint::ws}}};
  const auto* const found = std::ranges::find(kTypes, type, &Type::name);
  if (found == kTypes.end()) {
    warn("type", "is not known; stdio, http, sse and ws are");
    return std::nullopt;
  }
  if (found->is_command) {
    if (has_command) return command();
    warn("command", "is missing");
    return std::nullopt;
  }
  if (has_url) return url(found->hint);
  warn("url", "is missing");
  return std::nullopt;
}

ConfiguredCommand EntryReader::command() {
  ConfiguredCommand out;
  if (file_->application == Application::opencode) {
    out.arguments = texts("command");
    if (!out.arguments.empty()) {
      out.program = std::move(out.arguments.front());
      out.arguments.erase(out.arguments.begin());
    }
    out.environment = named("environment");
  } else {
    out.program = text("command");
    out.arguments = texts("args");
    out.environment = named("env");
    out.environment_file = text("envFile");
  }
  out.directory = text("cwd");
  if (out.program.empty() && !broken_) {
    warn("command", "is empty");
    broken_ = true;
  }
  return out;
}

std::optional<ConfiguredUrl> EntryReader::url(TransportHint hint) {
  ConfiguredUrl out;
  const bool is_gemini = file_->application == Application::gemini;
  const bool is_codex = file_->application == Application::codex;
  if (is_gemini && entry_->contains("httpUrl")) {
    out.url = text("httpUrl");
    hint = TransportHint::http;
  } else if (is_gemini && entry_->contains("tcp")) {
    out.url = text("tcp");
    hint = TransportHint::ws;
  } else {
    out.url = text("url");
    if (is_gemini && hint == TransportHint::any) hint = TransportHint::sse;
    if (is_codex) hint = TransportHint::http;
  }
  if (out.url.empty() && !broken_) {
    warn("url", "is empty");
    return std::nullopt;
  }
  const std::string scheme = to_lower(out.url.substr(0, out.url.find(':')));
  out.transport = scheme == "ws" || scheme == "wss" ? TransportHint::ws : hint;
  out.headers = named(is_codex ? "http_headers" : "headers");
  if (!is_codex) return out;
  for (const auto& [header, variable] : named("env_http_headers")) {
    out.variable_headers.push_back(
        {.header = header, .variable = variable, .prefix = {}, .is_required = false});
  }
  if (const std::string token = text("bearer_token_env_var"); !token.empty()) {
    out.variable_headers.push_back(
        {.header = "Authorization", .variable = token, .prefix = "Bearer ", .is_required = true});
  }
  return out;
}

void EntryReader::read_timeouts(ServerConfig& server) {
  constexpr double kMilliseconds = 1e-3;
  if (file_->application == Application::codex) {
    server.startup_timeout = time(*entry_, "startup_timeout_sec", 1);
    if (!server.startup_timeout) {
      server.startup_timeout = time(*entry_, "startup_timeout_ms", kMilliseconds);
    }
    server.request_timeout = time(*entry_, "tool_timeout_sec", 1);
  } else if (const json::object* const both = object_at(*entry_, "timeout")) {
    server.startup_timeout = time(*both, "startup", kMilliseconds);
    server.request_timeout = time(*both, "request", kMilliseconds);
  } else {
    server.request_timeout = time(*entry_, "timeout", kMilliseconds);
  }
}

/// Why the server may not be used although its place is understood: without what it asks for, it
/// would have more rights than its author gave it, or would be refused as another user.
std::string EntryReader::refusal() {
  if (flag("sandboxEnabled").value_or(false)) {
    return "it asks for a sandbox (sandboxEnabled), which Sluice has not";
  }
  if (entry_->contains("headersHelper")) {
    return "its headers come from a program (headersHelper), which Sluice does not run; give "
           "headers instead";
  }
  if (entry_->contains("bearer_token")) {
    return "it has bearer_token, which Codex does not accept; use bearer_token_env_var";
  }
  return {};
}

}  // namespace sluice
