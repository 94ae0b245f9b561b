#include "cli/doctor/server/reachability.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "cli/doctor/report/certificate_days.hpp"
#include "cli/doctor/server/check_table.hpp"
#include "cli/doctor/server/examination.hpp"

namespace sluice {
namespace {

std::string addresses_in(const ConnectionFacts& facts) {
  std::string out;
  for (const AddressFacts& each : facts.addresses) {
    out.append(out.empty() ? "" : ", ").append(each.address);
    if (each.problem.empty()) out.append(" in ").append(in_milliseconds(each.took));
  }
  return out;
}

Verdict judge_addresses(const ConnectionFacts& facts, const std::optional<ProxyServer>& proxy) {
  const auto broken = std::ranges::find_if(
      facts.addresses, [](const AddressFacts& each) { return !each.problem.empty(); });
  if (!facts.is_reachable()) {
    return Verdict::fail(broken->address + ": " + broken->problem,
                         proxy
                             ? "Check the variable " + proxy->variable + " and that the proxy runs"
                             : "Check the URL, that the server runs and listens on that address, "
                               "and the firewalls in between");
  }
  if (broken != facts.addresses.end()) {
    return Verdict::warn(
        "one of its addresses does not answer: " + broken->address + ": " + broken->problem,
        "Listen there as well, or take it out of the name service: some clients "
        "wait for it");
  }
  return Verdict::ok(addresses_in(facts));
}

Verdict judge_encryption(const Url& server, const ConnectionFacts& facts) {
  if (!server.is_tls()) {
    if (facts.is_private) return Verdict::ok("none, which only this machine or network sees");
    return Verdict::warn("none: everybody in between reads and changes what is sent",
                         "Serve https");
  }
  if (!facts.tls) {
    return Verdict::fail(facts.tls_problem, "Check that the port serves TLS, 1.2 or later");
  }
  return Verdict::ok(facts.tls->version + ", " + in_milliseconds(facts.tls->took));
}

Verdict judge_certificate(const TlsFacts& tls) {
  const std::string days = std::to_string(tls.days_left) + " days";
  if (!tls.problem.empty()) {
    const bool has_expired = tls.days_left < 0;
    return Verdict::fail(
        tls.problem + (has_expired ? std::string() : "; it is valid for " + days),
        has_expired ? "Renew the certificate"
                    : "Serve a certificate for this host name, with all certificates of its "
                      "chain, from an authority that clients trust (SSL_CERT_FILE names others)");
  }
  if (tls.days_left < kSoonDays) {
    return Verdict::warn("it ends in " + days, "Renew the certificate");
  }
  return Verdict::ok("trusted, valid for " + days);
}

}  // namespace

bool examine_reachability(const Url& server, const std::optional<ProxyServer>& proxy,
                          const Result<ConnectionFacts>& facts, Checks& out) {
  if (proxy) out.push_back(to_check("proxy", "", Verdict::ok("by the " + proxy->label())));
  if (!facts) {
    out.push_back(
        to_check("name", "",
                 Verdict::fail((proxy ? proxy->host : server.host) + ": " + facts.error().message,
                               proxy ? "Check the variable " + proxy->variable
                                     : "Check the host of the URL")));
    return false;
  }
  out.push_back(to_check("name", "", Verdict::ok("found in " + in_milliseconds(facts->lookup))));
  out.push_back(to_check("connection", "", judge_addresses(*facts, proxy)));
  if (!facts->is_reachable()) return false;
  if (!facts->tunnel_problem.empty()) {
    out.push_back(to_check("tunnel", "RFC 9110, section 9.3.6",
                           Verdict::fail(facts->tunnel_problem,
                                         "Have the proxy allow the server, or name the server in "
                                         "the variable NO_PROXY if it is reached without one")));
    return false;
  }
  out.push_back(to_check(
      "encryption", "2026-07-28, Authorization Security Considerations, Communication Security",
      judge_encryption(server, *facts)));
  if (!server.is_tls()) return true;
  if (!facts->tls) return false;
  out.push_back(to_check("certificate", "RFC 9110, section 4.3.4", judge_certificate(*facts->tls)));
  return facts->tls->problem.empty();
}

}  // namespace sluice
