#include "client/link/traced_link.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "core/log/log.hpp"
#include "core/text/secrets.hpp"
#include "core/text/text.hpp"
#include "json/mask.hpp"
#include "net/http/http_types.hpp"

namespace sluice {
namespace {

void tell_traffic(const OnTraffic& on_traffic, const Traffic& traffic) {
  try {
    on_traffic(traffic);
  } catch (const std::exception& exception) {
    log_warning("on_traffic of a client has failed", {{"why", what_of(exception)}});
  } catch (...) {
    log_warning("on_traffic of a client has failed", {});
  }
}

/// Whether a field of a request is one that this program or a proxy sends. Any other is of the
/// user, whose secrets may have any name.
bool is_well_known(std::string_view name) {
  static constexpr std::array<std::string_view, 20> kNames = {{"accept",
                                                               "accept-encoding",
                                                               "accept-language",
                                                               "baggage",
                                                               "cache-control",
                                                               "connection",
                                                               "content-length",
                                                               "content-type",
                                                               "host",
                                                               "last-event-id",
                                                               "mcp-method",
                                                               "mcp-name",
                                                               "mcp-protocol-version",
                                                               "origin",
                                                               "traceparent",
                                                               "tracestate",
                                                               "transfer-encoding",
                                                               "upgrade",
                                                               "user-agent",
                                                               "x-request-id"}};
  return std::ranges::find(kNames, to_lower(name)) != kNames.end();
}

/// The value of a header field, without what is secret in it.
std::string shown_header(std::string_view name, std::string_view value, bool is_sent) {
  constexpr std::size_t kShownOfSession = 8;
  if (equals_ignoring_case(name, "Mcp-Session-Id")) {
    // Whoever knows all of it is taken for this client.
    return std::string(value.substr(0, std::min(kShownOfSession, value.size() / 4))) + "...";
  }
  // The server chooses the names of Mcp-Param- fields, so they do not say what is secret. The
  // message has the same values by the names of the arguments.
  constexpr std::string_view kParameter = "mcp-param-";
  const bool is_parameter = equals_ignoring_case(name.substr(0, kParameter.size()), kParameter);
  if (is_parameter || sounds_secret(name) || looks_like_secret(value) ||
      (is_sent && !is_well_known(name))) {
    return std::string(kMask);
  }
  const bool is_url =
      equals_ignoring_case(name, "Location") || (value.contains("://") && !value.contains(' '));
  return is_url ? masked_url(value) : std::string(value);
}

std::string masked(const std::shared_ptr<const KnownSecrets>& secrets, std::string text) {
  return secrets == nullptr ? text : secrets->mask()->masked(std::move(text));
}

class TracedLink final : public ServerLink, private ServerLink::Owner {
 public:
  TracedLink(std::unique_ptr<ServerLink> link, std::string_view transport, OnTraffic on_traffic,
             std::shared_ptr<const KnownSecrets> secrets)
      : link_(std::move(link)),
        transport_(transport),
        on_traffic_(std::move(on_traffic)),
        secrets_(std::move(secrets)) {}

  void open(ServerLink::Owner& owner) override {
    owner_ = &owner;
    link_->open(*this);
  }
  Result<void> send(OutgoingMessage message) override {
    show(true, message.text);
    return link_->send(std::move(message));
  }
  bool drop(const RequestId& id) override { return link_->drop(id); }
  void leave_answer(const RequestId& id) override { link_->leave_answer(id); }
  [[nodiscard]] std::string server() const override { return link_->server(); }
  [[nodiscard]] std::unique_ptr<ServerLink> take_up(const StreamPosition& from) override {
    auto link = link_->take_up(from);
    if (link == nullptr) return nullptr;
    return std::make_unique<TracedLink>(std::move(link), transport_, on_traffic_, secrets_);
  }
  void pause(const RequestId& id, bool is_paused) override { link_->pause(id, is_paused); }
  bool reopen() override { return link_->reopen(); }
  [[nodiscard]] bool carries_headers() const override { return link_->carries_headers(); }
  [[nodiscard]] bool tells_connected() const override { return link_->tells_connected(); }
  [[nodiscard]] bool shares_connection() const override { return link_->shares_connection(); }
  void close(std::function<void()> done) override { link_->close(std::move(done)); }

 private:
  void show(bool is_sent, std::string_view text) const {
    const std::string shown =
        secrets_ == nullptr ? std::string(text) : masked_json(text, *secrets_->mask());
    tell_traffic(on_traffic_, {.is_sent = is_sent, .transport = transport_, .message = shown});
  }

  // ServerLink::Owner
  void on_message(std::string_view text) override {
    show(false, text);
    owner_->on_message(text);
  }
  bool on_reply(const RequestId& id, std::string_view text) override {
    show(false, text);
    return owner_->on_reply(id, text);
  }
  void on_unreadable(std::string_view text, const Error& why) override {
    show(false, text);
    owner_->on_unreadable(text, why);
  }
  void on_unanswered(const RequestId& id, const Error& why) override {
    owner_->on_unanswered(id, why);
  }
  void on_broken_off(const RequestId& id, const Error& why) override {
    owner_->on_broken_off(id, why);
  }
  void on_session_over(const RequestId& id) override { owner_->on_session_over(id); }
  void on_old_session_over(const RequestId& id) override { owner_->on_old_session_over(id); }
  void on_connected(const RequestId& id) override { owner_->on_connected(id); }
  void on_session_doubted() override { owner_->on_session_doubted(); }
  void on_listening() override { owner_->on_listening(); }
  void on_position(const RequestId& id, std::string_view session,
                   std::string_view last_event) override {
    owner_->on_position(id, session, last_event);
  }
  [[nodiscard]] bool awaits(const RequestId& id) const override { return owner_->awaits(id); }
  void on_lost(const Error& why) override { owner_->on_lost(why); }

  std::unique_ptr<ServerLink> link_;
  std::string_view transport_;
  OnTraffic on_traffic_;
  std::shared_ptr<const KnownSecrets> secrets_;
  ServerLink::Owner* owner_ = nullptr;
};

}  // namespace

std::unique_ptr<ServerLink> traced(std::unique_ptr<ServerLink> link, std::string_view transport,
                                   const OnTraffic& on_traffic,
                                   std::shared_ptr<const KnownSecrets> secrets) {
  if (!on_traffic) return link;
  return std::make_unique<TracedLink>(std::move(link), transport, on_traffic, std::move(secrets));
}

HttpTap http_tap(const OnTraffic& on_traffic, std::shared_ptr<const KnownSecrets> secrets) {
  if (!on_traffic) return {};
  return [on_traffic, secrets = std::move(secrets)](const HttpHead& head) {
    const bool is_request = !head.method.empty();
    Traffic traffic{.is_sent = is_request, .transport = "http"};
    traffic.start = is_request ? std::string(head.method) + " " + masked_url(head.url->to_string())
                               : std::to_string(head.status);
    for (const HeaderField& field : head.headers) {
      traffic.headers.emplace_back(
          field.name, masked(secrets, shown_header(field.name, field.value, is_request)));
    }
    tell_traffic(on_traffic, traffic);
  };
}

}  // namespace sluice
