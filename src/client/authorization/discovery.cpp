#include "client/authorization/discovery.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "client/authorization/oauth_reply.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

/// Asks for a document at one place after the other.
class Search final : public std::enable_shared_from_this<Search> {
 public:
  /// Takes a reply with status 200. Returns false if the next place is to be tried.
  using Found = std::function<bool(const std::string& body, const Url& place)>;
  /// There is none. The error is that of the last place that failed otherwise than by having none.
  using Missing = std::function<void(const Error*)>;

  Search(std::weak_ptr<OauthHttp> http, std::vector<Url> places, Found found, Missing missing)
      : http_(std::move(http)),
        places_(std::move(places)),
        found_(std::move(found)),
        missing_(std::move(missing)) {}

  void next() {
    const auto http = http_.lock();
    if (http == nullptr) return;
    if (at_ == places_.size()) return missing_(error_.code == 0 ? nullptr : &error_);
    http->send({.url = places_[at_].to_string(), .headers = {{"Accept", "application/json"}}},
               [self = shared_from_this()](const Result<OauthReply>& reply) {
                 const Url& place = self->places_[self->at_++];
                 if (!reply) {
                   self->error_ = reply.error();
                 } else if (reply->status / 100 == 5) {
                   self->error_ = Error(kBadGateway, place.to_string() + " answers with HTTP " +
                                                         std::to_string(reply->status));
                 } else if (reply->status == 200 && self->found_(reply->body, place)) {
                   return;
                 }
                 self->next();
               });
  }

 private:
  std::weak_ptr<OauthHttp> http_;
  const std::vector<Url> places_;
  const Found found_;
  const Missing missing_;
  std::size_t at_ = 0;
  Error error_;
};

}  // namespace

void find_resource_metadata(const std::shared_ptr<OauthHttp>& http, const Url& server,
                            std::string_view named,
                            std::function<void(Result<ResourceMetadata>)> done) {
  std::vector<Url> places;
  if (named.empty()) {
    places = resource_metadata_urls(server);
  } else {
    // A place that is no URL is asked all the same, so that the error says what is wrong with it.
    Url unreadable;
    unreadable.host = named;
    places.push_back(parse_url(named).value_or(std::move(unreadable)));
  }
  const bool is_named = !named.empty();
  const auto found = [server, is_named, done](const std::string& body, const Url& place) {
    Result<ResourceMetadata> document = parse_resource_metadata(body);
    if (!document) {
      // Some servers answer every path with a page.
      if (!is_named) return false;
      done(fail(kBadGateway, "The metadata of the server at " + place.to_string() +
                                 " cannot be used: " + document.error().message +
                                 " (RFC 9728, section 2)"));
      return true;
    }
    if (!is_resource_of(document->resource, server)) {
      done(fail(kNotAuthorized, "The metadata at " + place.to_string() + " is of the resource " +
                                    document->resource + ", not of " + canonical_resource(server) +
                                    ", so a token could go to another server (RFC 9728, section "
                                    "3.3)"));
      return true;
    }
    if (document->authorization_servers.empty()) {
      document->authorization_servers.push_back(to_origin(server));
    }
    done(*std::move(document));
    return true;
  };
  const auto missing = [server, is_named, done](const Error* why) {
    if (why != nullptr) return done(std::unexpected(*why));
    if (is_named) {
      return done(fail(kBadGateway,
                       "The server names a place for its metadata where there is none "
                       "(RFC 9728, section 5.1)"));
    }
    done(ResourceMetadata{.resource = canonical_resource(server),
                          .authorization_servers = {to_origin(server)},
                          .scopes_supported = {},
                          .is_assumed = true});
  };
  std::make_shared<Search>(http, std::move(places), found, missing)->next();
}

void find_server_metadata(const std::shared_ptr<OauthHttp>& http, const std::string& issuer,
                          const std::string& accepted,
                          std::function<void(Result<ServerMetadata>)> done) {
  Result<std::vector<Url>> places = server_metadata_urls(issuer);
  if (!places) return done(std::unexpected(places.error()));
  const auto found = [issuer, accepted, done](const std::string& body, const Url& place) {
    Result<ServerMetadata> document = parse_server_metadata(body);
    if (!document) return false;
    const bool is_accepted = !accepted.empty() && document->issuer == accepted;
    if (!is_same_issuer(document->issuer, issuer) && !is_accepted) {
      done(fail(kNotAuthorized,
                "The metadata at " + place.to_string() + " names the issuer " + document->issuer +
                    ", but it was looked up for " + issuer +
                    " (RFC 8414, section 3.3). If both are right, set accept_issuer to " +
                    document->issuer));
      return true;
    }
    done(*std::move(document));
    return true;
  };
  const auto missing = [issuer, done](const Error* why) {
    if (why != nullptr) return done(std::unexpected(*why));
    done(fail(kNotFound, "The authorization server " + issuer +
                             " has no metadata (RFC 8414, section 3; OpenID Connect Discovery)"));
  };
  std::make_shared<Search>(http, *std::move(places), found, missing)->next();
}

}  // namespace sluice
