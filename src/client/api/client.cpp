#include "sluice/client.hpp"

#include <chrono>
#include <utility>

#include "client/api/callback_thread.hpp"
#include "client/api/client_connection.hpp"
#include "client/api/era_cache.hpp"
#include "client/api/open_link.hpp"
#include "client/api/skill_file.hpp"
#include "json/members.hpp"
#include "protocol/tool_result.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// The pages of one list that are read.
constexpr std::size_t kMaxPages = 1000;

/// Reads all pages of a list; `key` names its entries. Asks for no further page after `patience`;
/// 0: no limit. Ends with the page that has an entry `until`, if that is not empty.
std::vector<Listed> list_all(Client& client, Duration patience, std::string_view method,
                             std::string_view key, std::string_view until = {}) {
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  std::vector<Listed> all;
  std::size_t bytes = 0;
  json::object params;
  bool is_found = false;
  for (std::size_t page = 0; page < kMaxPages; ++page) {
    const json::object result = client.request(method, params).result();
    const json::value* const entries = result.if_contains(key);
    if (entries == nullptr || !entries->is_array()) {
      throw Error{kInternalError, "The server's answer to " + std::string(method) +
                                      " has no array \"" + std::string(key) + "\""};
    }
    for (const json::value& each : entries->get_array()) {
      if (!each.is_object()) continue;
      bytes += size_of(each).memory();
      const json::object& entry = each.get_object();
      all.push_back({.name = std::string(text_at(entry, "name")),
                     .title = std::string(text_at(entry, "title")),
                     .description = std::string(text_at(entry, "description")),
                     .definition = entry});
      is_found = is_found || (!until.empty() && all.back().name == until);
    }
    if (is_found) return all;
    if (all.size() > Client::kMaxListed || bytes > Client::kMaxListedBytes) break;
    const std::string_view cursor = text_at(result, "nextCursor");
    if (cursor.empty()) return all;
    if (cursor == text_at(params, "cursor")) {
      throw Error{kInternalError, "The server's answer to " + std::string(method) +
                                      " has the cursor that it was asked with as its nextCursor"};
    }
    if (patience > Duration() && clock.now() - begin >= patience) {
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
      throw Error{kTimedOut, "The server's list has more than " + std::to_string(page + 1) +
                                 " pages, and they take longer than " + std::to_string(seconds) +
                                 " s; the timeout is for all pages"};
    }
    params["cursor"] = cursor;
  }
  throw Error{kLimitReached, "The server's list has more than " +
                                 std::to_string(Client::kMaxListed) + " entries, " +
                                 std::to_string(Client::kMaxListedBytes >> 20U) + " MiB or " +
                                 std::to_string(kMaxPages) + " pages"};
}

ArgumentCompletion complete(Client& client, json::object reference, const TypedArgument& argument) {
  json::object params{{"ref", std::move(reference)},
                      {"argument", {{"name", argument.name}, {"value", argument.value}}}};
  if (!argument.context.empty()) {
    json::object known;
    for (const auto& [name, value] : argument.context) known[name] = value;
    params["context"] = {{"arguments", std::move(known)}};
  }
  const json::object result = client.request("completion/complete", std::move(params)).result();
  ArgumentCompletion out;
  const json::object* const completion = object_at(result, "completion");
  if (completion == nullptr) return out;
  if (const json::value* const values = completion->if_contains("values");
      values != nullptr && values->is_array()) {
    for (const json::value& each : values->get_array()) {
      if (each.is_string()) out.values.emplace_back(each.get_string());
    }
  }
  if (const json::value* const total = completion->if_contains("total");
      total != nullptr && total->is_int64() && total->get_int64() >= 0) {
    out.total = static_cast<std::uint64_t>(total->get_int64());
  }
  const json::value* const more = completion->if_contains("hasMore");
  out.has_more = more != nullptr && more->is_bool() && more->get_bool();
  return out;
}

}  // namespace

bool ToolReply::is_error() const {
  return is_tool_error(result);
}

std::string ToolReply::text() const {
  return text_of_tool_result(result);
}

const json::value& ToolReply::structured() const {
  return structured_of_tool_result(result);
}

const json::value& ToolReply::checked() const {
  if (is_error()) throw ToolError(text());
  return structured();
}

void ToolReply::throw_unfit(const DecodeError& error) {
  throw Error{kInvalidParams, error.describe(), {}};
}

std::string_view Client::revision() const {
  return connection_->server().revision->name;
}

const json::object& Client::about() const {
  return connection_->server().about;
}

std::string_view Client::instructions() const {
  return text_at(about(), "instructions");
}

detail::ClientCall Client::begin(std::string_view method, json::object params,
                                 CallOptions options) {
  return {connection_, connection_->begin(method, std::move(params), std::move(options))};
}

detail::ClientCall Client::begin_call(std::string_view tool, json::object arguments,
                                      CallOptions options) {
  return begin("tools/call", {{"name", tool}, {"arguments", std::move(arguments)}},
               std::move(options));
}

detail::ClientCall Client::begin_resumed(std::string_view resumption, CallOptions options) {
  return {connection_, connection_->take_up(resumption, options)};
}

void Client::notify(std::string_view method, json::object params) {
  connection_->notify(method, std::move(params));
}

std::vector<TaskDescription> Client::tasks() {
  std::vector<TaskDescription> out;
  for (Listed& task : list_all(*this, connection_->idle_timeout(), "tasks/list", "tasks")) {
    out.push_back(detail::describe_task(std::move(task.definition)));
  }
  return out;
}

Watch Client::watch(WatchOptions options) {
  return Watch({connection_, connection_->watch(std::move(options))});
}

std::optional<Notification> Watch::next() {
  if (auto event = call_.next()) return to_notification(*std::move(event));
  if (!std::exchange(is_over_, true)) {
    try {
      call_.result();
    } catch (const Error& error) {
      if (error.code != kCancelled) throw;
    }
  }
  return std::nullopt;
}

Notification Watch::to_notification(CallEvent event) {
  Notification out{.method = std::string(text_at(event.params, "method")),
                   .dropped = event.dropped};
  if (const json::object* const params = object_at(event.params, "params")) out.params = *params;
  return out;
}

std::vector<Listed> Client::tools(std::string_view until) {
  return list_all(*this, connection_->idle_timeout(), "tools/list", "tools", until);
}

std::vector<Listed> Client::resources() {
  return list_all(*this, connection_->idle_timeout(), "resources/list", "resources");
}

std::vector<Listed> Client::resource_templates() {
  return list_all(*this, connection_->idle_timeout(), "resources/templates/list",
                  "resourceTemplates");
}

std::vector<Listed> Client::prompts() {
  return list_all(*this, connection_->idle_timeout(), "prompts/list", "prompts");
}

std::vector<Listed> Client::skills() {
  std::vector<Listed> all = list_all(*this, connection_->idle_timeout(), "skills/list", "skills");
  for (Listed& each : all) {
    const json::object* const frontmatter = object_at(each.definition, "frontmatter");
    if (frontmatter == nullptr) continue;
    each.name = text_at(*frontmatter, "name");
    each.description = text_at(*frontmatter, "description");
  }
  return all;
}

json::array Client::read_resource(std::string_view uri) {
  json::object result = request("resources/read", {{"uri", uri}}).result();
  json::value* const contents = result.if_contains("contents");
  if (contents == nullptr || !contents->is_array()) {
    throw Error{kInternalError, "The server's answer to resources/read has no array \"contents\""};
  }
  return std::move(contents->get_array());
}

std::string Client::read_skill_file(const Listed& skill, std::string_view uri) {
  Result<std::string> file = verified_skill_file(skill.definition, uri, read_resource(uri));
  if (!file) throw Error(std::move(file.error()));
  return *std::move(file);
}

json::object Client::get_prompt(std::string_view name, const Variables& arguments) {
  json::object given;
  for (const auto& [key, value] : arguments) given[key] = value;
  json::object params{{"name", name}};
  if (!given.empty()) params["arguments"] = std::move(given);
  return request("prompts/get", std::move(params)).result();
}

ArgumentCompletion Client::complete_prompt(std::string_view name, const TypedArgument& argument) {
  return complete(*this, {{"type", "ref/prompt"}, {"name", name}}, argument);
}

ArgumentCompletion Client::complete_resource(std::string_view uri_template,
                                             const TypedArgument& argument) {
  return complete(*this, {{"type", "ref/resource"}, {"uri", uri_template}}, argument);
}

void Client::ping() {
  const bool is_legacy = connection_->server().revision->era == Era::legacy;
  // The modern era has no `ping`.
  request(is_legacy ? "ping" : "server/discover").result();
}

std::stop_token question_stop() {
  return CallbackThread::current().get_token();
}

Client detail::connect_place(const LinkPlace& place, ClientOptions options) {
  EraCache& eras = EraCache::shared();
  const std::string key = place.url + '\n' + std::to_string(static_cast<int>(place.http_transport));
  const bool is_free = options.revision.empty();
  const bool is_legacy = is_free && eras.is_legacy(key, SteadyClock().now());
  const auto open = [&place, &options](bool expects_legacy) {
    return detail::ClientConnection::open(
        [&place](EventLoop& loop) { return open_link(loop, place); }, options, expects_legacy);
  };
  auto connection = open(is_legacy);
  if (!connection && is_legacy) {
    // It may have become another server.
    eras.note(key, false, SteadyClock().now());
    connection = open(false);
  }
  if (!connection) throw Error(std::move(connection.error()));
  if (is_free) {
    const Era era = (*connection)->server().revision->era;
    eras.note(key, era == Era::legacy, SteadyClock().now());
  }
  return Client(*std::move(connection));
}

Client connect(std::string_view url, ClientOptions options) {
  const LinkPlace place{.url = std::string(url),
                        .http_transport = options.http_transport,
                        .headers = options.headers,
                        .authorization = options.authorization,
                        .ca_file = options.ca_file,
                        .uses_environment_proxies = options.uses_environment_proxies,
                        .connect_timeout = options.connect_timeout,
                        .on_traffic = options.on_traffic};
  return detail::connect_place(place, std::move(options));
}

Client connect(const ServerCommand& command, ClientOptions options) {
  const auto on_traffic = options.on_traffic;
  auto connection = detail::ClientConnection::open(
      [&](EventLoop& loop) { return open_link(loop, command, on_traffic); }, std::move(options));
  if (!connection) throw Error(std::move(connection.error()));
  return Client(*std::move(connection));
}

}  // namespace sluice
