// How a server wants to be authorized, and whether its documents lead clients to a login.

#include <algorithm>
#include <array>
#include <utility>

#include "cli/doctor/server/examination.hpp"
#include "client/authorization/challenge.hpp"
#include "client/authorization/metadata.hpp"
#include "client/authorization/oauth_reply.hpp"
#include "json/members.hpp"
#include "net/http/http_types.hpp"

namespace sluice {
namespace {

std::vector<HeaderField> views_of(const HttpHeaderList& headers) {
  std::vector<HeaderField> out;
  out.reserve(headers.size());
  for (const auto& [name, value] : headers) out.push_back({.name = name, .value = value});
  return out;
}

ServerChallenge challenge_of(const Reply& reply) {
  const std::vector<HeaderField> fields = views_of(reply.headers);
  return read_challenge(std::span<const HeaderField>(fields));
}

/// A document that is found at the first of `places` that has one.
struct Found {
  std::string url = {};
  std::string text = {};
  Error problem = {};  // why there is none
};

Found find_document(Examination& examination, const std::vector<std::string>& places) {
  Found found;
  for (const std::string& place : places) {
    Result<OauthReply> reply = examination.fetch(place);
    if (!reply) {
      // What could not be asked says less than what was asked before.
      const bool is_asked = reply.error().code != kLimitReached;
      if (is_asked || found.problem.code == 0) found.problem = std::move(reply.error());
    } else if (reply->status != 200) {
      found.problem =
          Error(reply->status, "HTTP " + std::to_string(reply->status) + " at " + place);
    } else if (const auto parsed = parse_json(reply->body); !parsed || !parsed->is_object()) {
      found.problem = Error(reply->status, "no JSON object at " + place);
    } else {
      return {.url = place, .text = std::move(reply->body)};
    }
  }
  return found;
}

std::vector<std::string> texts_of(const std::vector<Url>& urls) {
  std::vector<std::string> out;
  out.reserve(urls.size());
  for (const Url& url : urls) out.push_back(url.to_string());
  return out;
}

json::object object_in(std::string_view text) {
  auto parsed = parse_json(text);
  return parsed && parsed->is_object() ? std::move(parsed->get_object()) : json::object();
}

std::optional<Verdict> check_challenge(Examination& examination) {
  if (!examination.authorization) return {};
  const Reply& refusal = examination.authorization->refusal;
  const ServerChallenge challenge = challenge_of(refusal);
  // Of a token that is good, but not for this.
  const bool is_of_scope = refusal.status == 403 && challenge.error == "insufficient_scope";
  if (refusal.status != 401 && !is_of_scope) {
    return Verdict::fail(seen(refusal) + " to a request without a token", "Answer 401");
  }
  if (refusal.header("WWW-Authenticate").empty()) {
    return Verdict::fail("HTTP 401 without WWW-Authenticate",
                         "Add WWW-Authenticate: Bearer resource_metadata=\"URL\"");
  }
  if (!challenge.is_present) {
    return Verdict::fail("WWW-Authenticate names neither Bearer nor DPoP",
                         "Add WWW-Authenticate: Bearer resource_metadata=\"URL\"");
  }
  return Verdict::ok(seen(refusal) + " with a challenge");
}

std::optional<Verdict> check_challenge_scope(Examination& examination) {
  if (!examination.authorization) return {};
  const ServerChallenge challenge = challenge_of(examination.authorization->refusal);
  if (!challenge.is_present) return {};
  if (!challenge.scopes.empty()) return Verdict::ok(join_scopes(challenge.scopes));
  return Verdict::note("the challenge names no scope",
                       "Add scope=\"...\", so that clients ask for "
                       "no more than is needed");
}

std::optional<Verdict> check_resource_metadata(Examination& examination) {
  if (!examination.authorization) return {};
  const AuthorizationFacts& facts = *examination.authorization;
  if (facts.document.empty()) {
    if (facts.problem.code == kLimitReached) return Verdict::note(facts.problem.message);
    const std::string found = "there is no protected resource metadata: " + facts.problem.message;
    const std::string fix = "Serve it at " +
                            resource_metadata_urls(examination.server()).front().to_string() +
                            ", and name that URL in WWW-Authenticate";
    // Servers may have another way to authorize clients, such as keys that users are given.
    const bool is_promised = !challenge_of(facts.refusal).resource_metadata.empty();
    return is_promised ? Verdict::fail(found, fix)
                       : Verdict::warn(found + "; nobody can log in without a key", fix);
  }
  const auto servers = texts_at(object_in(facts.document), "authorization_servers");
  if (!servers || servers->empty()) {
    return Verdict::fail(facts.document_url + " names no authorization_servers",
                         "Name at least one");
  }
  return Verdict::ok(facts.document_url);
}

std::optional<Verdict> check_resource_name(Examination& examination) {
  if (!examination.authorization || examination.authorization->document.empty()) return {};
  const json::object document = object_in(examination.authorization->document);
  const std::string resource(text_at(document, "resource"));
  if (is_resource_of(resource, examination.server())) return Verdict::ok(resource);
  return Verdict::fail("the metadata is of the resource \"" + resource + "\"",
                       "Name this server, " + canonical_resource(examination.server()) +
                           ": clients refuse tokens for another");
}

/// The first authorization server of which `problem` says something.
template <class Problem>
std::optional<Verdict> check_each_server(Examination& examination, Problem problem,
                                         const std::string& all_well) {
  if (!examination.authorization) return {};
  bool is_examined = false;
  for (const AuthorizationServerFacts& server : examination.authorization->servers) {
    if (server.document.empty()) continue;
    is_examined = true;
    if (std::optional<Verdict> verdict = problem(server, object_in(server.document))) {
      return verdict;
    }
  }
  if (!is_examined) return {};
  return Verdict::ok(all_well);
}

std::optional<Verdict> check_server_metadata(Examination& examination) {
  if (!examination.authorization || examination.authorization->servers.empty()) return {};
  for (const AuthorizationServerFacts& server : examination.authorization->servers) {
    if (!server.document.empty()) continue;
    const std::string found = server.issuer + ": " + server.problem.message;
    if (server.problem.code == kLimitReached) return Verdict::note(found);
    return Verdict::fail(found,
                         "Serve /.well-known/oauth-authorization-server or "
                         "/.well-known/openid-configuration there");
  }
  return Verdict::ok("each authorization server has its document");
}

std::optional<Verdict> check_issuer(Examination& examination) {
  return check_each_server(
      examination,
      [](const AuthorizationServerFacts& server,
         const json::object& document) -> std::optional<Verdict> {
        const std::string issuer(text_at(document, "issuer"));
        if (issuer == server.issuer) return {};
        const std::string found =
            "the document of " + server.issuer + " has the issuer \"" + issuer + "\"";
        const std::string fix = "Use the same text in both: clients must refuse the document";
        // Only the slash of an empty path, which many clients pass over.
        if (is_same_issuer(issuer, server.issuer)) return Verdict::warn(found, fix);
        return Verdict::fail(found, fix);
      },
      "the same text in both documents");
}

std::optional<Verdict> check_pkce(Examination& examination) {
  return check_each_server(
      examination,
      [](const AuthorizationServerFacts& server,
         const json::object& document) -> std::optional<Verdict> {
        const auto methods = texts_at(document, "code_challenge_methods_supported")
                                 .value_or(std::vector<std::string>());
        if (std::ranges::find(methods, "S256") != methods.end()) return {};
        return Verdict::fail(server.issuer + " does not say that it supports PKCE with S256",
                             "List S256 in code_challenge_methods_supported: clients must refuse "
                             "to go on without it");
      },
      "S256");
}

std::optional<Verdict> check_endpoints(Examination& examination) {
  const bool is_private = examination.is_private();
  return check_each_server(
      examination,
      [is_private](const AuthorizationServerFacts& server,
                   const json::object& document) -> std::optional<Verdict> {
        for (const std::string_view name : {"authorization_endpoint", "token_endpoint"}) {
          const std::string_view url = text_at(document, name);
          if (url.empty()) {
            return Verdict::fail(server.issuer + " has no " + std::string(name), "Add it");
          }
          if (!url.starts_with("https://") && !is_private) {
            return Verdict::fail(std::string(name) + " is not https: " + std::string(url),
                                 "Serve it with TLS");
          }
        }
        return {};
      },
      "there");
}

std::optional<Verdict> check_registration(Examination& examination) {
  return check_each_server(
      examination,
      [](const AuthorizationServerFacts& server,
         const json::object& document) -> std::optional<Verdict> {
        const json::value* const documents =
            document.if_contains("client_id_metadata_document_supported");
        if (documents != nullptr && documents->is_bool() && documents->get_bool()) return {};
        if (!text_at(document, "registration_endpoint").empty()) return {};
        return Verdict::note(server.issuer + " takes only clients that are registered with it",
                             "Take client id metadata documents; until then, users need "
                             "`sluice login --client-id ID`");
      },
      "clients can register themselves");
}

std::optional<Verdict> check_iss(Examination& examination) {
  return check_each_server(
      examination,
      [](const AuthorizationServerFacts& server,
         const json::object& document) -> std::optional<Verdict> {
        const json::value* const iss =
            document.if_contains("authorization_response_iss_parameter_supported");
        if (iss != nullptr && iss->is_bool() && iss->get_bool()) return {};
        return Verdict::note(server.issuer + " sends no iss with its authorization responses",
                             "Send it, and say so in the metadata: it tells mixed-up servers "
                             "apart");
      },
      "sent");
}

std::optional<Verdict> check_bad_token(Examination& examination) {
  if (!examination.authorization || !examination.authorization->bad_token) return {};
  const Reply& reply = *examination.authorization->bad_token;
  const std::string found = seen(reply) + " to a token that nobody has issued";
  if (reply.status == 401) return Verdict::ok(found);
  return Verdict::fail(found, "Answer 401 to tokens that are invalid or expired");
}

constexpr std::string_view kLocationClause =
    "2026-07-28, Authorization Server Discovery, Authorization Server Location";
constexpr std::array kAuthorizationChecks = {
    ServerCheck{"challenge", "RFC 9110, section 15.5.2", check_challenge},
    ServerCheck{"scope", "2026-07-28, Authorization, Scope Selection Strategy",
                check_challenge_scope},
    ServerCheck{"invalid token", "2026-07-28, Authorization, Token Handling", check_bad_token},
    ServerCheck{"resource metadata", kLocationClause, check_resource_metadata},
    ServerCheck{"resource", "RFC 9728, section 3.3", check_resource_name},
    ServerCheck{"server metadata",
                "2026-07-28, Authorization Server Discovery, Authorization Server Metadata "
                "Discovery",
                check_server_metadata},
    ServerCheck{"issuer", "RFC 8414, section 3.3", check_issuer},
    ServerCheck{"PKCE",
                "2026-07-28, Authorization Security Considerations, Authorization Code Protection",
                check_pkce},
    ServerCheck{"endpoints",
                "2026-07-28, Authorization Security Considerations, Communication Security",
                check_endpoints},
    ServerCheck{"registration", "2026-07-28, Client Registration", check_registration},
    ServerCheck{"iss", "2026-07-28, Authorization, Authorization Response Validation", check_iss},
};

}  // namespace

std::span<const ServerCheck> authorization_checks() {
  return kAuthorizationChecks;
}

void gather_authorization(Examination& examination, RefusedAsk refusal) {
  AuthorizationFacts facts{.refusal = std::move(refusal.reply)};
  const ServerChallenge challenge = challenge_of(facts.refusal);
  const std::vector<std::string> places =
      challenge.resource_metadata.empty() ? texts_of(resource_metadata_urls(examination.server()))
                                          : std::vector<std::string>{challenge.resource_metadata};
  Found found = find_document(examination, places);
  facts.document_url = std::move(found.url);
  facts.document = std::move(found.text);
  facts.problem = std::move(found.problem);
  const auto issuers = texts_at(object_in(facts.document), "authorization_servers");
  for (const std::string& issuer : issuers.value_or(std::vector<std::string>())) {
    if (facts.servers.size() == AuthorizationFacts::kMaxServers) break;
    const Result<std::vector<Url>> urls = server_metadata_urls(issuer);
    Found document =
        urls ? find_document(examination, texts_of(*urls)) : Found{.problem = urls.error()};
    facts.servers.push_back({.issuer = issuer,
                             .problem = std::move(document.problem),
                             .document = std::move(document.text)});
  }
  refusal.ask.is_anonymous = true;
  refusal.ask.headers.emplace_back("Authorization", "Bearer sluice-doctor-no-such-token");
  if (Result<Reply> reply = examination.ask(refusal.ask)) facts.bad_token = *std::move(reply);
  examination.authorization = std::move(facts);
}

}  // namespace sluice
